"""Lines of a web server's access log, and clicks on a web site.

Log lines are those of a day in 1998, in the Common Log Format. All frequencies are made up. The log has its own clock,
which advances with the lines of each partition. So it is a pure function of the line's number, like every field. Clicks
have addresses, pages and visitors, most frequent first. Some lack a name or a page.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Floats
from streamgauge.loadgen.fields import OFFSET_BYTES, FieldSpec, sampled
from streamgauge.loadgen.random import (
    Lanes,
    PhiloxBits,
    Table,
    Uniform,
    partition_shares,
    sampler,
    sampler_of_column,
)

START_S = 898_128_000
"""18 June 1998, a day of matches."""
ADDRESSES_MAX, PAGES = 2**20, 1_000
STATUSES = {"200": 0.84, "304": 0.12, "404": 0.02, "206": 0.01, "302": 0.006, "500": 0.004}
"""Statuses with their shares."""
SIZES = 2_000
"""The number of different response sizes, including `-` for no body."""
MALFORMED_LENGTH = 24
"""The length at which malformed lines are cut off."""
_LANES = 5
"""The lanes of a line: address, page, status, size, and whether it is malformed."""


@dataclass(frozen=True)
class AccessLine(FieldSpec):
    """`address - - [time] "GET page HTTP/1.0" status size`.

    `addresses` clients have Zipf's frequencies. The log's clock advances by a second every `lines_per_second` lines of
    a partition. A share `malformed` of the lines (0 to 1) is cut off within the time.
    """

    addresses: int
    lines_per_second: int
    malformed: float
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return OFFSET_BYTES + 98

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self.concatenated(
            [
                self._lines(lanes, first + part.start, first + part.stop)
                for part, lanes in bits.blocks(first, last, _LANES)
            ]
        )

    def _lines(self, lanes: Lanes, first: int, last: int) -> pa.Array:
        address, page, status, size, coin = (lanes[place::_LANES] for place in range(_LANES))
        whole = pc.binary_join_element_wise(
            addresses(self.addresses).take(pa.array(sampler("zipf", self.addresses).drawn(address))),
            self._times(first, last),
            _requests().take(pa.array(sampler("zipf", PAGES).drawn(page))),
            pa.array(list(STATUSES)).take(pa.array(_STATUSES.drawn(status))),
            _sizes().take(pa.array(Uniform(SIZES).drawn(size))),
            "",
        )
        if not self.malformed:
            return whole
        cut = pc.utf8_slice_codeunits(whole, 0, MALFORMED_LENGTH)
        return pc.if_else(pa.array(coin < self.malformed * 2.0**32), cut, whole)

    def _times(self, first: int, last: int) -> pa.Array:
        seconds = START_S + np.arange(first, last) // self.lines_per_second
        moments = pa.array(np.arange(seconds[0], seconds[-1] + 1), pa.timestamp("s"))
        return pc.strftime(moments, " - - [%d/%b/%Y:%H:%M:%S +0000] ").take(pa.array(seconds - seconds[0]))


@lru_cache(maxsize=4)
def addresses(count: int) -> pa.Array:
    """The clients' addresses, most frequent first, spread over all networks by a multiplicative hash."""
    spread = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2_654_435_761) % np.uint64(2**32)
    octets = [(spread >> np.uint64(shift)) & np.uint64(255) for shift in (24, 16, 8, 0)]
    return pc.binary_join_element_wise(*(pc.cast(pa.array(each), pa.string()) for each in octets), ".")


@lru_cache(maxsize=1)  # made on first use, because an array of Python's texts loads pandas
def _requests() -> pa.Array:
    """The requests for all pages, most frequent first, as in a line."""
    return pa.array([f'"GET /english/matches/page{page}.html HTTP/1.0" ' for page in range(PAGES)])


@lru_cache(maxsize=1)
def _sizes() -> pa.Array:
    return pa.array([" -", *(f" {37 * place}" for place in range(1, SIZES))])


_STATUSES = Table(np.array(list(STATUSES.values())))
PAGES_MAX = 100_000


@dataclass(frozen=True)
class Address(FieldSpec):
    """The address of one of `clients` visitors, with Zipf's frequencies."""

    clients: int
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return OFFSET_BYTES + 12.7

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return addresses(self.clients).take(pa.array(sampled(sampler("zipf", self.clients), bits, first, last)))


@dataclass(frozen=True)
class Visitor(FieldSpec):
    """The visitor's name, independent of the address. A share `nameless` of the clicks (0 to 1) has none."""

    visitors: int
    nameless: float
    sql_type: ClassVar[str] = "string"

    @property
    def nullable(self) -> bool:
        return self.nameless > 0

    @property
    def row_bytes(self) -> float:
        return OFFSET_BYTES + 2.82 * (1 - self.nameless) + 1 / 8

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        by = sampler_of_column(bits, "zipf", self.visitors)
        limit = self.nameless * 2.0**32
        numbers = [pa.array(by.drawn(lanes[::2]), mask=lanes[1::2] < limit) for _, lanes in bits.blocks(first, last, 2)]
        return self.concatenated([pc.cast(each, pa.string()) for each in numbers])

    def partition_shares(self, partitions: int) -> Floats | None:
        return partition_shares("zipf", self.visitors, partitions)


@dataclass(frozen=True)
class Page(FieldSpec):
    """One of `pages` pages with Zipf's frequencies. A share `malformed` of the clicks (0 to 1) has an empty one."""

    pages: int
    malformed: float
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return OFFSET_BYTES + 28.0 * (1 - self.malformed)

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self.concatenated([self._pages(lanes) for _, lanes in bits.blocks(first, last, 2)])

    def _pages(self, lanes: np.ndarray) -> pa.Array:
        drawn = sampler("zipf", self.pages).drawn(lanes[::2]) + 1
        drawn[lanes[1::2] < self.malformed * 2.0**32] = 0
        return _pages(self.pages).take(pa.array(drawn))


@lru_cache(maxsize=4)
def _pages(count: int) -> pa.Array:
    """The empty page, then every page."""
    return pa.array(["", *(f"/english/matches/page{page}.html" for page in range(count))])
