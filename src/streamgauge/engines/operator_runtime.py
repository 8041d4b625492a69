"""One instance of a process: its class, and what surrounds it on every engine.

Rows are put in order, handed over in pieces, and results get their lineage back. Arrow in, Arrow out; nothing here
knows how an engine brought the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.core.lineage_columns import EVENT_TIME, INGEST_TIME
from streamgauge.core.schema import arrow_type
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators.api import BEFORE_ALL, INPUT, ORDINAL, ROW, TIME

PIECE_ROWS = 131_072
"""A class gets about this many rows at a time, at most: memory has a bound, and caches are used."""
_STATED = (EVENT_TIME, INGEST_TIME)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnLayout:
    """Columns on the way: `sides`, of each input's rows; `batch`, what the class is given; `results`, what leaves.

    Sides and results end with `_time`, int64 microseconds.
    """

    sides: tuple[pa.Schema, ...]
    batch: pa.Schema
    results: pa.Schema


def column_layouts(node: Process) -> ColumnLayout:
    carried = dict.fromkeys([*node.reads, *(name for _, name in node.lineage if name != ORDINAL), *node.order])
    inputs = [schema.columns(input_) for input_ in node.inputs]
    sides = tuple(_arrow({name: there[name] for name in carried if name in there}) for there in inputs)
    types = {name: type_ for there in inputs for name, type_ in there.items()}
    batch = _arrow({name: types[name] for name in node.reads})
    batch = batch.append(pa.field(INPUT, pa.int8())) if len(sides) > 1 else batch
    if node.identity:
        batch = pa.schema([*batch, *(pa.field(name, pa.int64()) for name in _STATED if name not in batch.names)])
    return ColumnLayout(sides, batch, _arrow(schema.columns(node)))


def _arrow(types: dict[str, str]) -> pa.Schema:
    return pa.schema([*((name, arrow_type(type_)) for name, type_ in types.items()), (TIME, pa.int64())])


class OperatorRuntime:
    """A process's class, made and opened; `known` are the node's shapes, where they were computed before.

    Raises ValueError where the class gives something else than its node says; what the class itself raises goes on.
    """

    def __init__(self, node: Process, known: ColumnLayout | None = None) -> None:
        self._node, self._shapes = node, known or column_layouts(node)
        self._class = node.operator(**dict(node.parameters))
        self._class.open(self._shapes.batch)

    def restore(self, state: bytes) -> None:
        self._class.restore(state)

    def snapshot(self) -> bytes:
        return bytes(self._class.snapshot())

    def advance(self, sides: Sequence[pa.Table], watermark_us: int) -> Iterator[pa.Table]:
        """Results of all rows of an instance up to a watermark; `sides` are its inputs' rows, in any order.

        Where there are no rows the class is called once, with an empty batch.
        """
        rows = in_order(_union(sides), self._node.order)
        times = rows.column(TIME).to_numpy()
        for start, end in pieces(times, PIECE_ROWS):
            yield self._called(rows.slice(start, end - start), self._reached(times[:end], len(times), watermark_us))

    def _reached(self, given: Ints, rows: int, watermark_us: int) -> int:
        """The watermark to tell after `given`, the first of `rows` times.

        Rows themselves show how far time has come. But results of the watermark must come in one order from all
        instances, so those that give them are told the engine's own, and never more.
        """
        so_far = int(given[-1]) if len(given) else watermark_us
        if self._node.identity:
            return watermark_us if len(given) == rows else min(so_far, watermark_us)
        return max(so_far, watermark_us) if len(given) == rows else so_far

    def each(self, rows: pa.Table) -> pa.Table:
        """Results of a stateless process, for rows as they come."""
        return self._called(rows, BEFORE_ALL)

    def _called(self, rows: pa.Table, watermark_us: int) -> pa.Table:
        given = self._batch(rows)
        results = self._class.process(given, watermark_us)
        own = self._own(results)
        lineage = self._stated(results) if self._node.identity else self._of_rows(results, rows)
        columns = [(own | lineage)[name] for name in self._shapes.results.names]
        return pa.Table.from_arrays(columns, schema=self._shapes.results)

    def _batch(self, rows: pa.Table) -> pa.RecordBatch:
        columns = [
            _whole(rows.column(field.name)) if field.name in rows.column_names else _zeros(len(rows))
            for field in self._shapes.batch
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._shapes.batch)

    def _own(self, results: Any) -> dict[str, pa.Array]:
        if not isinstance(results, pa.RecordBatch):
            raise ValueError(f"process {self._node.name!r}: gave {type(results).__name__}, and must give a RecordBatch")
        needed = [name for name, _ in self._node.gives]
        needed += [TIME, *_STATED] if self._node.identity else [ROW]
        missing = [name for name in needed if name not in results.schema.names]
        if missing:
            had = ", ".join(results.schema.names)
            raise ValueError(f"process {self._node.name!r}: gave no column {', '.join(missing)}; it gave {had}")
        types = self._shapes.results
        return {name: results.column(name).cast(types.field(name).type) for name, _ in self._node.gives}

    def _stated(self, results: pa.RecordBatch) -> dict[str, pa.Array]:
        names = {TIME: TIME, **dict(self._node.lineage)}
        return {name: results.column(column).cast(pa.int64()) for name, column in names.items()}

    def _of_rows(self, results: pa.RecordBatch, rows: pa.Table) -> dict[str, pa.Array]:
        index = results.column(ROW)
        if index.null_count:
            raise ValueError(f"process {self._node.name!r}: {ROW} has nulls; a result without a row needs an identity")
        numbers = index.cast(pa.int64()).to_numpy()
        if self._node.broadcast and (rows.column(INPUT).to_numpy()[numbers] == len(self._node.inputs) - 1).any():
            rule = "gave a result of a row of its broadcast input, which every instance would give"
            raise ValueError(f"process {self._node.name!r}: {rule}")
        every = len(numbers) == len(rows) and bool(np.array_equal(numbers, np.arange(len(rows))))

        def of(column: str) -> pa.Array:
            if column == ORDINAL:
                return pa.array(ordinals(numbers))
            there = _whole(rows.column(column))
            return there if every else there.take(pa.array(numbers))

        return {TIME: of(TIME)} | {name: of(column) for name, column in self._node.lineage}


def in_order(rows: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Rows by time, then input, then `ids`."""
    times = rows.column(TIME).to_numpy()
    if (np.diff(times) > 0).all():
        return rows
    inputs = [INPUT] if INPUT in rows.column_names else []
    keys = [TIME, *inputs, *(name for name in ids if name in rows.column_names)]
    if all(pa.types.is_integer(rows.schema.field(key).type) and not rows.column(key).null_count for key in keys):
        columns = [rows.column(key).to_numpy() for key in keys]
        if _are_sorted(columns):
            return rows
        # Rows come as a few sorted runs, which NumPy's stable sort joins without sorting them again.
        order = pa.array(np.lexsort(columns[::-1]))
    else:
        order = pc.sort_indices(rows, sort_keys=[(key, "ascending") for key in keys])
    return rows.combine_chunks().take(order)


def _are_sorted(columns: Sequence[Ints]) -> bool:
    """Whether rows are in the order of the first of them, equal ones in that of the second, and so on."""
    equal = np.ones(max(len(columns[0]) - 1, 0), np.bool_)
    for column in columns:
        before, after = column[:-1], column[1:]
        if (equal & (after < before)).any():
            return False
        equal &= after == before
    return True


def pieces(times: Ints, rows_max: int) -> Iterator[tuple[int, int]]:
    """[start, end) of parts of about `rows_max` rows, cut between different times; one empty part of no rows."""
    start = 0
    while True:
        end = min(start + rows_max, len(times))
        if end < len(times):
            end = int(np.searchsorted(times, times[end - 1], side="right"))
        yield start, end
        if end == len(times):
            return
        start = end


def ordinals(rows: Ints) -> Ints:
    """How often each number was there before: 5, 7, 5, 5 gives 0, 0, 1, 2."""
    order = np.argsort(rows, kind="stable")
    grouped = rows[order]
    first = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1])) if len(rows) else np.empty(0, np.int64)
    lengths = np.diff(np.append(first, len(rows)))
    found = np.empty(len(rows), np.int64)
    found[order] = np.arange(len(rows)) - np.repeat(first, lengths)
    return found


def _union(sides: Sequence[pa.Table]) -> pa.Table:
    if len(sides) == 1:
        return sides[0]
    tagged = [
        side.append_column(INPUT, pa.array(np.full(len(side), number, np.int8))) for number, side in enumerate(sides)
    ]
    return pa.concat_tables(tagged, promote_options="default")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _zeros(rows: int) -> pa.Array:
    return pa.array(np.zeros(rows, np.int64))
