"""The class behind windows that overlap many times: panes of the period, and every window reduced once from its panes.

An engine's own ways make a row for each window of an event or pane. Here a window costs the logarithm of its panes.
State: the panes of windows that have not ended, at least one row for each key and pane.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import LINEAGE_TIMES, WINDOW_END, WINDOW_START
from streamgauge.dataflow.operators.api import TIME, Processor
from streamgauge.dataflow.operators.count_window_state import Aggregates, Column, aggregated
from streamgauge.dataflow.operators.grouped_arrays import RowKeyDictionary, groups, load, save

REDUCED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""The functions that can be reduced from panes, and the function that reduces them."""
RESULTS_MAX = 2**20
"""About the most results that are computed at once, to bound memory."""
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Panes:
    """Rows of keys, start of the pane (us), and a partial aggregate for each output, then for each time."""

    keys: tuple[pa.Array, ...]
    start: Int64s
    partials: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Int64s) -> Panes:
        places = pa.array(rows)
        return Panes(_taken(self.keys, places), self.start[rows], _taken(self.partials, places))

    def with_more(self, other: Panes) -> Panes:
        return Panes(
            _joined(self.keys, other.keys),
            np.concatenate((self.start, other.start)),
            _joined(self.partials, other.partials),
        )


class SlidingWindow(Processor):
    """For each key and window that ends: the aggregates over its rows. Windows are aligned to the epoch."""

    def __init__(self, range_us: int, slide_us: int, keys: tuple[str, ...], aggregates: Aggregates) -> None:
        self._range_us, self._slide_us, self._pane_us = range_us, slide_us, math.gcd(range_us, slide_us)
        self._keys = keys
        self._aggregates = (*aggregates, *((name, "max", name) for name in LINEAGE_TIMES))
        self._ended_us: int | None = None

    @classmethod
    def label(cls, **parameters: Any) -> str:
        aggregates = ", ".join(f"{function}({column}) as {name}" for name, function, column in parameters["aggregates"])
        return f"{aggregates} over {parameters['range_us']} us every {parameters['slide_us']} us"

    def open(self, schema: pa.Schema) -> None:
        self._key_types = [schema.field(key).type for key in self._keys]
        keys = tuple(pa.array([], type_) for type_ in self._key_types)
        types = [_partial_type(schema, function, column) for _, function, column in self._aggregates]
        self._panes = Panes(keys, _NONE, tuple(pa.array([], type_) for type_ in types))

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        if batch.num_rows:
            self._panes = self._panes.with_more(self._panes_of(batch))
        # The latest end of a window at or before the watermark.
        ended_us = (watermark_us - self._range_us) // self._slide_us * self._slide_us + self._range_us
        ended_us = ended_us if self._ended_us is None else max(ended_us, self._ended_us)
        starts = self._starts_until(ended_us)
        results = list(self._results(starts)) if len(starts) else [self._batch(self._panes, _NONE, _NONE, _NONE)]
        self._forget(ended_us)
        return pa.Table.from_batches(results).combine_chunks().to_batches()[0] if len(results) > 1 else results[0]

    def _panes_of(self, batch: pa.RecordBatch) -> Panes:
        """One row for each key and pane of a batch."""
        keys = [batch.column(key) for key in self._keys]
        codes = RowKeyDictionary(self._key_types).encode(keys)
        start = _floor(batch.column(TIME).to_numpy(), self._pane_us)
        order = np.lexsort((start, codes))
        first, _ = groups(codes[order], start[order])
        end = np.append(first[1:], len(order))
        partials = tuple(
            aggregated(
                function, None if column == "*" else Column.from_arrow(batch.column(column)).take(order), first, end
            )
            for _, function, column in self._aggregates
        )
        heads = order[first]
        return Panes(_taken(keys, pa.array(heads)), start[heads], partials)

    def _starts_until(self, ended_us: int) -> range:
        """The starts of the windows that may have rows, end by then, and were not given before."""
        if not len(self._panes):
            return range(0)
        after_us = int(self._panes.start.min()) - self._range_us
        if self._ended_us is not None:
            after_us = max(after_us, self._ended_us - self._range_us)
        last_us = min(ended_us - self._range_us, int(self._panes.start.max()))
        return range(after_us // self._slide_us * self._slide_us + self._slide_us, last_us + 1, self._slide_us)

    def _results(self, starts: range) -> Iterator[pa.RecordBatch]:
        """The results of the windows with these starts."""
        codes = RowKeyDictionary(self._key_types).encode(self._panes.keys)
        panes = self._panes.take(np.lexsort((self._panes.start, codes)))
        codes, origin_us = np.sort(codes), int(panes.start.min())
        pane = (panes.start - origin_us) // self._pane_us
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

    def _batch(self, panes: Panes, first: Int64s, end: Int64s, start: Int64s) -> pa.RecordBatch:
        """A result for each window: its rows `panes[first:end]`, and its start."""
        columns: dict[str, Any] = dict(zip(self._keys, _taken(panes.keys, pa.array(first)), strict=True))
        columns |= {WINDOW_START: start, WINDOW_END: start + self._range_us, TIME: start + self._range_us - 1}
        for (name, function, _), partial in zip(self._aggregates, panes.partials, strict=True):
            columns[name] = aggregated(REDUCED_BY[function], Column.from_arrow(partial), first, end)
        return pa.RecordBatch.from_pydict(columns)

    def _forget(self, ended_us: int) -> None:
        """Drops the panes whose last window has ended."""
        self._ended_us = ended_us
        open_ = _floor(self._panes.start, self._slide_us) + self._range_us > ended_us
        if not open_.all():
            self._panes = self._panes.take(np.flatnonzero(open_))

    def snapshot(self) -> bytes:
        keys = {f"key_{number}": key for number, key in enumerate(self._panes.keys)}
        partials = {f"partial_{number}": partial for number, partial in enumerate(self._panes.partials)}
        return save(ended=pa.array([self._ended_us], pa.int64()), start=self._panes.start, **keys, **partials)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._ended_us = saved["ended"][0].as_py()
        keys = tuple(saved[f"key_{number}"] for number in range(len(self._keys)))
        partials = tuple(saved[f"partial_{number}"] for number in range(len(self._aggregates)))
        self._panes = Panes(keys, saved["start"].to_numpy(), partials)


def _of_each_key(keys: int, panes_of_key: int, pane: Int64s) -> Int64s:
    """The place of each pane, or of the nearest one that there is, for each key in turn: shape (keys * len(pane),)."""
    return np.asarray((np.arange(keys)[:, None] * panes_of_key + np.clip(pane, 0, panes_of_key)).ravel())


def _floor(times_us: Int64s, step_us: int) -> Int64s:
    return np.asarray(times_us // step_us * step_us)


def _partial_type(schema: pa.Schema, function: str, column: str) -> pa.DataType:
    is_double = function != "count" and pa.types.is_floating(schema.field(column).type)
    return pa.float64() if is_double else pa.int64()


def _taken(columns: Sequence[pa.Array], places: pa.Array) -> tuple[pa.Array, ...]:
    return tuple(column.take(places) for column in columns)


def _joined(columns: Sequence[pa.Array], others: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
    return tuple(pa.concat_arrays([one, other]) for one, other in zip(columns, others, strict=True))
