"""The columns of each node, and the validation of the node, before anything is started.

Types are SQL type names. Two rules of nesting:

- No operator follows a running aggregate, because its results are updates, not rows.
- A running aggregate reads rows of a source, not results of windows or joins.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, singledispatch

from streamgauge.core.clock import US
from streamgauge.core.errors import Rule, broken, refuse, require
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
from streamgauge.dataflow.operators.api import ORDINAL

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
    for input_ in () if isinstance(node, RunningAggregate) else graph.inputs(node):
        rule = "cannot follow a running aggregate, whose results are updates of earlier ones"
        way_out = "put it before the running aggregate, or end the flow there with a sink"
        require(not isinstance(input_, RunningAggregate), _setting(node), rule, _setting(input_), way_out)
    pairs = tuple(_columns(node))
    twice = repeated(name for name, _ in pairs)
    require(not twice, _setting(node), "gives two columns of one name", twice, "another name for one of them")
    return pairs


def check_window(window: Window, setting: str = "slide") -> None:
    """Raises InputError if the window is empty or its slide would skip events."""
    range_text, slide_text = seconds(window.range_us), seconds(window.slide_us)
    refuse(
        broken(
            Rule(
                window.range_us > 0 and window.slide_us > 0,
                setting,
                "window range and slide must be at least 1 us",
                f"range {range_text}, slide {slide_text}",
                "--set range=8s --set slide=4s",
            ),
            Rule(
                window.slide_us <= window.range_us,
                setting,
                f"window slide {slide_text} is longer than its range {range_text}"
                ": no window would contain the events between windows",
                slide_text,
                f"--set slide={range_text} (tumbling), or --set range={slide_text}",
            ),
        )
    )


def repeated(names: Iterable[str], taken: Iterable[str] = ()) -> str:
    """The first name that differs at most by case, which engines ignore, from one before it or `taken`; else empty."""
    seen = set(taken)
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return ""


def seconds(us: int) -> str:
    """Microseconds as `8s` or `0.25s`, exactly."""
    whole, part = divmod(abs(us), US)
    fraction = f"{part:06d}".rstrip("0")
    return f"{'-' if us < 0 else ''}{whole}{'.' if fraction else ''}{fraction}s"


def _setting(node: Node) -> str:
    return f"{type(node).__name__.lower()} {node.name!r}"


_Keyed = WindowAggregate | RunningAggregate | WindowJoin | Lookup | SessionAggregate | Distinct | IntervalJoin
TypeOf = Callable[[str, dict[str, str], str], str]
"""Gives the type of an expression over columns; the last argument is the setting for errors."""


@singledispatch
def _columns(node: Node) -> Pairs:
    raise TypeError(f"dataflow.schema has no rule for a {type(node).__name__}")


@_columns.register
def _(node: Source) -> Pairs:
    for field in node.schema.fields:
        rule = f"field {field.name} has no type of a flow"
        require(field.type in TYPES, _setting(node), rule, field.type, f"one of {', '.join(TYPES)}")
    _check_reserved(node.schema.names, _setting(node))
    return (*node.schema.types().items(), *((name, "bigint") for name in node.lineage))


@_columns.register
def _(node: Select) -> Pairs:
    require(node.columns, _setting(node), "must give at least one column", "none", "name='expression'")
    return _computed(node.columns, node, _row_type)


@_columns.register
def _(node: Where) -> Pairs:
    available = columns(node.input)
    type_ = _row_type(node.predicate, available, _setting(node))
    require(type_ == "boolean", _setting(node), f"must be true or false, and is {type_}", node.predicate, "x > 0")
    return tuple(available.items())


@_columns.register
def _(node: WindowAggregate) -> Pairs:
    check_window(node.window, _setting(node))
    return _keys(node, node.input) + _WINDOW + _aggregates(node)


@_columns.register
def _(node: RunningAggregate) -> Pairs:
    stateful = [_setting(each) for each in graph.walk(node.input) if _holds_rows(each)]
    rule = (
        "must read rows of a source or first rows of all, not results of windows, joins, running aggregates or "
        "keyed processes"
    )
    require(not stateful, _setting(node), rule, "".join(stateful[-1:]), "a window aggregate here instead")
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
    rule, got = (
        "needs an earliest time that is not after the latest",
        f"{seconds(node.earliest_us)} to {seconds(node.latest_us)}",
    )
    require(node.earliest_us <= node.latest_us, _setting(node), rule, got, "earliest='-5s', latest='5s'")
    return _joined(node, ())


def _joined(node: WindowJoin | IntervalJoin, window_columns: tuple[str, ...]) -> Pairs:
    """Keys, other columns of the left input, other columns of the right. The join itself adds `window_columns`."""
    left, right = columns(node.left), columns(node.right)
    keys, keys_on_right = _keys(node, node.left), dict(_keys(node, node.right))
    for key, type_ in keys:
        rule, way_out = (
            f"key {key!r} must have one type on both sides",
            f"select a try_cast({key} as {type_}) before the join",
        )
        require(type_ == keys_on_right[key], _setting(node), rule, f"{type_} and {keys_on_right[key]}", way_out)
    non_keys = [(name, type_) for side in (left, right) for name, type_ in side.items() if name not in node.keys]
    twice = repeated((name for name, _ in non_keys), window_columns)
    way_out = "select it under another name before the join, or add it to on"
    require(not twice, _setting(node), "column is in both inputs and is not a key", twice, way_out)
    return keys + tuple(non_keys)


@_columns.register
def _(node: InWindows) -> Pairs:
    return (*columns(node.input).items(), *_WINDOW)


@_columns.register
def _(node: Explode) -> Pairs:
    ((_, type_),) = _computed(((node.column, node.array),), node, _row_type)
    element = element_type(type_)
    require(element, _setting(node), f"must be an array, and is {type_}", node.array, "split(text, ' ')")
    ordinal = ((node.ordinal, "bigint"),) if node.ordinal else ()
    return (*columns(node.input).items(), (node.column, str(element)), *ordinal)


@_columns.register
def _(node: Lookup) -> Pairs:
    _check_lookup(node, _setting(node))
    looked_up = tuple((name, type_) for name, type_ in node.table.schema.types().items() if name not in node.keys)
    _check_reserved((name for name, _ in looked_up), _setting(node))
    return (*columns(node.input).items(), *looked_up)


@_columns.register
def _(node: Union) -> Pairs:
    require(len(node.inputs) >= 2, _setting(node), "needs at least two streams", len(node.inputs), "a.union(b)")
    first, *others = (columns(input_) for input_ in node.inputs)
    for other in others:
        got = " and ".join(", ".join(f"{name} {type_}" for name, type_ in side.items()) for side in (first, other))
        require(other == first, _setting(node), "needs the same columns on all sides", got, "select(...) before it")
    return tuple(first.items())


@_columns.register
def _(node: SessionAggregate) -> Pairs:
    return _keys(node, node.input) + _WINDOW + _aggregates(node)


@_columns.register
def _(node: Distinct) -> Pairs:
    for key, kind in _keys(node, node.input):
        rule = f"key {key!r} must be no double: engines do not agree which of 0.0, -0.0 and NaNs are one value"
        require(kind != "double", _setting(node), rule, kind, f"a whole number: cast(floor({key}) as bigint)")
    available = tuple(columns(node.input).items())
    if node.window is None:
        return available
    check_window(node.window, _setting(node))
    return available + _WINDOW


@_columns.register
def _(node: TopN) -> Pairs:
    setting, available = _setting(node), columns(node.input)
    names = ", ".join(available)
    require(node.n >= 1, setting, "must keep at least one row", node.n, "top(10, by='count')")
    for name in (WINDOW_START, WINDOW_END):
        rule = f"ranks the rows of a window, and its input has no {name}"
        require(name in available, setting, rule, names, "window(...).aggregate(...) before it")
    type_ = _row_type(node.by, available, setting)
    require(type_ in NUMBERS, setting, f"must rank by a number, and it is {type_}", node.by, "by='count'")
    for name in (*node.keys, *node.ties):
        require(name in available, setting, f"{name!r} must be a column of its input", name, names)
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
    process.check(node, [columns(input_) for input_ in node.inputs], _setting(node))
    _check_own_names(node, node.gives)
    available = columns(node.inputs[0]) | {ORDINAL: "bigint"}
    return node.gives + tuple((name, available[column]) for name, column in node.lineage)


_WINDOW: Pairs = ((WINDOW_START, "timestamp"), (WINDOW_END, "timestamp"))
NUMBERS = ("int", "bigint", "double")


def _row_type(expression: str, available: dict[str, str], setting: str) -> str:
    checked = expressions.checked(expression, available, setting)
    rule = "must not aggregate, because the operator works row by row"
    require(not checked.aggregate, setting, rule, expression, "window(...).aggregate(...), or running(...)")
    return checked.type


def _aggregate_type(expression: str, available: dict[str, str], setting: str) -> str:
    checked = expressions.checked(expression, available, setting)
    require(checked.aggregate, setting, "must aggregate rows", expression, f"max({expression})")
    return checked.type


def _computed(pairs: Pairs, node: Node, type_of: TypeOf) -> Pairs:
    """The names and types of expressions over the columns of the node's input."""
    _check_own_names(node, pairs)
    available = columns(graph.inputs(node)[0])
    return tuple((name, type_of(text, available, f"{_setting(node)}, column {name}")) for name, text in pairs)


def _aggregates(node: WindowAggregate | RunningAggregate | SessionAggregate) -> Pairs:
    require(node.aggregates, _setting(node), "must compute at least one aggregate", "none", "count='count(*)'")
    return _computed(node.aggregates, node, _aggregate_type)


def _keys(node: _Keyed, input_: Node) -> Pairs:
    setting, available = _setting(node), columns(input_)
    require(node.keys, setting, "needs at least one key", "none", f"keys={next(iter(available))!r}")
    for key in node.keys:
        rule = f"key {key!r} must be a column of its input"
        require(key in available, setting, rule, key, f"one of {', '.join(available)}")
        require(
            not element_type(available[key]),
            setting,
            f"key {key!r} is an array",
            available[key],
            "explode it before",
        )
    return tuple((key, available[key]) for key in node.keys)


def _check_lookup(node: Lookup, setting: str) -> None:
    """Keys have one plain type on both sides, and are unique and not null in the table."""
    table, table_types = f"table {node.table.name}", node.table.schema.types()
    for key, type_ in _keys(node, node.input):
        rule = f"key {key!r} must be a column of {table}"
        require(key in table_types, setting, rule, key, f"one of {', '.join(table_types)}")
        rule = f"key {key!r} must have one type on both sides, and not be a double"
        way_out = f"table(..., schema=Schema.from_types({key}={type_!r}))"
        require(type_ == table_types[key] != "double", setting, rule, f"{type_} and {table_types[key]}", way_out)
    rows = node.table.to_arrow().select(list(node.keys))
    nulls = any(column.null_count for column in rows.columns)
    require(not nulls, setting, f"{table} has a null key", "null", "leave that row out")
    unique = rows.group_by(list(node.keys)).aggregate([]).num_rows
    got = f"{rows.num_rows} rows, {unique} keys"
    require(unique == rows.num_rows, setting, f"keys must be unique in {table}", got, "one row for each key")


def _holds_rows(node: Node) -> bool:
    """Whether the node keeps state and does not give source rows at their own times, as first rows of all are given."""
    is_first_of_all = isinstance(node, Distinct) and node.window is None
    return (isinstance(node, STATEFUL) and not is_first_of_all) or (isinstance(node, Process) and bool(node.keys))


def _check_own_names(node: Node, pairs: Pairs) -> None:
    """Refuses reserved names that the user gave; the lineage rewrite gives some of them itself."""
    if not graph.carries_lineage(node):
        _check_reserved((name for name, _ in pairs), _setting(node))


def _check_reserved(names: Iterable[str], setting: str) -> None:
    for name in names:
        is_reserved = name.lower() in RESERVED or name.startswith("_")
        require(not is_reserved, setting, "uses a column name that streamgauge reserves", name, f"{name.strip('_')}_2")
