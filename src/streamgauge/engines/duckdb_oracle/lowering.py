"""Lowers a flow to DuckDB SQL, one function per node, independent of any engine.

- `__time`: hidden column of every step, BIGINT microseconds. It is the event time of a source row, or the last
  microsecond of the window of a window's result (so windows chain as on engines).
- `__w`: the start of a window, a multiple of the slide. An event at t lies in the windows with w <= t < w + range.

All time arithmetic is on integers and also correct before 1970. Only output columns are TIMESTAMP. Flow columns never
start with two underscores, so hidden columns cannot clash.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, singledispatch
from pathlib import Path

from streamgauge.core.schema import EVENT_TIME, WINDOW_END, WINDOW_START, equal_columns, quote, quoted
from streamgauge.dataflow import graph, process, schema
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.expressions.check import Checked
from streamgauge.dataflow.expressions.types import DUCKDB_TYPES
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    InWindows,
    Lookup,
    Node,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.dataflow.static_table import Table
from streamgauge.system.disk import Scratch

TIME, SPAN = "__time", "__span"
Relations = Mapping[str, str]

# The least width of a join's time buckets in window ranges. Wide ones repeat fewer rows; narrow ones give fewer pairs.
_BUCKET_RANGES = 4

PANES_MAX = 100
"""Windows of an event up to which a row for each pane and window costs less than frames."""


def sql(flow: Flow, relations: Relations) -> str:
    """DuckDB SQL that computes the results of a flow with one sink.

    `relations` maps each stream to a relation or a bracketed query with the fields that the flow needs and
    `event_time` (BIGINT, us). `process_operator.computed` adds relations of processes without a truth.
    A running aggregate gives its value at every event time; `by_spans` and `at_points` give fewer, and are faster.
    """
    last = flow.sink.input
    relations, once = _read_once(last, relations)
    return f"{once}SELECT {quoted(schema.columns(last))} FROM ({lower(last, relations)})"


def span_number(cuts: Sequence[int], first: int = 0) -> str:
    """DuckDB SQL for the number of these ascending times that `__time` has reached, by bisection, plus `first`."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    low, high = span_number(cuts[:middle], first), span_number(cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {TIME} < {cuts[middle]} THEN {low} ELSE {high} END"


def by_spans(flow: Flow, relations: Relations, span: str) -> str:
    """DuckDB SQL for the value of each key after each span that has rows of the key: results with `__span`.

    The flow has one sink, a running aggregate. `span` is an integer of `__time` that rises with it. Aggregates that can
    be merged cost one pass over the rows, whose result is as large as this one.
    """
    last = flow.sink.input
    assert isinstance(last, RunningAggregate)
    relations, once = _read_once(last, relations)
    keys, parts = quoted(last.keys), _divisible(last)
    rows = f"SELECT *, {span} AS {SPAN} FROM ({lower(last.input, relations)})"
    if parts is None:
        return f"{once}SELECT {quoted(schema.columns(last))}, {SPAN} FROM ({_running(last, rows, SPAN)})"
    return (
        f"{once}SELECT {keys}, {_combined(parts, ' OVER running')}, {SPAN}"
        f" FROM (SELECT {keys}, {SPAN}, {_partial(parts)} FROM ({rows}) GROUP BY {keys}, {SPAN})"
        f" WINDOW running AS (PARTITION BY {keys} ORDER BY {SPAN} ROWS UNBOUNDED PRECEDING)"
    )


def at_points(flow: Flow, relations: Relations, points: str) -> str:
    """DuckDB SQL for the results at `points`, a relation of keys and `event_time`; none where the key has no row.

    The flow has one sink, a running aggregate. Rows of other keys are dropped first.
    """
    last = flow.sink.input
    assert isinstance(last, RunningAggregate)
    relations, once = _read_once(last, relations)
    asked = f"SEMI JOIN {points} AS __asked ON {equal_columns(last.keys, '__rows', '__asked')}"
    rows = f"(SELECT __rows.* FROM ({lower(last.input, relations)}) AS __rows {asked})"
    relations = {**relations, retained_name(last.input): rows}
    values = lower(last, relations) if _divisible(last) is None else _running_at(last, relations, points)
    return (
        f"{once}SELECT {quoted(schema.columns(last))} FROM ({values}) AS __rows"
        f" {asked} AND __rows.{TIME} = __asked.{quote(EVENT_TIME)}"
    )


def _read_once(last: Node, relations: Relations) -> tuple[Relations, str]:
    """Materialises streams that are read several times, because a reader gives its rows only once."""
    reads: Counter[str] = Counter()

    def count(node: Node) -> None:
        if retained_name(node) in relations:
            return
        reads.update([node.name] if isinstance(node, Source) else [])
        for input_ in graph.inputs(node):
            count(input_)

    count(last)
    repeated = {name: quote(f"__stream_{name}") for name, times in reads.items() if times > 1}
    views = ", ".join(f"{views} AS MATERIALIZED (SELECT * FROM {relations[name]})" for name, views in repeated.items())
    return {**relations, **repeated}, f"WITH {views} " if views else ""


def kinds() -> tuple[type, ...]:
    """The node kinds that can be lowered."""
    return tuple(kind for kind in _lowered.registry if kind is not object)


def lower(node: Node, relations: Relations) -> str:
    """A node as a query of its columns and `__time`. Reads stored rows if `relations` has them."""
    stored = relations.get(retained_name(node))
    return f"SELECT * FROM {stored}" if stored is not None else _lowered(node, relations)


def retained_name(node: Node) -> str:
    """The key in `relations` for the stored rows of an operator, including `__time`."""
    return f"@{node.name}"


@singledispatch
def _lowered(node: Node, relations: Relations) -> str:
    raise TypeError(f"the oracle has no lowering for a {type(node).__name__}")


@_lowered.register
def _(node: Source, relations: Relations) -> str:
    # Columns are not listed, because unread ones may be missing from the relation.
    return f"SELECT *, {quote(EVENT_TIME)} AS {TIME} FROM {relations[node.name]}"


@_lowered.register
def _(node: Select, relations: Relations) -> str:
    available = schema.columns(node.input)
    columns = ", ".join(f"{expressions.to_duckdb(text, available)} AS {quote(name)}" for name, text in node.columns)
    return f"SELECT {columns}, {TIME} FROM ({lower(node.input, relations)})"


@_lowered.register
def _(node: Where, relations: Relations) -> str:
    predicate = expressions.to_duckdb(node.predicate, schema.columns(node.input))
    return f"SELECT * FROM ({lower(node.input, relations)}) WHERE {predicate}"


@_lowered.register
def _(node: WindowAggregate, relations: Relations) -> str:
    parts = _divisible(node)
    rows, keys = lower(node.input, relations), quoted(node.keys)
    if parts is None:
        expanded = _windows_of(node.window, TIME, rows)
        grouped = f"SELECT {keys}, __w, {_aggregates(node)} FROM ({expanded}) GROUP BY {keys}, __w"
    else:
        grouped = (_by_panes if node.window.panes <= PANES_MAX else _by_frames)(node, rows, parts)
    aggregates = quoted(name for name, _ in node.aggregates)
    return f"SELECT {keys}, {_window_columns(node.window)}, {aggregates} FROM ({grouped})"


@_lowered.register
def _(node: RunningAggregate, relations: Relations) -> str:
    """The value at every event time over all rows of the key up to and including it. One row per time."""
    return _running(node, lower(node.input, relations), TIME)


@_lowered.register
def _(node: WindowJoin, relations: Relations) -> str:
    left, right = lower(node.left, relations), lower(node.right, relations)
    pairs = _pairs_tumbling(node, left, right) if node.window.panes == 1 else _pairs_hopping(node, left, right)
    others = [name for side in (node.left, node.right) for name in schema.columns(side) if name not in node.keys]
    return f"SELECT {quoted((*node.keys, *others))}, {_window_columns(node.window)} FROM ({pairs})"


@_lowered.register
def _(node: Explode, relations: Relations) -> str:
    array = expressions.to_duckdb(node.array, schema.columns(node.input))
    ordinal = f", unnest(range(len(__array))) AS {quote(node.ordinal)}" if node.ordinal else ""
    return (
        f"SELECT * EXCLUDE (__array), unnest(__array) AS {quote(node.column)}{ordinal}"
        f" FROM (SELECT *, {array} AS __array FROM ({lower(node.input, relations)}))"
    )


@_lowered.register
def _(node: InWindows, relations: Relations) -> str:
    rows = _windows_of(node.windows, TIME, lower(node.input, relations))
    start, end = f"make_timestamp(__w) AS {quote(WINDOW_START)}", f"make_timestamp(__w + {node.windows.range_us})"
    return f"SELECT * EXCLUDE (__w), {start}, {end} AS {quote(WINDOW_END)} FROM ({rows})"


@_lowered.register
def _(node: Lookup, relations: Relations) -> str:
    on = " AND ".join(f"__rows.{quote(key)} = __table.{quote(key)}" for key in node.keys)
    table_columns = "".join(f", __table.{quote(name)}" for name in node.table.schema.names if name not in node.keys)
    return (
        f"SELECT __rows.*{table_columns} FROM ({lower(node.input, relations)}) AS __rows"
        f" {node.how.upper()} JOIN {relation_of(node.table)} AS __table ON {on}"
    )


@_lowered.register
def _(node: Union, relations: Relations) -> str:
    return " UNION ALL BY NAME ".join(f"SELECT * FROM ({lower(input_, relations)})" for input_ in node.inputs)


@_lowered.register
def _(node: SessionAggregate, relations: Relations) -> str:
    keys, gap = quoted(node.keys), node.session.gap_us
    by_time = f"(PARTITION BY {keys} ORDER BY {TIME}"
    begins = f"CASE WHEN {TIME} - lag({TIME}) OVER {by_time}) <= {gap} THEN 0 ELSE 1 END"
    marked = f"SELECT *, {begins} AS __begins FROM ({lower(node.input, relations)})"
    numbered = f"SELECT *, sum(__begins) OVER {by_time} RANGE UNBOUNDED PRECEDING) AS __session FROM ({marked})"
    grouped = (
        f"SELECT {keys}, {_aggregates(node)}, min({TIME}) AS __first, max({TIME}) + {gap} AS __end"
        f" FROM ({numbered}) GROUP BY {keys}, __session"
    )
    borders = f"make_timestamp(__first) AS {quote(WINDOW_START)}, make_timestamp(__end) AS {quote(WINDOW_END)}"
    names = quoted(name for name, _ in node.aggregates)
    return f"SELECT {keys}, {borders}, {names}, __end - 1 AS {TIME} FROM ({grouped})"


@_lowered.register
def _(node: Distinct, relations: Relations) -> str:
    rows = lower(node.input, relations)
    order = ", ".join([TIME, *(f"{quote(tie)} NULLS FIRST" for tie in node.ties)])
    if node.window is None:
        first = f"row_number() OVER (PARTITION BY {quoted(node.keys)} ORDER BY {order}) = 1"
        return f"SELECT * FROM ({rows}) QUALIFY {first}"
    first = f"row_number() OVER (PARTITION BY {quoted(node.keys)}, __w ORDER BY {order}) = 1"
    return (
        f"SELECT * EXCLUDE (__w, {TIME}), {_window_columns(node.window)}"
        f" FROM (SELECT * FROM ({_windows_of(node.window, TIME, rows)}) QUALIFY {first})"
    )


@_lowered.register
def _(node: IntervalJoin, relations: Relations) -> str:
    left, right = _sides(lower(node.left, relations), lower(node.right, relations))
    return (
        f"SELECT {quoted(schema.columns(node))}, greatest(__left, __right) AS {TIME}"
        f" FROM ({left}) JOIN ({right}) USING ({quoted(node.keys)})"
        f" WHERE __right - __left BETWEEN {node.earliest_us} AND {node.latest_us}"
    )


@_lowered.register
def _(node: TopN, relations: Relations) -> str:
    by = expressions.to_duckdb(node.by, schema.columns(node.input))
    ties = ", ".join(f"{quote(name)} NULLS FIRST" for name in schema.tie_order(node))
    groups = f"PARTITION BY {quoted(node.groups)}"
    latest = ", ".join(f"max({quote(name)}) OVER ({groups}) AS {quote(name)}" for name in node.latest)
    columns = f"* REPLACE ({latest})" if latest else "*"
    row_number = f"row_number() OVER ({groups} ORDER BY ({by}) DESC{', ' if ties else ''}{ties})"
    return (
        f"SELECT {columns}, CAST({row_number} AS INTEGER) AS {quote(schema.RANK)} FROM ({lower(node.input, relations)})"
        f" WHERE ({by}) IS NOT NULL AND NOT isnan(CAST({by} AS DOUBLE)) QUALIFY {quote(schema.RANK)} <= {node.n}"
    )


@_lowered.register
def _(node: Process, relations: Relations) -> str:
    """By its truth; without one, the results of its class (`process_operator`) are in `relations`."""
    if node.truth is None:
        return f"SELECT * FROM {relations[node.name]}"
    inputs = [lower(input_, relations) for input_ in node.inputs]
    return process.statement(node, inputs, [schema.columns(input_) for input_ in node.inputs], TIME)


def _floor(time: str, step: int) -> str:
    """The greatest multiple of `step` <= `time`.

    DuckDB's remainder has the sign of `time`, so the time is shifted to above zero: by 73,000 years, a multiple of the
    step. One remainder costs less than two.
    """
    shift = 2**61 // step * step
    return f"({time} - ({time} + {shift}) % {step})"


def _window_columns(window: Window) -> str:
    return (
        f"make_timestamp(__w) AS {quote(WINDOW_START)}, make_timestamp(__w + {window.range_us}) AS {quote(WINDOW_END)},"
        f" __w + {window.range_us} - 1 AS {TIME}"
    )


def _aggregate_checks(node: WindowAggregate | RunningAggregate | SessionAggregate) -> list[tuple[str, Checked]]:
    available = schema.columns(node.input)
    return [(name, expressions.checked(text, available, node.name)) for name, text in node.aggregates]


def _divisible(node: WindowAggregate | RunningAggregate) -> list[tuple[str, Checked]] | None:
    """The aggregates if all can be merged from partials, else None."""
    checks = _aggregate_checks(node)
    return checks if all(check.combine for _, check in checks) else None


def _aggregates(node: WindowAggregate | SessionAggregate) -> str:
    """Each aggregate over the rows of a group."""
    return ", ".join(f"{check.duckdb} AS {quote(name)}" for name, check in _aggregate_checks(node))


def _partial(parts: list[tuple[str, Checked]]) -> str:
    """Each aggregate over a part of its rows, to be merged by `_combined`."""
    return ", ".join(f"{check.partial} AS {quote(name)}" for name, check in parts)


def _combined(parts: list[tuple[str, Checked]], over: str = "") -> str:
    """Each aggregate merged from partials; `over`: the window of its function."""
    return ", ".join(
        f"CAST({check.combine}({quote(name)}){over} AS {DUCKDB_TYPES[check.type]}) AS {quote(name)}"
        for name, check in parts
    )


def _windows_of(window: Window, time: str, rows: str) -> str:
    """Each row once per window that contains `time`, with `__w`."""
    last = _floor(time, window.slide_us)
    if window.panes == 1:
        return f"SELECT *, {last} AS __w FROM ({rows})"
    every = f"SELECT *, {last} - __k * {window.slide_us} AS __w FROM ({rows}), range({window.panes}) AS __windows(__k)"
    return f"SELECT * EXCLUDE (__k) FROM ({every}) WHERE {time} < __w + {window.range_us}"


def _by_panes(node: WindowAggregate, rows: str, parts: list[tuple[str, Checked]]) -> str:
    """Aggregates each pane once, then merges the panes of each window."""
    keys = quoted(node.keys)
    pane = _floor(TIME, math.gcd(node.window.range_us, node.window.slide_us))
    panes = f"SELECT {keys}, {pane} AS __pane, {_partial(parts)} FROM ({rows}) GROUP BY {keys}, __pane"
    windows = _windows_of(node.window, "__pane", panes)
    return f"SELECT {keys}, __w, {_combined(parts)} FROM ({windows}) GROUP BY {keys}, __w"


def _by_frames(node: WindowAggregate, rows: str, parts: list[tuple[str, Checked]]) -> str:
    """Aggregates each pane once, then every window over a frame of panes, without a row for each pane and window.

    A window that is not empty is listed once, at its first pane.
    """
    keys, reach, slide = quoted(node.keys), node.window.range_us, node.window.slide_us
    pane = _floor(TIME, math.gcd(reach, slide))
    panes = f"SELECT {keys}, {pane} AS __at, {_partial(parts)} FROM ({rows}) GROUP BY {keys}, __at"
    by_key = f"PARTITION BY {keys} ORDER BY __at"
    before = f"greatest(lag(__at) OVER ({by_key}), __at - {reach})"
    spans = f"SELECT {keys}, __at, coalesce({before}, __at - {reach}) AS __before FROM __panes"
    starts = f"range({_floor('__before', slide)} + {slide}, __at + 1, {slide})"
    windows = f"SELECT {keys}, __w AS __at, __w FROM (SELECT {keys}, unnest({starts}) AS __w FROM ({spans}))"
    return (
        f"WITH __panes AS MATERIALIZED ({panes}) SELECT {keys}, __w, {_combined(parts, ' OVER __frame')}"
        f" FROM (SELECT * FROM __panes UNION ALL BY NAME {windows})"
        f" WINDOW __frame AS ({by_key} RANGE BETWEEN CURRENT ROW AND {reach - 1} FOLLOWING) QUALIFY __w IS NOT NULL"
    )


def _sides(left: str, right: str) -> tuple[str, str]:
    """Both sides with their times renamed to `__left` and `__right`."""
    return (
        f"SELECT * EXCLUDE ({TIME}), {TIME} AS __left FROM ({left})",
        f"SELECT * EXCLUDE ({TIME}), {TIME} AS __right FROM ({right})",
    )


def _pairs_tumbling(node: WindowJoin, left: str, right: str) -> str:
    a, b = _sides(left, right)
    step = node.window.slide_us
    return (
        f"SELECT * FROM (SELECT *, {_floor('__left', step)} AS __w FROM ({a}))"
        f" JOIN (SELECT *, {_floor('__right', step)} AS __w FROM ({b})) USING ({quoted(node.keys)}, __w)"
    )


def _pairs_hopping(node: WindowJoin, left: str, right: str) -> str:
    """Pairs with equal keys less than a range apart, expanded to the windows that contain both.

    Candidates are matched by time buckets. Rows of the right side are repeated in the one or two buckets that apply.
    """
    a, b = _sides(left, right)
    reach = node.window.range_us
    # Buckets are powers of two, because shifts also round down before 1970. A join with the buckets' numbers instead
    # of `unnest` would run on one core.
    shift = (_BUCKET_RANGES * reach - 1).bit_length()
    first, last = f"(__right - {reach - 1}) >> {shift}", f"(__right + {reach - 1}) >> {shift}"
    pairs = (
        f"SELECT *, least(__left, __right) AS __early, greatest(__left, __right) AS __late"
        f" FROM (SELECT *, __left >> {shift} AS __bucket FROM ({a}))"
        f" JOIN (SELECT *, unnest(range({first}, ({last}) + 1)) AS __bucket FROM ({b}))"
        f" USING ({quoted(node.keys)}, __bucket) WHERE abs(__left - __right) < {reach}"
    )
    return f"SELECT * FROM ({_windows_of(node.window, '__early', pairs)}) WHERE __late < __w + {reach}"


def _running(node: RunningAggregate, rows: str, last_of: str) -> str:
    """Values by window functions over all rows of the key: one row for each value of the column `last_of`."""
    aggregates = ", ".join(f"{check.over} AS {quote(name)}" for name, check in _aggregate_checks(node))
    keys = quoted(node.keys)
    return (
        f"SELECT {keys}, {aggregates}, {last_of} FROM ({rows})"
        f" WINDOW running AS (PARTITION BY {keys} ORDER BY {TIME} RANGE UNBOUNDED PRECEDING)"
        f" QUALIFY lead({last_of}) OVER (PARTITION BY {keys} ORDER BY {TIME}) IS DISTINCT FROM {last_of}"
    )


def _running_at(node: RunningAggregate, relations: Relations, points: str) -> str:
    """Values at the requested event times, or at the last rows before them.

    Each row is assigned to the next requested time of its key, then aggregates accumulate.
    """
    keys, parts = quoted(node.keys), _aggregate_checks(node)
    requested = f"SELECT DISTINCT {keys}, {quote(EVENT_TIME)} AS __point FROM {points}"
    assigned = (
        f"SELECT __rows.*, __asked.__point FROM ({lower(node.input, relations)}) AS __rows"
        f" ASOF JOIN ({requested}) AS __asked"
        f" ON {equal_columns(node.keys, '__rows', '__asked')} AND __rows.{TIME} <= __asked.__point"
    )
    groups = f"SELECT {keys}, __point, {_partial(parts)}, max({TIME}) AS {TIME} FROM ({assigned})"
    return (
        f"SELECT {keys}, {_combined(parts, ' OVER running')}, {TIME} FROM ({groups} GROUP BY {keys}, __point)"
        f" WINDOW running AS (PARTITION BY {keys} ORDER BY {TIME} ROWS UNBOUNDED PRECEDING)"
    )


@lru_cache(maxsize=64)
def relation_of(table: Table) -> str:
    """A relation with the table's rows, as SQL. Timestamps are UTC without a zone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = table.to_arrow()
    naive = [pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type for field in rows.schema]
    path = Path(_folder().name) / f"{len(list(Path(_folder().name).iterdir()))}.parquet"
    pq.write_table(rows.cast(pa.schema(list(zip(rows.column_names, naive, strict=True)))), path)
    return f"read_parquet('{path}')"


@cache
def _folder() -> Scratch:
    """Removed when the process ends."""
    return Scratch("tables")
