"""The class behind windows that overlap many times: panes of the period, and every window reduced once from its panes.

An engine's own ways make a row for each window of an event or pane. Here a window costs the logarithm of its panes.
State: the panes of windows that have not ended, at least one row for each key and pane.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import LINEAGE_TIMES, WINDOW_END, WINDOW_START
from streamgauge.dataflow.operators.api import TIME, StateInAttributes
from streamgauge.dataflow.operators.count_window_state import Aggregates, Column, aggregated
from streamgauge.dataflow.operators.grouped_arrays import RowKeyDictionary, groups

REDUCED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""The functions that can be reduced from panes, and the function that reduces them."""
RESULTS_MAX = 2**20
"""About the most results that are computed at once, to bound memory."""
_NONE = np.empty(0, np.int64)
_START = "_start"
"""The column with the start of a pane (us), beside the keys, and a partial aggregate for each output and time."""


class SlidingWindow(StateInAttributes):
    """For each key and window that ends: the aggregates over its rows. Windows are aligned to the epoch."""

    def __init__(self, range_us: int, slide_us: int, keys: tuple[str, ...], aggregates: Aggregates) -> None:
        self._range_us, self._slide_us, self._pane_us = range_us, slide_us, math.gcd(range_us, slide_us)
        self._keys = keys
        self._aggregates = (*aggregates, *((name, "max", name) for name in LINEAGE_TIMES))
        self._names = [name for name, *_ in self._aggregates]
        self._ended_us: int | None = None

    @classmethod
    def label(cls, **parameters: Any) -> str:
        aggregates = ", ".join(f"{function}({column}) as {name}" for name, function, column in parameters["aggregates"])
        return f"{aggregates} over {parameters['range_us']} us every {parameters['slide_us']} us"

    def open(self, schema: pa.Schema) -> None:
        self._key_types = [schema.field(key).type for key in self._keys]
        types = [_partial_type(schema, function, column) for _, function, column in self._aggregates]
        fields = [*zip(self._keys, self._key_types, strict=True), *zip(self._names, types, strict=True)]
        self._panes = pa.RecordBatch.from_pylist([], pa.schema([*fields, (_START, pa.int64())]))

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        if batch.num_rows:
            self._panes = pa.concat_batches([self._panes, self._panes_of(batch)])
        # The latest end of a window at or before the watermark.
        ended_us = (watermark_us - self._range_us) // self._slide_us * self._slide_us + self._range_us
        ended_us = ended_us if self._ended_us is None else max(ended_us, self._ended_us)
        starts = self._starts_until(ended_us)
        results = list(self._results(starts)) if len(starts) else [self._batch(self._panes, _NONE, _NONE, _NONE)]
        self._forget(ended_us)
        return pa.Table.from_batches(results).combine_chunks().to_batches()[0] if len(results) > 1 else results[0]

    def _panes_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One row for each key and pane of a batch."""
        codes = RowKeyDictionary(self._key_types).encode([batch.column(key) for key in self._keys])
        start = _floor(batch.column(TIME).to_numpy(), self._pane_us)
        order = np.lexsort((start, codes))
        first, _ = groups(codes[order], start[order])
        end, heads = np.append(first[1:], len(order)), order[first]
        columns: dict[str, Any] = {key: batch.column(key).take(pa.array(heads)) for key in self._keys}
        for name, function, column in self._aggregates:
            values = None if column == "*" else Column.from_arrow(batch.column(column)).take(order)
            columns[name] = aggregated(function, values, first, end)
        return pa.RecordBatch.from_pydict(columns | {_START: start[heads]}, self._panes.schema)

    def _starts_until(self, ended_us: int) -> range:
        """The starts of the windows that may have rows, end by then, and were not given before."""
        if not self._panes.num_rows:
            return range(0)
        start = _starts(self._panes)
        after_us = int(start.min()) - self._range_us
        if self._ended_us is not None:
            after_us = max(after_us, self._ended_us - self._range_us)
        last_us = min(ended_us - self._range_us, int(start.max()))
        return range(after_us // self._slide_us * self._slide_us + self._slide_us, last_us + 1, self._slide_us)

    def _results(self, starts: range) -> Iterator[pa.RecordBatch]:
        """The results of the windows with these starts."""
        codes = RowKeyDictionary(self._key_types).encode([self._panes.column(key) for key in self._keys])
        panes = self._panes.take(pa.array(np.lexsort((_starts(self._panes), codes))))
        codes, origin_us = np.sort(codes), int(_starts(panes).min())
        pane = (_starts(panes) - origin_us) // self._pane_us
        keys, panes_of_key = int(codes[-1]) + 1, int(pane.max()) + 1
        # Keys and panes as one number that ascends over the rows.
        places = codes * panes_of_key + pane
        windows = max(RESULTS_MAX // keys, 1)
        for begin in range(0, len(starts), windows):
            start = np.array(starts[begin : begin + windows], np.int64)
            first, end = (
                np.searchsorted(places, _of_each_key(keys, panes_of_key, (edge - origin_us) // self._pane_us))
                for edge in (start, start + self._range_us)
            )
            held = end > first
            yield self._batch(panes, first[held], end[held], np.tile(start, keys)[held])

    def _batch(self, panes: pa.RecordBatch, first: Int64s, end: Int64s, start: Int64s) -> pa.RecordBatch:
        """A result for each window: its rows `panes[first:end]`, and its start."""
        columns: dict[str, Any] = {key: panes.column(key).take(pa.array(first)) for key in self._keys}
        columns |= {WINDOW_START: start, WINDOW_END: start + self._range_us, TIME: start + self._range_us - 1}
        for name, function, _ in self._aggregates:
            columns[name] = aggregated(REDUCED_BY[function], Column.from_arrow(panes.column(name)), first, end)
        return pa.RecordBatch.from_pydict(columns)

    def _forget(self, ended_us: int) -> None:
        """Drops the panes whose last window has ended."""
        self._ended_us = ended_us
        open_ = _floor(_starts(self._panes), self._slide_us) + self._range_us > ended_us
        if not open_.all():
            self._panes = self._panes.filter(pa.array(open_))


def _of_each_key(keys: int, panes_of_key: int, pane: Int64s) -> Int64s:
    """The place of each pane, or of the nearest one that there is, for each key in turn: shape (keys * len(pane),)."""
    return np.asarray((np.arange(keys)[:, None] * panes_of_key + np.clip(pane, 0, panes_of_key)).ravel())


def _starts(panes: pa.RecordBatch) -> Int64s:
    return np.asarray(panes.column(_START).to_numpy())


def _floor(times_us: Int64s, step_us: int) -> Int64s:
    return np.asarray(times_us // step_us * step_us)


def _partial_type(schema: pa.Schema, function: str, column: str) -> pa.DataType:
    is_double = function != "count" and pa.types.is_floating(schema.field(column).type)
    return pa.float64() if is_double else pa.int64()
