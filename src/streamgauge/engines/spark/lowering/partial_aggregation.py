"""Partial aggregation in Python for running aggregates that read a stateless process.

Otherwise each row would leave Python and be grouped by Spark for every aggregate. Here Python groups the rows of a
batch, both results of the process and rows that bypass it, and only partial aggregates leave Python. Spark merges them.
Supported are aggregates with exact partials: counts, minimum and maximum of integers and times, sums of `int`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from streamgauge.core.schema import arrow_type
from streamgauge.core.units import backquote
from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import Process, RunningAggregate
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.lowering.arrow_blocks import ROWS, Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART = re.compile(r"\s*(count|min|max|sum)\s*\(\s*(\*|\w+)\s*\)\s*", re.IGNORECASE)
_EXACT = {"min": ("int", "bigint", "timestamp"), "max": ("int", "bigint", "timestamp"), "sum": ("int",)}


@dataclass(frozen=True)
class Part:
    """A partial aggregate: its column, function and argument (empty: rows), Spark type, and merge expression."""

    name: str
    function: str
    argument: str
    kind: str
    merged: str


@dataclass(frozen=True)
class RowView:
    """The columns of one aggregate, or of the process, in a row for Python: name to column in the row.

    `selected` names a boolean column that selects rows; empty selects all.
    """

    columns: dict[str, str]
    selected: str

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        arrays = [batch.column(name_in_row) for name_in_row in self.columns.values()]
        rows_of_side = pa.Table.from_arrays(arrays, names=list(self.columns))
        return rows_of_side.filter(batch.column(self.selected)) if self.selected else rows_of_side


def aggregated(node: RunningAggregate) -> dict[str, str]:
    """The columns in a running aggregate's expressions, with their types."""
    used_columns = check.columns_of_all(node.aggregates)
    return {name: kind for name, kind in schema.columns(node.input).items() if name in used_columns}


def input_columns(node: RunningAggregate) -> list[str]:
    """The columns that a running aggregate reads, keys first."""
    return list(dict.fromkeys((*node.keys, *aggregated(node))))


def parts_of(node: RunningAggregate) -> tuple[Part, ...] | None:
    """The partial of each aggregate, in order. None if one has no exact partial or Arrow cannot group by a key."""
    kinds = schema.columns(node.input)
    if any(kinds[key].startswith("array<") for key in node.keys):
        return None
    parts = [_part(text, kinds) for _, text in node.aggregates]
    return tuple(part for part in parts if part is not None) if all(parts) else None


def _part(text: str, kinds: dict[str, str]) -> Part | None:
    match = _PART.fullmatch(text)
    if match is None:
        return None
    function, argument = match.group(1).lower(), match.group(2)
    column = "" if argument == "*" else argument
    if function != "count" and kinds.get(column) not in _EXACT[function]:
        return None
    kind = kinds[column] if function in ("min", "max") else "bigint"
    name = f"_{function}_{column}"
    return Part(name, function, column, kind, f"{'sum' if function == 'count' else function}({name})")


def partial_aggregates(
    process: Process, aggregates: Sequence[RunningAggregate], behind: Sequence[bool], frame: DataFrame,
    sides: Sequence[RowView],
) -> DataFrame:  # fmt: skip
    """A nullable struct column of keys and partials per aggregate (one is set in each row), and the column ROWS.

    `behind`: whether each aggregate reads the process. `frame` has the columns of `sides`: those of each aggregate
    that bypasses the process, then those of the process.
    """
    names = [f"_sink_{number}" for number in range(len(aggregates))]
    texts = [
        f"{name} struct<{', '.join(f'{backquote(each)}: {kind}' for each, kind in of_parts(node).items())}>"
        for name, node in zip(names, aggregates, strict=True)
    ]
    grouper = _maker(process, list(map(_grouping, aggregates)), behind, sides, [*names, ROWS])
    return frame.mapInArrow(grouper, ", ".join((*texts, f"{ROWS} bigint")))


def of_parts(node: RunningAggregate) -> dict[str, str]:
    """The keys and partials of an aggregate, with their types."""
    kinds = schema.columns(node.input)
    return {key: kinds[key] for key in node.keys} | {part.name: part.kind for part in parts_of(node) or ()}


def _maker(
    process: Process, grouped: Sequence[_Grouping], behind: Sequence[bool], sides: Sequence[RowView], names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    # Computed here, so that workers need neither the binder nor the parser of expressions.
    layouts = column_layouts(process)

    def group_batches(batches: Iterable[pa.RecordBatch]) -> Batches:
        instance = OperatorRuntime(process, layouts)
        for batch in batches:
            *other_rows, process_rows = (side.rows(batch) for side in sides)
            results = instance.each(process_rows.cast(layouts.sides[0]))
            remaining = iter(other_rows)
            parts = [
                group.parts(results if is_behind else next(remaining))
                for group, is_behind in zip(grouped, behind, strict=True)
            ]
            yield _stack_columns([*parts, pa.array([len(results)], pa.int64())], names)

    return group_batches


@dataclass(frozen=True)
class _Grouping:
    """How Arrow computes partials; `functions` are (column or empty for rows, function) pairs."""

    keys: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]
    schema: pa.Schema

    def parts(self, rows: pa.Table) -> pa.StructArray:
        """One struct for each group of rows."""
        # Renamed, because Arrow's names of aggregates may clash with those of keys.
        keys = {f"key{index}": rows.column(key) for index, key in enumerate(self.keys)}
        values = {f"value{index}": rows.column(name) for index, (name, _) in enumerate(self.functions) if name}
        requested = [
            (f"value{index}", function) if name else ([], "count_all")
            for index, (name, function) in enumerate(self.functions)
        ]
        grouped = pa.table({**keys, **values}).group_by(list(keys), use_threads=False).aggregate(requested)
        names = [f"{value}_{function}" if value else function for value, function in requested]
        whole = grouped.select([*keys, *names]).rename_columns(self.schema.names).cast(self.schema)
        return whole.to_struct_array().combine_chunks()


def _grouping(node: RunningAggregate) -> _Grouping:
    requested = tuple((part.argument, part.function) for part in dict.fromkeys(parts_of(node) or ()))
    layout = pa.schema([(name, arrow_type(kind)) for name, kind in of_parts(node).items()])
    return _Grouping(node.keys, requested, layout)


def _stack_columns(columns: Sequence[pa.Array], names: list[str]) -> pa.RecordBatch:
    """Stacks the columns: each row has a value in one column and nulls in the others."""
    ends = list(accumulate(map(len, columns)))
    stacked = [
        pa.concat_arrays([pa.nulls(end - len(column), column.type), column, pa.nulls(ends[-1] - end, column.type)])
        for column, end in zip(columns, ends, strict=True)
    ]
    return pa.RecordBatch.from_arrays(stacked, names)
