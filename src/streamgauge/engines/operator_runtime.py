"""One instance of a process operator, independent of the engine.

It sorts rows, passes them to the class in pieces, and adds lineage to the results. Input and output are Arrow tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import LINEAGE_TIMES, arrow_type
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators.api import BEFORE_ALL, INPUT, ORDINAL, ROW, TIME
from streamgauge.dataflow.operators.grouped_arrays import group_by_key, groups

PIECE_ROWS = 131_072
"""About the largest number of rows per call, to bound memory and use caches."""


@dataclass(frozen=True)
class ColumnLayout:
    """The schemas of each input (`sides`), of the class's input (`batch`) and of the results.

    Sides and results end with `_time`, int64 microseconds.
    """

    sides: tuple[pa.Schema, ...]
    batch: pa.Schema
    results: pa.Schema


def column_layouts(node: Process) -> ColumnLayout:
    copied = dict.fromkeys([*node.reads, *(name for _, name in node.lineage if name != ORDINAL), *node.order])
    inputs = [schema.columns(input_) for input_ in node.inputs]
    sides = tuple(_arrow({name: columns[name] for name in copied if name in columns}) for columns in inputs)
    types = {name: type_ for columns in inputs for name, type_ in columns.items()}
    batch = _arrow({name: types[name] for name in node.reads})
    batch = batch.append(pa.field(INPUT, pa.int8())) if len(sides) > 1 else batch
    if node.identity:
        batch = pa.schema([*batch, *(pa.field(name, pa.int64()) for name in LINEAGE_TIMES if name not in batch.names)])
    return ColumnLayout(sides, batch, _arrow(schema.columns(node)))


def _arrow(types: dict[str, str]) -> pa.Schema:
    return pa.schema([*((name, arrow_type(type_)) for name, type_ in types.items()), (TIME, pa.int64())])


class OperatorRuntime:
    """A process's class, made and opened. `layout` are the precomputed column layouts of the node, if available.

    Raises ValueError if the class's output does not match its node. Exceptions of the class propagate.
    """

    def __init__(self, node: Process, layout: ColumnLayout | None = None) -> None:
        self._node, self._layout = node, layout or column_layouts(node)
        self._class = node.operator(**dict(node.parameters))
        self._class.open(self._layout.batch)

    def restore(self, state: bytes) -> None:
        self._class.restore(state)

    def snapshot(self) -> bytes:
        return bytes(self._class.snapshot())

    def advance(self, sides: Sequence[pa.Table], watermark_us: int) -> Iterator[pa.Table]:
        """The results of all rows of an instance up to a watermark. `sides` are the rows per input, in any order.

        Without rows, the class is called once with an empty batch.
        """
        rows = in_order(_union(sides), self._node.order)
        times = rows.column(TIME).to_numpy()
        for start, end in pieces(times, PIECE_ROWS):
            yield self._called(
                rows.slice(start, end - start), self._watermark_after(times[:end], len(times), watermark_us)
            )

    def _watermark_after(self, seen: Int64s, rows: int, watermark_us: int) -> int:
        """The watermark after the rows with the times `seen`, the first of `rows` rows.

        The rows advance the watermark. A class with an identity gets at most the engine's watermark, so that results
        of the watermark come in one order from all instances.
        """
        so_far = int(seen[-1]) if len(seen) else watermark_us
        if self._node.identity:
            return watermark_us if len(seen) == rows else min(so_far, watermark_us)
        return max(so_far, watermark_us) if len(seen) == rows else so_far

    def each(self, rows: pa.Table) -> pa.Table:
        """The results of a stateless process, for rows in any order."""
        return self._called(rows, BEFORE_ALL)

    def _called(self, rows: pa.Table, watermark_us: int) -> pa.Table:
        results = self._class.process(self._batch(rows), watermark_us)
        columns = self._output_columns(results)
        columns |= self._times_of_results(results) if self._node.identity else self._of_rows(results, rows)
        return pa.Table.from_arrays([columns[name] for name in self._layout.results.names], schema=self._layout.results)

    def _batch(self, rows: pa.Table) -> pa.RecordBatch:
        columns = [
            _whole(rows.column(field.name))
            if field.name in rows.column_names
            else pa.array(np.zeros(len(rows), np.int64))
            for field in self._layout.batch
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._layout.batch)

    def _output_columns(self, results: Any) -> dict[str, pa.Array]:
        if not isinstance(results, pa.RecordBatch):
            raise ValueError(f"process {self._node.name!r}: gave {type(results).__name__}, and must give a RecordBatch")
        needed = [*(name for name, _ in self._node.gives), *((TIME, *LINEAGE_TIMES) if self._node.identity else (ROW,))]
        missing = [name for name in needed if name not in results.schema.names]
        if missing:
            had = ", ".join(results.schema.names)
            raise ValueError(f"process {self._node.name!r}: gave no column {', '.join(missing)}; it gave {had}")
        return {name: results.column(name).cast(self._layout.results.field(name).type) for name, _ in self._node.gives}

    def _times_of_results(self, results: pa.RecordBatch) -> dict[str, pa.Array]:
        return {name: results.column(column).cast(pa.int64()) for name, column in ((TIME, TIME), *self._node.lineage)}

    def _of_rows(self, results: pa.RecordBatch, rows: pa.Table) -> dict[str, pa.Array]:
        index = results.column(ROW)
        if index.null_count:
            raise ValueError(f"process {self._node.name!r}: {ROW} has nulls; a result without a row needs an identity")
        numbers = index.cast(pa.int64()).to_numpy()
        if self._node.broadcast and (rows.column(INPUT).to_numpy()[numbers] == len(self._node.inputs) - 1).any():
            raise ValueError(
                f"process {self._node.name!r}: "
                "gave a result for a row of its broadcast input, which every instance would repeat"
            )
        every = len(numbers) == len(rows) and bool(np.array_equal(numbers, np.arange(len(rows))))

        def lineage_column(column: str) -> pa.Array:
            if column == ORDINAL:
                return pa.array(ordinals(numbers))
            values = _whole(rows.column(column))
            return values if every else values.take(pa.array(numbers))

        return {TIME: lineage_column(TIME)} | {name: lineage_column(column) for name, column in self._node.lineage}


def in_order(rows: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Rows sorted by time, then input, then `ids`."""
    if (np.diff(rows.column(TIME).to_numpy()) > 0).all():
        return rows
    keys = [TIME, *(name for name in (INPUT, *ids) if name in rows.column_names)]
    if all(pa.types.is_integer(rows.schema.field(key).type) and not rows.column(key).null_count for key in keys):
        columns = [rows.column(key).to_numpy() for key in keys]
        if _are_sorted(columns):
            return rows
        # Rows come as a few sorted runs, which NumPy's stable sort only merges.
        order = pa.array(np.lexsort(columns[::-1]))
    else:
        order = pc.sort_indices(rows, sort_keys=[(key, "ascending") for key in keys])
    return rows.combine_chunks().take(order)


def _are_sorted(columns: Sequence[Int64s]) -> bool:
    """Whether rows are sorted by these columns."""
    equal = np.ones(max(len(columns[0]) - 1, 0), np.bool_)
    for column in columns:
        before, after = column[:-1], column[1:]
        if (equal & (after < before)).any():
            return False
        equal &= after == before
    return True


def pieces(times: Int64s, rows_max: int) -> Iterator[tuple[int, int]]:
    """[start, end) of parts of about `rows_max` rows, split between different times. No rows give one empty part."""
    start = 0
    while True:
        end = min(start + rows_max, len(times))
        if end < len(times):
            end = int(np.searchsorted(times, times[end - 1], side="right"))
        yield start, end
        if end == len(times):
            return
        start = end


def ordinals(rows: Int64s) -> Int64s:
    """The number of earlier occurrences of each number, shape (rows,): 5, 7, 5, 5 gives 0, 0, 1, 2."""
    order = group_by_key(rows)
    first, group = groups(rows[order])
    earlier = np.empty(len(rows), np.int64)
    earlier[order] = np.arange(len(rows)) - first[group]
    return earlier


def _union(sides: Sequence[pa.Table]) -> pa.Table:
    if len(sides) == 1:
        return sides[0]
    tagged = [
        side.append_column(INPUT, pa.array(np.full(len(side), number, np.int8))) for number, side in enumerate(sides)
    ]
    return pa.concat_tables(tagged, promote_options="default")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array; a single chunk is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
