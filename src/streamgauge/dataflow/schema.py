"""The columns of each node, and the validation of the node, before anything is started.

Types are SQL type names. Two rules of nesting:

- No operator follows a running aggregate, because its results are updates, not rows.
- A running aggregate reads rows of a source, not results of windows or joins.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, singledispatch

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import (
    EMISSION_TIME,
    EVENT_BRANCH,
    EVENT_ORDINAL,
    LINEAGE,
    TYPES,
    WINDOW_END,
    WINDOW_START,
)
from streamgauge.core.units import by_reference
from streamgauge.dataflow import graph, process
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.expressions.types import element_type
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    IntervalJoin,
    InWindows,
    Lookup,
    Node,
    OpaqueNode,
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

RESERVED = frozenset({*LINEAGE, EMISSION_TIME, EVENT_ORDINAL, EVENT_BRANCH})
"""Column names that streamgauge uses. Names with a leading underscore are reserved for engines."""

STATEFUL = (RunningAggregate, WindowAggregate, WindowJoin, SessionAggregate, Distinct, IntervalJoin, TopN)
"""The nodes that keep state."""

Pairs = tuple[tuple[str, str], ...]


def columns(node: Node) -> dict[str, str]:
    """Column name to SQL type name, in order. Raises InputError if the node or one upstream is invalid."""
    return dict(_cached(node))


def plain_columns(node: Node, keys: Iterable[str] = ()) -> tuple[Source, tuple[tuple[str, str], ...]] | None:
    """(source, (name, source column) pairs) if a node only selects and renames source columns, and its `keys` are
    integers; else None.
    """
    if any(columns(node)[key] not in ("int", "bigint") for key in keys):
        return None
    if isinstance(node, Source):
        return node, tuple((name, name) for name in columns(node))
    if not isinstance(node, Select) or (inner := plain_columns(node.input)) is None:
        return None
    source, pairs = inner
    available = by_reference(dict(pairs))
    if any(text not in available for _, text in node.columns):
        return None
    return source, tuple((name, available[text]) for name, text in node.columns)


@lru_cache(maxsize=1024)
def _cached(node: Node) -> Pairs:
    pairs = tuple(_columns(node))
    _check_duplicates([name for name, _ in pairs], _setting(node))
    return pairs


def check_window(window: Window, setting: str = "slide") -> None:
    """Raises InputError if the window is empty or its slide would skip events."""
    range_text, slide_text = seconds(window.range_us), seconds(window.slide_us)
    if window.range_us <= 0 or window.slide_us <= 0:
        rule = "window range and slide must be at least 1 us"
        raise InputError(
            Problem(setting, rule, f"range {range_text}, slide {slide_text}", "--set range=8s --set slide=4s")
        )
    if window.slide_us > window.range_us:
        rule = f"window slide {slide_text} is longer than its range {range_text}"
        rule += ": no window would contain the events between windows"
        way_out = f"--set slide={range_text} (tumbling), or --set range={slide_text}"
        raise InputError(Problem(setting, rule, slide_text, way_out))


def seconds(us: int) -> str:
    """Microseconds as `8s` or `0.25s`, exactly."""
    whole, part = divmod(abs(us), US)
    fraction = f"{part:06d}".rstrip("0")
    return f"{'-' if us < 0 else ''}{whole}{'.' if fraction else ''}{fraction}s"


def _setting(node: Node) -> str:
    return f"{type(node).__name__.lower()} {node.name!r}"


_Keyed = (
    WindowAggregate | RunningAggregate | WindowJoin | Lookup | SessionAggregate | Distinct | IntervalJoin
)  # fmt: skip


@singledispatch
def _columns(node: Node) -> Pairs:
    raise TypeError(f"dataflow.schema has no rule for a {type(node).__name__}")


@_columns.register
def _(node: Source) -> Pairs:
    for field in node.schema.fields:
        if field.type not in TYPES:
            way_out = f"one of {', '.join(TYPES)}"
            raise InputError(
                Problem(f"source {node.name!r}", f"field {field.name} has no type of a flow", field.type, way_out)
            )
    _check_reserved(node.schema.names, _setting(node))
    fields = tuple((field.name, field.type) for field in node.schema.fields)
    return fields + tuple((name, "bigint") for name in node.lineage)


@_columns.register
def _(node: Select) -> Pairs:
    _check_rows_before(node)
    return _row_wise(node.columns, node.input, _setting(node))


@_columns.register
def _(node: Where) -> Pairs:
    _check_rows_before(node)
    available = columns(node.input)
    checked = expressions.checked(node.predicate, available, _setting(node))
    if checked.aggregate:
        _refuse_aggregate(_setting(node), node.predicate)
    if checked.type != "boolean":
        raise InputError(
            Problem(_setting(node), f"must be true or false, and is {checked.type}", node.predicate, "x > 0")
        )
    return tuple(available.items())


@_columns.register
def _(node: WindowAggregate) -> Pairs:
    check_window(node.window, _setting(node))
    _check_rows_before(node)
    return _keys(node, node.input) + _WINDOW + _aggregates(node)


@_columns.register
def _(node: RunningAggregate) -> Pairs:
    stateful = [each for each in graph.walk(node.input) if _keeps_state(each) and not _gives_first_rows(each)]
    if stateful:
        rule = (
            "must read rows of a source or first rows of all, not results of windows, joins, running aggregates or "
            "keyed processes"
        )
        raise InputError(Problem(_setting(node), rule, _setting(stateful[-1]), "a window aggregate here instead"))
    return _keys(node, node.input) + _aggregates(node)


@_columns.register
def _(node: OpaqueNode) -> Pairs:
    return ()


@_columns.register
def _(node: WindowJoin) -> Pairs:
    check_window(node.window, _setting(node))
    return _joined(node, (WINDOW_START, WINDOW_END)) + _WINDOW


@_columns.register
def _(node: IntervalJoin) -> Pairs:
    if node.earliest_us > node.latest_us:
        rule = "needs an earliest time that is not after the latest"
        got = f"{seconds(node.earliest_us)} to {seconds(node.latest_us)}"
        raise InputError(Problem(_setting(node), rule, got, "earliest='-5s', latest='5s'"))
    return _joined(node, ())


def _joined(node: WindowJoin | IntervalJoin, window_columns: tuple[str, ...]) -> Pairs:
    """Keys, other columns of the left input, other columns of the right. The join itself adds `window_columns`."""
    _check_rows_before(node)
    left, right = columns(node.left), columns(node.right)
    keys = _keys(node, node.left)
    _check_key_types(node, left, dict(_keys(node, node.right)))
    non_keys = [(name, type_) for side in (left, right) for name, type_ in side.items() if name not in node.keys]
    _check_join_names([name for name, _ in non_keys], window_columns, _setting(node))
    return keys + tuple(non_keys)


@_columns.register
def _(node: InWindows) -> Pairs:
    return (*columns(node.input).items(), *_WINDOW)


@_columns.register
def _(node: Explode) -> Pairs:
    setting = _setting(node)
    _check_rows_before(node)
    if not graph.carries_lineage(node.input):
        _check_reserved([node.column], setting)
    available = columns(node.input)
    checked = expressions.checked(node.array, available, f"{setting}, column {node.column}")
    if checked.aggregate:
        _refuse_aggregate(setting, node.array)
    element = element_type(checked.type)
    if element is None:
        raise InputError(Problem(setting, f"must be an array, and is {checked.type}", node.array, "split(text, ' ')"))
    ordinal = ((node.ordinal, "bigint"),) if node.ordinal else ()
    return (*available.items(), (node.column, element), *ordinal)


@_columns.register
def _(node: Lookup) -> Pairs:
    setting = _setting(node)
    _check_rows_before(node)
    _check_lookup(node, setting)
    available = columns(node.input)
    looked_up = tuple((name, type_) for name, type_ in node.table.schema.types().items() if name not in node.keys)
    _check_reserved([name for name, _ in looked_up], setting)
    return (*available.items(), *looked_up)


@_columns.register
def _(node: Union) -> Pairs:
    setting = _setting(node)
    _check_rows_before(node)
    if len(node.inputs) < 2:
        raise InputError(Problem(setting, "needs at least two streams", len(node.inputs), "a.union(b)"))
    first, *others = (columns(input_) for input_ in node.inputs)
    for other in others:
        if other != first:
            got = " and ".join(", ".join(f"{name} {type_}" for name, type_ in side.items()) for side in (first, other))
            raise InputError(Problem(setting, "needs the same columns on all sides", got, "select(...) before it"))
    return tuple(first.items())


@_columns.register
def _(node: SessionAggregate) -> Pairs:
    _check_rows_before(node)
    return _keys(node, node.input) + _WINDOW + _aggregates(node)


@_columns.register
def _(node: Distinct) -> Pairs:
    _check_rows_before(node)
    for key, kind in _keys(node, node.input):
        if kind == "double":
            rule = f"key {key!r} must be no double: engines do not agree which of 0.0, -0.0 and NaNs are one value"
            raise InputError(Problem(_setting(node), rule, kind, f"a whole number: cast(floor({key}) as bigint)"))
    available = tuple(columns(node.input).items())
    if node.window is None:
        return available
    check_window(node.window, _setting(node))
    return available + _WINDOW


@_columns.register
def _(node: TopN) -> Pairs:
    setting, available = _setting(node), columns(node.input)
    _check_rows_before(node)
    if node.n < 1:
        raise InputError(Problem(setting, "must keep at least one row", node.n, "top(10, by='count')"))
    if missing := [name for name in (WINDOW_START, WINDOW_END) if name not in available]:
        rule = f"ranks the rows of a window, and its input has no {missing[0]}"
        raise InputError(Problem(setting, rule, ", ".join(available), "window(...).aggregate(...) before it"))
    checked = expressions.checked(node.by, available, setting)
    if checked.aggregate:
        _refuse_aggregate(setting, node.by)
    if checked.type not in ("int", "bigint", "double"):
        raise InputError(Problem(setting, f"must rank by a number, and it is {checked.type}", node.by, "by='count'"))
    for name in (*node.keys, *node.ties):
        if name not in available:
            raise InputError(Problem(setting, f"{name!r} must be a column of its input", name, ", ".join(available)))
    groups = tuple((name, available[name]) for name in node.groups)
    return (*groups, (RANK, "int"), *(pair for pair in available.items() if pair[0] not in node.groups))


RANK = "rank"
"""The column that a top-n adds."""


def tie_order(node: TopN) -> tuple[str, ...]:
    """The columns that break ties: the given ones, then all others, so that the order is unique."""
    ranked = (*node.groups, *node.ties, *node.latest)
    return (*node.ties, *(name for name in columns(node.input) if name not in ranked))


@_columns.register
def _(node: Process) -> Pairs:
    _check_rows_before(node)
    process.check(node, [columns(input_) for input_ in node.inputs], _setting(node))
    if not graph.carries_lineage(node):
        _check_reserved([name for name, _ in node.gives], _setting(node))
    return node.gives + process.lineage_types(node, columns(node.inputs[0]))


_WINDOW: Pairs = ((WINDOW_START, "timestamp"), (WINDOW_END, "timestamp"))


def _row_wise(pairs: Pairs, input_: Node, setting: str) -> Pairs:
    if not pairs:
        raise InputError(Problem(setting, "must give at least one column", "none", "name='expression'"))
    if not graph.carries_lineage(input_):
        _check_reserved([name for name, _ in pairs], setting)
    available = columns(input_)
    computed = []
    for name, expression in pairs:
        checked = expressions.checked(expression, available, f"{setting}, column {name}")
        if checked.aggregate:
            _refuse_aggregate(f"{setting}, column {name}", expression)
        computed.append((name, checked.type))
    return tuple(computed)


def _refuse_aggregate(setting: str, expression: str) -> None:
    rule = "is an aggregate, and this operator works row by row"
    raise InputError(Problem(setting, rule, expression, "window(...).aggregate(...), or running(...)"))


def _aggregates(node: WindowAggregate | RunningAggregate | SessionAggregate) -> Pairs:
    setting = _setting(node)
    if not node.aggregates:
        raise InputError(Problem(setting, "must compute at least one aggregate", "none", "count='count(*)'"))
    if not graph.carries_lineage(node.input):
        _check_reserved([name for name, _ in node.aggregates], setting)
    available = columns(node.input)
    computed = []
    for name, expression in node.aggregates:
        checked = expressions.checked(expression, available, f"{setting}, column {name}")
        if not checked.aggregate:
            raise InputError(
                Problem(f"{setting}, column {name}", "must aggregate rows", expression, f"max({expression})")
            )
        computed.append((name, checked.type))
    return tuple(computed)


def _keys(node: _Keyed, input_: Node) -> Pairs:
    available = columns(input_)
    if not node.keys:
        raise InputError(Problem(_setting(node), "needs at least one key", "none", f"keys={next(iter(available))!r}"))
    for key in node.keys:
        if key not in available:
            candidates = ", ".join(available)
            raise InputError(
                Problem(_setting(node), f"key {key!r} must be a column of its input", key, f"one of {candidates}")
            )
        if element_type(available[key]) is not None:
            raise InputError(Problem(_setting(node), f"key {key!r} is an array", available[key], "explode it before"))
    return tuple((key, available[key]) for key in node.keys)


def _check_lookup(node: Lookup, setting: str) -> None:
    """Keys have one plain type on both sides, and are unique and not null in the table."""
    types, table_types = dict(_keys(node, node.input)), node.table.schema.types()
    for key in node.keys:
        if key not in table_types:
            way_out = f"one of {', '.join(table_types)}"
            raise InputError(Problem(setting, f"key {key!r} must be a column of table {node.table.name}", key, way_out))
        if types[key] == "double" or types[key] != table_types[key]:
            rule = f"key {key!r} must have one type on both sides, and not be a double"
            types_ = f"{types[key]} and {table_types[key]}"
            raise InputError(
                Problem(setting, rule, types_, f"table(..., schema=Schema.from_types({key}={types[key]!r}))")
            )
    rows = node.table.to_arrow().select(list(node.keys))
    if any(column.null_count for column in rows.columns):
        raise InputError(Problem(setting, f"table {node.table.name} has a null key", "null", "leave that row out"))
    if (unique := rows.group_by(list(node.keys)).aggregate([]).num_rows) < rows.num_rows:
        rule = f"keys must be unique in table {node.table.name}"
        raise InputError(Problem(setting, rule, f"{rows.num_rows} rows, {unique} keys", "one row for each key"))


def _check_key_types(node: WindowJoin | IntervalJoin, left: dict[str, str], right: dict[str, str]) -> None:
    for key in node.keys:
        if left[key] != right[key]:
            rule = f"key {key!r} must have one type on both sides"
            way_out = f"select a try_cast({key} as {left[key]}) before the join"
            raise InputError(Problem(_setting(node), rule, f"{left[key]} and {right[key]}", way_out))


def _gives_first_rows(node: Node) -> bool:
    """Whether the node gives source rows at their own times, so that downstream need not wait for a window's end."""
    return isinstance(node, Distinct) and node.window is None


def _keeps_state(node: Node) -> bool:
    return isinstance(node, STATEFUL) or (isinstance(node, Process) and bool(node.keys))


def _check_rows_before(node: Node) -> None:
    for input_ in graph.inputs(node):
        if any(isinstance(each, RunningAggregate) for each in graph.walk(input_)):
            rule = "cannot follow a running aggregate, whose results are updates of earlier ones"
            way_out = "put it before the running aggregate, or end the flow there with a sink"
            raise InputError(Problem(_setting(node), rule, _setting(input_), way_out))


def _check_reserved(names: Iterable[str], setting: str) -> None:
    for name in names:
        if name.lower() in RESERVED or name.startswith("_"):
            raise InputError(
                Problem(setting, "uses a column name that streamgauge reserves", name, f"{name.strip('_')}_2")
            )


def _check_duplicates(names: list[str], setting: str) -> None:
    """Names must differ by more than case, because engines ignore case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InputError(Problem(setting, "gives two columns of one name", name, "another name for one of them"))
        seen.add(name.lower())


def _check_join_names(names: list[str], window_columns: tuple[str, ...], setting: str) -> None:
    seen = set(window_columns)
    for name in names:
        if name.lower() in seen:
            rule = "column is in both inputs and is not a key"
            raise InputError(
                Problem(setting, rule, name, "select it under another name before the join, or add it to on")
            )
        seen.add(name.lower())
