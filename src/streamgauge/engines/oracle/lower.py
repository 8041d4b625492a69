"""A flow as DuckDB SQL: one function a node, each a statement of its semantics that shares nothing with any engine.

Terms. *time*: every step carries a hidden column `__time`, BIGINT microseconds: the event time of a source's row, the
last microsecond of its window for a result of a window (so windows chain as on engines). *w* (`__w`): the start of a
window, a multiple of the slide; an event of time t lies in the windows with w <= t < w + range. All of it is
whole-number arithmetic, right before 1970 too; only the finished columns are TIMESTAMP. No column of a flow begins with
two underscores, so the hidden ones clash with none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import singledispatch

from streamgauge.events import EVENT_TIME, WINDOW_END, WINDOW_START
from streamgauge.flow import expressions, schema
from streamgauge.flow.expressions import DUCKDB_TYPES, Checked, quote
from streamgauge.flow.nodes import (
    Flow,
    Node,
    RunningAggregate,
    Select,
    Source,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)

TIME = "__time"
Relations = Mapping[str, str]

# A join's candidates are looked for in buckets of so many ranges: wide ones repeat fewer rows, narrow ones pair fewer.
_BUCKET_RANGES = 4


def sql(flow: Flow, relations: Relations, points: str | None = None) -> str:
    """DuckDB SQL that computes the results of a flow of one sink.

    `relations` maps each stream to a relation (or a bracketed query).
    Relations have the fields that the flow needs and `event_time`, BIGINT microseconds. A running aggregate gives its
    value at every event time; `points`, a relation with its keys and `event_time`, asks for the values at those event
    times only, and the last one of each key: ten times faster, where its aggregates are sums, counts, minima, maxima.
    """
    last = flow.sink.input
    names = ", ".join(quote(name) for name in schema.columns(last))
    if points is not None and isinstance(last, RunningAggregate) and _divisible(last) is not None:
        return f"SELECT {names} FROM ({_running_at(last, relations, points)})"
    return f"SELECT {names} FROM ({lower(last, relations)})"


def kinds() -> tuple[type, ...]:
    """The node kinds that can be lowered."""
    return tuple(kind for kind in lower.registry if kind is not object)


@singledispatch
def lower(node: Node, relations: Relations) -> str:
    """One node as a query that gives its columns and `__time`."""
    raise TypeError(f"the oracle has no lowering for a {type(node).__name__}")


@lower.register
def _(node: Source, relations: Relations) -> str:
    # Columns that nothing reads may be missing from the relation, so they are not named: the query above picks.
    return f"SELECT *, {quote(EVENT_TIME)} AS {TIME} FROM {relations[node.name]}"


@lower.register
def _(node: Select, relations: Relations) -> str:
    there = schema.columns(node.input)
    columns = ", ".join(f"{expressions.to_duckdb(text, there)} AS {quote(name)}" for name, text in node.columns)
    return f"SELECT {columns}, {TIME} FROM ({lower(node.input, relations)})"


@lower.register
def _(node: Where, relations: Relations) -> str:
    predicate = expressions.to_duckdb(node.predicate, schema.columns(node.input))
    return f"SELECT * FROM ({lower(node.input, relations)}) WHERE {predicate}"


@lower.register
def _(node: WindowAggregate, relations: Relations) -> str:
    parts = _divisible(node)
    rows = lower(node.input, relations)
    grouped = _each_window(node, rows) if parts is None else _by_panes(node, rows, parts)
    aggregates = ", ".join(quote(name) for name, _ in node.aggregates)
    return f"SELECT {_names(node.keys)}, {_window_columns(node.window)}, {aggregates} FROM ({grouped})"


@lower.register
def _(node: RunningAggregate, relations: Relations) -> str:
    """The value at every event time: all rows of the key up to and with that time; rows of one time give one row."""
    there = schema.columns(node.input)
    aggregates = ", ".join(
        f"{expressions.checked(text, there, node.name).over} AS {quote(name)}" for name, text in node.aggregates
    )
    keys = _names(node.keys)
    return (
        f"SELECT {keys}, {aggregates}, {TIME} FROM ({lower(node.input, relations)})"
        f" WINDOW running AS (PARTITION BY {keys} ORDER BY {TIME} RANGE UNBOUNDED PRECEDING)"
        f" QUALIFY lead({TIME}) OVER (PARTITION BY {keys} ORDER BY {TIME}) IS DISTINCT FROM {TIME}"
    )


@lower.register
def _(node: WindowJoin, relations: Relations) -> str:
    left, right = lower(node.left, relations), lower(node.right, relations)
    pairs = _pairs_tumbling(node, left, right) if node.window.panes == 1 else _pairs_hopping(node, left, right)
    others = [name for side in (node.left, node.right) for name in schema.columns(side) if name not in node.keys]
    return f"SELECT {_names((*node.keys, *others))}, {_window_columns(node.window)} FROM ({pairs})"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(quote(name) for name in names)


def _floor(time: str, step: int) -> str:
    """The greatest multiple of `step` that is not after `time` (DuckDB's own division rounds towards zero)."""
    return f"({time} - (({time} % {step}) + {step}) % {step})"


def _window_columns(window: Window) -> str:
    return (
        f"make_timestamp(__w) AS {quote(WINDOW_START)}, make_timestamp(__w + {window.range_us}) AS {quote(WINDOW_END)},"
        f" __w + {window.range_us} - 1 AS {TIME}"
    )


def _aggregate_checks(node: WindowAggregate | RunningAggregate) -> list[tuple[str, Checked]]:
    there = schema.columns(node.input)
    return [(name, expressions.checked(text, there, node.name)) for name, text in node.aggregates]


def _divisible(node: WindowAggregate | RunningAggregate) -> list[tuple[str, Checked]] | None:
    """The aggregates, where each can be computed in parts that are then joined; None where one cannot."""
    checks = _aggregate_checks(node)
    return checks if all(check.combine for _, check in checks) else None


def _combined(name: str, check: Checked, over: str = "") -> str:
    return f"CAST({check.combine}({quote(name)}){over} AS {DUCKDB_TYPES[check.type]}) AS {quote(name)}"


def _windows_of(window: Window, time: str, rows: str) -> str:
    """Each row once for every window that `time` lies in, with `w`."""
    last = _floor(time, window.slide_us)
    if window.panes == 1:
        return f"SELECT *, {last} AS __w FROM ({rows})"
    every = f"SELECT *, {last} - __k * {window.slide_us} AS __w FROM ({rows}), range({window.panes}) AS __windows(__k)"
    return f"SELECT * FROM ({every}) WHERE {time} < __w + {window.range_us}"


def _each_window(node: WindowAggregate, rows: str) -> str:
    aggregates = ", ".join(f"{check.duckdb} AS {quote(name)}" for name, check in _aggregate_checks(node))
    expanded = _windows_of(node.window, TIME, rows)
    return f"SELECT {_names(node.keys)}, __w, {aggregates} FROM ({expanded}) GROUP BY {_names(node.keys)}, __w"


def _by_panes(node: WindowAggregate, rows: str, parts: list[tuple[str, Checked]]) -> str:
    """Aggregates each pane once, then joins the panes of each window: rows are not repeated for every window."""
    keys = _names(node.keys)
    pane = _floor(TIME, math.gcd(node.window.range_us, node.window.slide_us))
    partial = ", ".join(f"{check.partial} AS {quote(name)}" for name, check in parts)
    panes = f"SELECT {keys}, {pane} AS __pane, {partial} FROM ({rows}) GROUP BY {keys}, __pane"
    combined = ", ".join(_combined(name, check) for name, check in parts)
    return f"SELECT {keys}, __w, {combined} FROM ({_windows_of(node.window, '__pane', panes)}) GROUP BY {keys}, __w"


def _sides(node: WindowJoin, left: str, right: str) -> tuple[str, str]:
    """Both sides with their times under names of their own."""
    return (
        f"SELECT * EXCLUDE ({TIME}), {TIME} AS __left FROM ({left})",
        f"SELECT * EXCLUDE ({TIME}), {TIME} AS __right FROM ({right})",
    )


def _pairs_tumbling(node: WindowJoin, left: str, right: str) -> str:
    a, b = _sides(node, left, right)
    step = node.window.slide_us
    return (
        f"SELECT * FROM (SELECT *, {_floor('__left', step)} AS __w FROM ({a}))"
        f" JOIN (SELECT *, {_floor('__right', step)} AS __w FROM ({b})) USING ({_names(node.keys)}, __w)"
    )


def _pairs_hopping(node: WindowJoin, left: str, right: str) -> str:
    """Pairs with equal keys that lie less than a range apart, then the windows that hold both.

    Candidates meet in buckets of time; the right side's rows are repeated into the one or two buckets they can meet in.
    """
    a, b = _sides(node, left, right)
    reach, bucket = node.window.range_us, _BUCKET_RANGES * node.window.range_us
    first, last = _floor(f"(__right - {reach})", bucket), _floor(f"(__right + {reach})", bucket)
    repeated = (
        f"SELECT *, {first} + __k * {bucket} AS __bucket FROM ({b}), range(2) AS __buckets(__k)"
        f" WHERE {first} + __k * {bucket} <= {last}"
    )
    pairs = (
        f"SELECT * EXCLUDE (__k), least(__left, __right) AS __early, greatest(__left, __right) AS __late"
        f" FROM (SELECT *, {_floor('__left', bucket)} AS __bucket FROM ({a}))"
        f" JOIN ({repeated}) USING ({_names(node.keys)}, __bucket) WHERE abs(__left - __right) < {reach}"
    )
    return f"SELECT * FROM ({_windows_of(node.window, '__early', pairs)}) WHERE __late < __w + {reach}"


def _running_at(node: RunningAggregate, relations: Relations, points: str) -> str:
    """Values at the asked event times, and at the end: each row goes to the next asked time of its key, then sums run.

    The asked times of all rows past the last one are null, and sort last.
    """
    keys, parts = _names(node.keys), _aggregate_checks(node)
    asked = f"SELECT DISTINCT {keys}, {quote(EVENT_TIME)} AS __point FROM {points}"
    same = " AND ".join(f"__rows.{quote(key)} IS NOT DISTINCT FROM __asked.{quote(key)}" for key in node.keys)
    met = (
        f"SELECT __rows.*, __asked.__point FROM ({lower(node.input, relations)}) AS __rows"
        f" ASOF LEFT JOIN ({asked}) AS __asked ON {same} AND __rows.{TIME} <= __asked.__point"
    )
    partial = ", ".join(f"{check.partial} AS {quote(name)}" for name, check in parts)
    groups = f"SELECT {keys}, __point, {partial}, max({TIME}) AS {TIME} FROM ({met}) GROUP BY {keys}, __point"
    combined = ", ".join(_combined(name, check, " OVER running") for name, check in parts)
    return (
        f"SELECT DISTINCT {keys}, {combined}, {TIME} FROM ({groups})"
        f" WINDOW running AS (PARTITION BY {keys} ORDER BY {TIME} ROWS UNBOUNDED PRECEDING)"
    )
