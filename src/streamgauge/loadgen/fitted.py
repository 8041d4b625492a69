"""Fields whose values follow a table of frequencies and, for other numbers, quantiles.

A workload declares `Choice`. `loadgen.replay.fit_sample` makes `Fitted` from a column of a user's file. Both are pure
functions of the event's number, like all fields, so any slice gives the same rows.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Floats, Int32s
from streamgauge.core.errors import require
from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.fields import OFFSET_BYTES, TYPE_BYTES, VALIDITY_BYTES, FieldSpec, is_number
from streamgauge.loadgen.random import PhiloxBits, Sampler, Subset, Table, Uniform, empty, key_texts, partitions_of

_TYPES: dict[type, str] = {bool: "boolean", int: "bigint", float: "double", str: "string", bytes: "binary"}
_BIGINT_MIN, _BIGINT_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Fitted(FieldSpec):
    """`values` (None stands for nulls) with `weights`. An additional last weight is that of the `quantiles`.

    `quantiles` (n,) are numbers (timestamps: microseconds) at evenly spaced shares, with uniform values in between.
    `decimals` is the number of their decimal places. Weights need not sum to 1.
    """

    sql_type: str  # type: ignore[misc]
    values: tuple[Any, ...]
    weights: tuple[float, ...]
    quantiles: tuple[float, ...] = ()
    decimals: int | None = None

    def __post_init__(self) -> None:
        count = len(self.values) + bool(self.quantiles)
        rule, got = "needs a weight for each value", (len(self.values), len(self.weights))
        _require(0 < count == len(self.weights), self.name, rule, got)
        are_weights = all(math.isfinite(weight) and weight >= 0 for weight in self.weights) and sum(self.weights) > 0
        _require(are_weights, self.name, "weights must be numbers of at least 0, and not all 0", self.weights[:5])

    @property
    def nullable(self) -> bool:
        return None in self.values

    @cached_property
    def row_bytes(self) -> float:
        # Every value has a validity bit, because the table ends with a null.
        if self.sql_type in TYPE_BYTES:
            return TYPE_BYTES[self.sql_type] + VALIDITY_BYTES
        lengths = pc.fill_null(pc.binary_length(self._table.slice(0, len(self.values))), 0).to_numpy()
        return OFFSET_BYTES + float(np.average(lengths, weights=self.weights)) + VALIDITY_BYTES

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        picks, places = self._drawn(bits, first, last)
        taken = self._table.take(pa.array(picks))
        if not self.quantiles:
            return taken
        return pc.if_else(pa.array(picks == len(self.values)), self._between(places), taken)

    def _drawn(self, bits: PhiloxBits, first: int, last: int) -> tuple[Int32s, Floats]:
        """(index of the value, or their number for the quantiles; a share in [0, 1)), each (last - first,)."""
        sampler = self._sampler if bits.split == 1 else self._sampler_of(bits.partition, bits.split)
        picks, places = empty(last - first, np.int32), empty(last - first, np.float64)
        for part, lanes in bits.blocks(first, last, 2):
            sampler.fill(np.ascontiguousarray(lanes[0::2]), picks[part])
            np.multiply(lanes[1::2], 2.0**-32, out=places[part])
        return picks, places

    def _between(self, places: Floats) -> pa.Array:
        numbers = np.interp(places, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        if self.sql_type == "double":
            return pa.array(numbers if self.decimals is None else np.round(numbers, self.decimals))
        return pa.array(np.floor(numbers).astype(np.int64)).cast(arrow_type(self.sql_type))

    def partition_shares(self, partitions: int) -> Floats | None:
        if self.quantiles:
            return None
        return self._chances(partitions).sum(axis=1) / sum(self.weights)

    def _chances(self, partitions: int) -> Floats:
        """The weight of each value in each partition, shape (partitions, values). Nulls go to every partition."""
        texts = key_texts(self._table.slice(0, len(self.values)))
        at, chances = partitions_of(texts, partitions), np.zeros((partitions, len(self.values)))
        chances[at, np.arange(len(at))] = self.weights
        nulls = texts.is_null().to_numpy(zero_copy_only=False)
        chances[:, nulls] = np.asarray(self.weights, np.float64)[nulls] / partitions
        return chances

    def _sampler_of(self, partition: int, partitions: int) -> Sampler:
        """The sampler for the values that hash to a partition."""
        if (partition, partitions) not in self._samplers_split:
            chances = self._chances(partitions)[partition]
            values = np.flatnonzero(chances > 0).astype(np.int32)
            self._samplers_split[partition, partitions] = Subset(values, chances[values])
        return self._samplers_split[partition, partitions]

    @cached_property
    def _samplers_split(self) -> dict[tuple[int, int], Sampler]:
        return {}

    @cached_property
    def _table(self) -> pa.Array:
        """The values, and a null as placeholder for numbers between the quantiles."""
        return pa.array([*self.values, None], arrow_type(self.sql_type))

    @cached_property
    def _sampler(self) -> Sampler:
        weights = np.asarray(self.weights, np.float64)
        return Table(weights / weights.sum()) if len(weights) > 1 else Uniform(1)


@dataclass(frozen=True)
class Choice(FieldSpec):
    """One of `values` (all str, int, float, bool or bytes), with `weights` unless they are equally likely."""

    values: tuple[Any, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rule = "must have its values, and its weights, in a tuple or a list"
        for given in (self.values, self.weights):
            _require(isinstance(given, tuple | list), self.name, rule, given)
        types = {type(value) for value in self.values}
        rule = "must choose from values of one type: str, int, float, bool or bytes"
        _require(len(types) == 1 and types <= _TYPES.keys(), self.name, rule, self.values[:5])
        _require(all(map(is_number, self.weights)), self.name, "weights must be numbers", self.weights[:5])
        fit = self.sql_type != "bigint" or all(_BIGINT_MIN <= value <= _BIGINT_MAX for value in self.values)
        _require(fit, self.name, "must choose from whole numbers of 64 bits at most", self.values[:5])
        _ = self._fitted

    @property
    def sql_type(self) -> str:  # type: ignore[override]
        return _TYPES[type(self.values[0])]

    @property
    def row_bytes(self) -> float:
        return self._fitted.row_bytes

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self._fitted.column(bits, first, last)

    def partition_shares(self, partitions: int) -> Floats | None:
        return self._fitted.partition_shares(partitions)

    @cached_property
    def _fitted(self) -> Fitted:
        return Fitted(self.name, self.sql_type, self.values, self.weights or (1.0,) * len(self.values))


def _require(holds: object, name: str, rule: str, got: object) -> None:
    require(holds, name, rule, got, 'Choice("country", ("BR", "DE"), weights=(3, 1))')
