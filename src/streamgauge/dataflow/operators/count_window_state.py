"""The class behind count windows: aggregates over the last events of each key.

State: the last `size` values per column and key as arrays, and the number of events per key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.core.arrays import Bools, Int64s
from streamgauge.dataflow.operators.api import ROW, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import (
    GroupedWindows,
    RowKeyDictionary,
    group_windows,
    sliding_reduce,
    valid_mask,
)

Aggregates = tuple[tuple[str, str, str], ...]
"""(output column, function, input column or `*`); `dataflow.count_window` lists the functions."""


@dataclass(frozen=True)
class Column:
    """Values as int64 or float64, and a validity mask. The value behind a null is never used."""

    values: NDArray[Any]
    valid: Bools

    @classmethod
    def from_arrow(cls, column: pa.Array) -> Column:
        """Non-numeric columns keep only their validity: only `count` reads them."""
        valid = valid_mask(column)
        whole = pa.types.is_integer(column.type)
        if not whole and not pa.types.is_floating(column.type):
            return cls(np.zeros(len(column), np.int64), valid)
        return cls(pc.fill_null(column, 0).cast(pa.int64() if whole else pa.float64()).to_numpy(), valid)

    def after(self, before: Column) -> Column:
        return Column(np.concatenate((before.values, self.values)), np.concatenate((before.valid, self.valid)))

    def take(self, positions: Int64s | Bools) -> Column:
        return Column(self.values[positions], self.valid[positions])

    def nulls_as(self, value: float) -> NDArray[Any]:
        return self.values if self.valid.all() else np.where(self.valid, self.values, value)


class CountWindow(StateInAttributes):
    """At every `slide`-th event of a key: the aggregates over its last `size` events, or all if it has fewer."""

    def __init__(self, size: int, slide: int, keys: tuple[str, ...], aggregates: Aggregates) -> None:
        self._size, self._slide, self._keys, self._aggregates = size, slide, keys, aggregates
        self._names = tuple(
            dict.fromkeys(column for _, function, column in aggregates if function != "last" and column != "*")
        )
        self._codes, self._events = np.empty(0, np.int64), np.empty(0, np.int64)
        self._columns: dict[str, Column] = {}

    @classmethod
    def label(cls, **parameters: Any) -> str:
        aggregates = ", ".join(f"{function}({column}) as {name}" for name, function, column in parameters["aggregates"])
        size, slide = parameters["size"], parameters["slide"]
        if slide == size:
            return f"{aggregates} over each {size} events"
        often = "" if slide == 1 else f", at each {slide}"
        return f"{aggregates} over the last {size} events{often}"

    def open(self, schema: pa.Schema) -> None:
        self._books = RowKeyDictionary([schema.field(key).type for key in self._keys])

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        codes = self._books.encode([batch.column(key) for key in self._keys])
        windows = group_windows(self._codes, codes, self._size)
        rows = np.flatnonzero(self._event_counts(codes, windows) % self._slide == 0)
        columns = self._advance(batch, windows)
        first, end = windows.first[rows], windows.at[rows] + 1
        results = {key: batch.column(key).take(pa.array(rows)) for key in self._keys}
        for name, function, column in self._aggregates:
            results[name] = (
                batch.column(column).take(pa.array(rows))
                if function == "last"
                else aggregated(function, columns.get(column), first, end)
            )
        return pa.RecordBatch.from_arrays([*results.values(), pa.array(rows)], names=[*results, ROW])

    def _event_counts(self, codes: Int64s, windows: GroupedWindows) -> Int64s:
        """For each new event, the number of events of its key up to and including it."""
        added = np.bincount(codes, minlength=len(self._books))
        before = np.concatenate((self._events, np.zeros(len(added) - len(self._events), np.int64)))
        self._events = before + added
        return np.asarray(before[codes] + windows.ordinal)

    def _advance(self, batch: pa.RecordBatch, windows: GroupedWindows) -> dict[str, Column]:
        """The columns of stored and new events by key. Stores what the next windows need."""
        columns = {}
        for name in self._names:
            column = Column.from_arrow(batch.column(name))
            columns[name] = column.after(self._columns.get(name, column.take(np.empty(0, np.int64)))).take(
                windows.order
            )
        self._codes = windows.codes[windows.retained]
        self._columns = {name: column.take(windows.retained) for name, column in columns.items()}
        return columns


def aggregated(function: str, column: Column | None, first: Int64s, end: Int64s) -> pa.Array:
    """`count`, `sum`, `avg`, `min` or `max` of `column[first:end]` per window, shape (windows,). None counts rows.

    Nulls are ignored as in SQL: a window of nulls only gives null, except for `count`.
    """
    if column is None:
        return pa.array(end - first)
    so_far = np.concatenate(([0], np.cumsum(column.valid)))
    counts = so_far[end] - so_far[first]
    if function == "count":
        return pa.array(counts)
    of_whole = column.values.dtype == np.int64
    take, identity = (_OF_WHOLE if of_whole else _OF_DOUBLES)["sum" if function == "avg" else function]
    reduced = sliding_reduce(take, column.nulls_as(identity), first, end, identity)
    if function == "avg":
        reduced = reduced / np.maximum(counts, 1)
    return pa.array(reduced, mask=counts == 0)


Take = tuple[Callable[[Any, Any], Any], float]
_INT64 = np.iinfo(np.int64)
_OF_WHOLE: dict[str, Take] = {"sum": (np.add, 0), "min": (np.minimum, _INT64.max), "max": (np.maximum, _INT64.min)}
# SQL orders NaN above every number.
_OF_DOUBLES: dict[str, Take] = {"sum": (np.add, 0.0), "min": (np.fmin, np.nan), "max": (np.maximum, -np.inf)}
"""The binary function and its identity element."""
