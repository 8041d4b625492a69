"""Shared scan: one query for several sinks. Each row has one nullable struct column per sink."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.core.units import backquote, by_reference
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Node, Process, RunningAggregate, Select, Where
from streamgauge.dataflow.operators.api import TIME
from streamgauge.engines.operator_runtime import column_layouts
from streamgauge.engines.spark.lowering.arrow_blocks import ROWS
from streamgauge.engines.spark.lowering.columns import column, columns
from streamgauge.engines.spark.lowering.partial_aggregation import (
    RowView,
    aggregated,
    input_columns,
    partial_aggregates,
    parts_of,
)
from streamgauge.engines.spark.lowering.queries import process_of, steps_to
from streamgauge.engines.spark.lowering.row_counter import RowCounter

INPUT, SELECTED, TAG, ROW = "_input", "_kept", "_tag", "_row"
Branch = tuple[Sequence[Select | Where], Iterable[str]]
"""Row-wise steps, and the columns after them."""


def project_branches(rows: DataFrame, branches: Sequence[Branch]) -> DataFrame:
    """A struct column per branch, null if the branch filters the row out. Rows without any branch are dropped.

    Expressions behind a condition are evaluated only if it holds, as in a separate query.
    """
    frame = rows.select(F.struct("*").alias(INPUT))
    made: list[str] = []
    for number, (steps, own) in enumerate(branches):
        aside = [INPUT, *made]
        frame = _apply_steps(frame, steps, aside)
        made.append(f"_sink_{number}")
        frame = frame.select(*aside, F.when(F.col(SELECTED), F.struct(*map(_column, own))).alias(made[-1]))
    return frame.select(*made).where(" OR ".join(f"{name} IS NOT NULL" for name in made))


def split_by_sink(rows: DataFrame, branches: Sequence[Branch]) -> tuple[DataFrame, list[RowView]]:
    """Rows for Python with the columns of every branch, and a view per branch. Unchanged columns are shared."""
    frame = rows.select(F.struct("*").alias(INPUT))
    unchanged_columns: dict[str, Column] = {}
    made: list[str] = []
    sides = []
    for number, (steps, own) in enumerate(branches):
        unchanged = _unchanged(steps, rows.columns)
        renamed = {name: f"_as_{unchanged[name]}" if name in unchanged else f"_{number}_{name}" for name in own}
        # Taken from the input row, because behind a condition they would be null for filtered rows.
        unchanged_columns |= {
            f"_as_{unchanged[name]}": F.col(f"{INPUT}.{backquote(unchanged[name])}")
            for name in own
            if name in unchanged
        }
        selected_column = f"{SELECTED}_{number}" if any(isinstance(step, Where) for step in steps) else ""
        sides.append(RowView(renamed, selected_column))
        new = [_column(name).alias(name_in_row) for name, name_in_row in renamed.items() if name not in unchanged]
        new += [F.col(SELECTED).alias(selected_column)] if selected_column else []
        frame = _apply_steps(frame, steps, [INPUT, *made]).select(INPUT, *columns(made), *new)
        made = frame.columns[1:]
    return frame.select(*columns(made), *[each.alias(name) for name, each in unchanged_columns.items()]), sides


def _apply_steps(frame: DataFrame, steps: Iterable[Select | Where], aside: Sequence[str]) -> DataFrame:
    """The columns `aside`, SELECTED, and the result of the steps on INPUT, null if a condition does not hold."""
    frame = frame.select(*columns(aside), F.lit(True).alias(SELECTED), f"{INPUT}.*")
    for step in steps:
        if isinstance(step, Where):
            frame = frame.withColumn(
                SELECTED, F.coalesce(F.when(F.col(SELECTED), F.expr(step.predicate)), F.lit(False))
            )
        else:
            chosen = [F.when(F.col(SELECTED), F.expr(text)).alias(name) for name, text in step.columns]
            frame = frame.select(*columns(aside), SELECTED, *chosen)
    return frame


def _column(name: str) -> Column:
    """A column after the steps. The row's time is always available."""
    return F.col(f"{INPUT}.{TIME}") if name == TIME else column(name)


def _unchanged(steps: Iterable[Select | Where], available: Iterable[str]) -> dict[str, str]:
    """Columns that the steps pass unchanged: name after to name before."""
    unchanged = {name: name for name in available}
    for step in steps:
        if isinstance(step, Select):
            by_text = by_reference(unchanged)
            unchanged = {name: by_text[text] for name, text in step.columns if text in by_text} | {TIME: TIME}
    return unchanged


def fuse_aggregates(
    rows: DataFrame, shared: Node, aggregates: Sequence[RunningAggregate], counter: RowCounter
) -> DataFrame:
    """Running aggregates over one operator, as a single aggregate by a tag and the keys of all.

    `rows` are the rows of the node `shared`. If a process lies between it and some aggregates, Python computes partials
    of all, and `counter` counts the rows of the process. Keys of one type share a column, and common aggregates are
    computed once.
    """
    process = process_of(aggregates, shared)
    behind = [process is not None and isinstance(node.input, Process) for node in aggregates]
    branches: list[Branch] = [
        (steps_to(node.input, shared), input_columns(node))
        for node, is_behind in zip(aggregates, behind, strict=True)
        if not is_behind
    ]
    if process is None:
        return _aggregated(project_branches(rows, branches), list(map(_of_rows, aggregates)))
    branches.append((steps_to(process.inputs[0], shared), column_layouts(process).sides[0].names))
    frame, sides = split_by_sink(rows, branches)
    parts = counter.behind(process.name, partial_aggregates(process, aggregates, behind, frame, sides), ROWS)
    return _aggregated(parts, list(map(_of_parts, aggregates)))


@dataclass(frozen=True)
class _Aggregate:
    """Keys and input columns with their types, and the aggregates as (name, expression)."""

    keys: dict[str, str]
    inputs: dict[str, str]
    aggregates: tuple[tuple[str, str], ...]


def _of_rows(node: RunningAggregate) -> _Aggregate:
    available = schema.columns(node.input)
    return _Aggregate({key: available[key] for key in node.keys}, aggregated(node), node.aggregates)


def _of_parts(node: RunningAggregate) -> _Aggregate:
    available, parts = schema.columns(node.input), parts_of(node) or ()
    joined = tuple((name, part.merged) for (name, _), part in zip(node.aggregates, parts, strict=True))
    return _Aggregate({key: available[key] for key in node.keys}, {part.name: part.kind for part in parts}, joined)


def _aggregated(rows: DataFrame, aggregates: Sequence[_Aggregate]) -> DataFrame:
    """Aggregates rows that have a nullable struct column per aggregate. The result has the same form."""
    key_columns = [_key_columns(node.keys) for node in aggregates]
    kinds = {key_column: kind for of_node in key_columns for key_column, kind in of_node.values()}
    inputs = {name: kind for node in aggregates for name, kind in node.inputs.items()}
    each = []
    for number, (node, of_node) in enumerate(zip(aggregates, key_columns, strict=True)):
        sink = f"_sink_{number}"
        key_of = {key_column: f"{sink}.{backquote(name)}" for name, (key_column, _) in of_node.items()}
        values_ = [_or_null(key_of.get(key_column), kind).alias(key_column) for key_column, kind in kinds.items()]
        values_ += [
            _or_null(f"{sink}.{backquote(name)}" if name in node.inputs else None, kind).alias(name)
            for name, kind in inputs.items()
        ]
        each.append(F.when(F.col(sink).isNotNull(), F.struct(F.lit(number).alias(TAG), *values_)))
    exploded = rows.select(F.explode(F.array(*each)).alias(ROW)).where(f"{ROW} IS NOT NULL")
    texts = list(dict.fromkeys(text for node in aggregates for _, text in node.aggregates))
    computed = [F.expr(text).alias(f"_value_{number}") for number, text in enumerate(texts)]
    grouped = exploded.select(f"{ROW}.*").groupBy(TAG, *columns(kinds)).agg(*computed)
    sinks = []
    for number, (node, of_node) in enumerate(zip(aggregates, key_columns, strict=True)):
        keys = [column(of_node[key][0]).alias(key) for key in node.keys]
        values = [F.col(f"_value_{texts.index(text)}").alias(name) for name, text in node.aggregates]
        sinks.append(F.when(F.col(TAG) == number, F.struct(*keys, *values)).alias(f"_sink_{number}"))
    return grouped.select(*sinks)


def _key_columns(keys: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Key to (column shared with keys of the same type in other aggregates, type)."""
    numbers: dict[str, count[int]] = defaultdict(count)
    return {key: (f"_key_{kind}_{next(numbers[kind])}", kind) for key, kind in keys.items()}


def _or_null(text: str | None, kind: str) -> Column:
    return F.col(text) if text is not None else F.lit(None).cast(kind)
