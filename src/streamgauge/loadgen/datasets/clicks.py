"""Clicks on a web site: addresses, pages and visitors, most frequent first. Some lack a name or a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.datasets.access_log import ADDRESSES_MAX, addresses
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.random.distributions import Sampler, partition_shares, sampler, sampler_of_column
from streamgauge.loadgen.random.philox import PhiloxBits

PAGES_MAX = 100_000
_OFFSET_BYTES = 4


@dataclass(frozen=True)
class Address(FieldSpec):
    """The address of one of `clients` visitors, with Zipf's frequencies."""

    clients: int
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not 1 <= self.clients <= ADDRESSES_MAX:
            raise InputError(Problem(f"{self.name}.clients", f"must be 1 to {ADDRESSES_MAX}", self.clients, "65536"))

    @property
    def row_bytes(self) -> float:
        return _OFFSET_BYTES + 12.7

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return addresses(self.clients).take(_drawn(self.clients, bits, first, last))


@dataclass(frozen=True)
class Visitor(FieldSpec):
    """The visitor's name, independent of the address. A share `nameless` of the clicks (0 to 1) has none."""

    visitors: int
    nameless: float
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not 1 <= self.visitors <= ADDRESSES_MAX:
            raise InputError(Problem(f"{self.name}.visitors", f"must be 1 to {ADDRESSES_MAX}", self.visitors, "65536"))
        if not 0 <= self.nameless <= 1:
            raise InputError(Problem(f"{self.name}.nameless", "must be a share from 0 to 1", self.nameless, "0.1"))

    @property
    def nullable(self) -> bool:
        return self.nameless > 0

    @property
    def row_bytes(self) -> float:
        return _OFFSET_BYTES + 2.82 * (1 - self.nameless) + 1 / 8

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        by = sampler_of_column(bits, "zipf", self.visitors)
        parts = [self._names(by, lanes) for _, lanes in bits.blocks(first, last, 2)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    def partition_shares(self, partitions: int) -> NDArray[np.float64] | None:
        return partition_shares("zipf", self.visitors, partitions)

    def _names(self, by: Sampler, lanes: np.ndarray) -> pa.Array:
        drawn = by.drawn(lanes[::2])
        nameless = lanes[1::2] < self.nameless * 2.0**32
        return pc.cast(pa.array(drawn, mask=nameless), pa.string())


@dataclass(frozen=True)
class Page(FieldSpec):
    """One of `pages` pages with Zipf's frequencies. A share `malformed` of the clicks (0 to 1) has an empty one."""

    pages: int
    malformed: float
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not 1 <= self.pages <= PAGES_MAX:
            raise InputError(Problem(f"{self.name}.pages", f"must be 1 to {PAGES_MAX}", self.pages, "1000"))
        if not 0 <= self.malformed <= 1:
            raise InputError(Problem(f"{self.name}.malformed", "must be a share from 0 to 1", self.malformed, "0.001"))

    @property
    def row_bytes(self) -> float:
        return _OFFSET_BYTES + 28.0 * (1 - self.malformed)

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        parts = [self._pages(lanes) for _, lanes in bits.blocks(first, last, 2)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    def _pages(self, lanes: np.ndarray) -> pa.Array:
        drawn = sampler("zipf", self.pages).drawn(lanes[::2]) + 1
        drawn[lanes[1::2] < self.malformed * 2.0**32] = 0
        return _pages(self.pages).take(pa.array(drawn))


@lru_cache(maxsize=4)
def _pages(count: int) -> pa.Array:
    """The empty page, then every page."""
    return pa.array(["", *(f"/english/matches/page{page}.html" for page in range(count))])


def _drawn(domain: int, bits: PhiloxBits, first: int, last: int) -> pa.Array:
    drawn = np.empty(last - first, np.int32)
    for part, lanes in bits.blocks(first, last):
        drawn[part] = sampler("zipf", domain).drawn(lanes)
    return pa.array(drawn)
