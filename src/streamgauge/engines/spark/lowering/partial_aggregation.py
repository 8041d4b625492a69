"""Running aggregates beside a process without keys, by parts that its Python makes.

Rows that a process made would each leave Python, become a row for every aggregate and be grouped by Spark. Here Python
groups the rows that it has at a time, what the process made and what goes past it alike, and only the parts leave: one
row for each group. Spark joins them as it joins its own. Only aggregates whose parts are as exact
as the whole can be made so: counts, least and greatest of whole numbers and times, sums of `int`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from streamgauge.core.schema import arrow_type
from streamgauge.core.units import backquote
from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import Process, RunningAggregate
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.lowering.arrow_blocks import ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART = re.compile(r"\s*(count|min|max|sum)\s*\(\s*(\*|\w+)\s*\)\s*", re.IGNORECASE)
_EXACT = {"min": ("int", "bigint", "timestamp"), "max": ("int", "bigint", "timestamp"), "sum": ("int",)}
_MERGE = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Part:
    """What is made of a group in Python: its column, the function with its argument (empty: rows), its Spark type, and
    the expression that joins it.
    """

    name: str
    function: str
    argument: str
    kind: str
    merged: str


@dataclass(frozen=True)
class RowView:
    """Where in a row for Python are the columns of one aggregate, or of the process: name to the column there.

    `selected` names the column that says of which rows; empty: of all.
    """

    columns: dict[str, str]
    selected: str

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        arrays = [batch.column(name_in_row) for name_in_row in self.columns.values()]
        found = pa.Table.from_arrays(arrays, names=list(self.columns))
        return found.filter(batch.column(self.selected)) if self.selected else found


def aggregated(node: RunningAggregate) -> dict[str, str]:
    """The columns that a running aggregate aggregates, with their types."""
    named = check.columns_of_all(node.aggregates)
    return {name: kind for name, kind in schema.columns(node.input).items() if name in named}


def taken(node: RunningAggregate) -> list[str]:
    """The columns that a running aggregate reads, keys first."""
    return list(dict.fromkeys((*node.keys, *aggregated(node))))


def given(process: Process) -> list[str]:
    """The columns that a process without keys takes."""
    return column_layouts(process).sides[0].names


def parts_of(node: RunningAggregate) -> tuple[Part, ...] | None:
    """The part of each of its aggregates, in their order; None where one has none that is exact, or Arrow cannot group
    by a key.
    """
    kinds = schema.columns(node.input)
    if any(kinds[key].startswith("array<") for key in node.keys):
        return None
    found = [_part(text, kinds) for _, text in node.aggregates]
    return tuple(part for part in found if part is not None) if all(found) else None


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
    return Part(name, function, column, kind, f"{_MERGE[function]}({name})")


def partial_aggregates(
    process: Process, aggregates: Sequence[RunningAggregate], behind: Sequence[bool], frame: DataFrame,
    sides: Sequence[RowView],
) -> DataFrame:  # fmt: skip
    """For each aggregate a nullable struct of its keys and parts, one not null a row; and the column ROWS.

    `frame` has the columns of `sides`: of each aggregate that is not `behind` the process, and last of the process.
    """
    names = [f"_sink_{number}" for number in range(len(aggregates))]
    grouped = [_grouping(node) for node in aggregates]
    texts = [
        f"{name} struct<{', '.join(f'{backquote(each)}: {kind}' for each, kind in of_parts(node).items())}>"
        for name, node in zip(names, aggregates, strict=True)
    ]
    made = _maker(process, grouped, behind, sides, [*names, ROWS])
    return frame.mapInArrow(made, ", ".join((*texts, f"{ROWS} bigint")))


def of_parts(node: RunningAggregate) -> dict[str, str]:
    """The columns of an aggregate's parts, with their types: its keys, then the parts."""
    kinds = schema.columns(node.input)
    return {key: kinds[key] for key in node.keys} | {part.name: part.kind for part in parts_of(node) or ()}


def _maker(
    process: Process, grouped: Sequence[_Grouping], behind: Sequence[bool], sides: Sequence[RowView], names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    # Computed here: workers then need neither the binder nor the parser of expressions.
    wanted = column_layouts(process)

    def made(batches: Iterable[pa.RecordBatch]) -> Batches:
        instance = OperatorRuntime(process, wanted)
        for batch in batches:
            *past, own = (side.rows(batch) for side in sides)
            results = instance.each(own.cast(wanted.sides[0]))
            remaining = iter(past)
            parts = [
                group.parts(results if is_behind else next(remaining))
                for group, is_behind in zip(grouped, behind, strict=True)
            ]
            yield _stack_columns([*parts, pa.array([len(results)], pa.int64())], names)

    return made


@dataclass(frozen=True)
class _Grouping:
    """How Arrow makes the parts of an aggregate; `functions`: of which column, empty for rows, by which function."""

    keys: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]
    schema: pa.Schema

    def parts(self, rows: pa.Table) -> pa.StructArray:
        """One struct for each group of rows."""
        # Under names of ours: Arrow calls a part by what it was made of, which may be what a key is called.
        keys = {f"key{place}": rows.column(key) for place, key in enumerate(self.keys)}
        values = {f"value{place}": rows.column(name) for place, (name, _) in enumerate(self.functions) if name}
        requested = [
            (f"value{place}", function) if name else ([], "count_all")
            for place, (name, function) in enumerate(self.functions)
        ]
        found = pa.table({**keys, **values}).group_by(list(keys), use_threads=False).aggregate(requested)
        names = [f"{value}_{function}" if value else function for value, function in requested]
        columns = [found.column(name) for name in (*keys, *names)]
        whole = pa.Table.from_arrays(columns, names=self.schema.names).cast(self.schema).combine_chunks()
        arrays = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in whole.columns]
        return pa.StructArray.from_arrays(arrays, fields=list(self.schema))


def _grouping(node: RunningAggregate) -> _Grouping:
    parts = dict.fromkeys(parts_of(node) or ())
    requested = tuple((part.argument, part.function) for part in parts)
    kinds = of_parts(node)
    return _Grouping(node.keys, requested, pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()]))


def _stack_columns(columns: Sequence[pa.Array], names: list[str]) -> pa.RecordBatch:
    """The rows of every column, one after the other; the other columns are null there."""
    whole = []
    for place, column in enumerate(columns):
        before, after = sum(map(len, columns[:place])), sum(map(len, columns[place + 1 :]))
        whole.append(pa.concat_arrays([pa.nulls(before, column.type), column, pa.nulls(after, column.type)]))
    return pa.RecordBatch.from_arrays(whole, names)
