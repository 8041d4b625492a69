"""Lineage: the flow rewrite that carries event time, ingest time and event ids through every node.

- Row-by-row operators copy all three.
- A window or running aggregate takes the maximum of each time. Its keys and window identify a result.
- A join takes the greater of each time and keeps both ids.
- A process names the row that a result came from, or states times itself.
- If one event becomes several rows, columns beside its id tell them apart: `event_ordinal` (index in an exploded
  array) and `event_branch` (input of a union).

An id is carried only as far as it identifies something. Neither workloads nor engines depend on the rewrite.
The rewrite gives no id a name that another column of the row has, or gets further down: such an id is `id_...`.
Added operators are named after the node they belong to: `join.left`, `join.right`, `join.lineage`.
Finally, columns that no operator reads are pruned from selects and aggregates, so that sources need not provide them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from streamgauge.core.errors import require
from streamgauge.core.schema import (
    EVENT_BRANCH,
    EVENT_ID,
    EVENT_ORDINAL,
    EVENT_TIME,
    LINEAGE,
    LINEAGE_TIMES,
    WINDOW_END,
    WINDOW_START,
)
from streamgauge.core.units import backquote
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import (
    Columns,
    Distinct,
    Explode,
    Flow,
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
    WindowAggregate,
    WindowJoin,
)
from streamgauge.dataflow.operators.api import ORDINAL

Times = tuple[str, ...]
Taken = frozenset[str]
"""Names in lower case, because engines ignore case."""
_NONE: Taken = frozenset()
_WINDOW: Taken = frozenset({WINDOW_START, WINDOW_END})


@dataclass(frozen=True)
class LineageNode:
    """A node with lineage: `ids` identify a row; `added` are those ids that the original node did not have."""

    node: Node
    ids: tuple[str, ...]
    added: tuple[str, ...]


def with_lineage(flow: Flow, ingest_time: bool = True) -> Flow:
    """The flow with lineage: its columns, then event_time, ingest_time, then the ids that are not columns already.

    `ingest_time=False` omits that column, for a reference that does not know delivery times.
    """
    times = LINEAGE_TIMES if ingest_time else (EVENT_TIME,)
    return pruned(Flow(tuple(replace(sink, input=_rewritten(sink.input, times).node) for sink in flow.sinks)))


def added(flow: Flow) -> set[str]:
    """The names that the rewrite may give to operators it adds to this flow."""
    return {f"{node.name}.{part}" for node in graph.operators(flow) for part in ("left", "right", "lineage")}


def identity(flow: Flow) -> tuple[str, ...]:
    """The columns of `with_lineage(flow)` that identify one result. `flow` has one sink and no lineage.

    Row by row: event_id. Window aggregates: keys and window_start. Joins: both event ids and window_start.
    Updates: keys and event_time.
    """
    return _rewritten(flow.sink.input, LINEAGE_TIMES).ids


def needed_columns(flow: Flow) -> dict[str, tuple[str, ...]]:
    """The columns of each stream that the flow reads: fields in the order of the schema, then lineage.

    A window reads event_time even in a flow without lineage.
    """
    required = _required(flow)
    used: dict[str, set[str]] = {}
    for source in graph.sources(flow):
        used.setdefault(source.name, set()).update(required[source])
    return {
        source.name: tuple(column for column in (*source.schema.names, *LINEAGE) if column in used[source.name])
        for source in graph.sources(flow)
    }


def check_inputs(node: Process | Union) -> None:
    """Raises InputError if the rows of several inputs are not identified by columns that go together."""
    _carry(node, LINEAGE_TIMES, required=True)


def _rewritten(last: Node, times: Times) -> LineageNode:
    if graph.carries_lineage(last):
        raise ValueError("this flow carries lineage already; give the flow as the workload wrote it")
    return _carry(last, times, required=True)


def _carry(node: Node, times: Times, required: bool, avoid: Taken = _NONE) -> LineageNode:
    """`required`: whether a downstream node uses this node's ids.

    `avoid`: names of columns that downstream nodes add to these rows; no added id may have one.
    """
    match node:
        case Source():
            ids = (EVENT_ID,) if required else ()
            return LineageNode(replace(node, lineage=(*times, *ids)), ids, ids)
        case Where():
            input_ = _carry(node.input, times, required, avoid)
            return replace(input_, node=replace(node, input=input_.node))
        case Select():
            return _carry_select(node, times, required, avoid)
        case WindowAggregate() | SessionAggregate() | RunningAggregate():
            input_ = _carry(node.input, times, required=False)
            maxima = tuple((time, f"max({time})") for time in times)
            aggregate = replace(node, input=input_.node, aggregates=node.aggregates + maxima)
            time = EVENT_TIME if isinstance(node, RunningAggregate) else WINDOW_START
            return LineageNode(aggregate, (*node.keys, time), ())
        case WindowJoin() | IntervalJoin():
            return _carry_join(node, times, required, avoid)
        case OpaqueNode():  # the user's code decides which columns it passes on
            lineage = (*times, EVENT_ID) if node.reads_lineage else ()
            sources = tuple(replace(each, lineage=lineage) for each in node.inputs)
            return LineageNode(replace(node, inputs=sources), (), ())
        case Process():
            return _carry_process(node, times, required, avoid)
        case Explode():
            return _carry_explode(node, times, required, avoid)
        case InWindows():
            input_ = _carry(node.input, times, required, avoid | _WINDOW)
            return LineageNode(replace(node, input=input_.node), (*input_.ids, WINDOW_START), input_.added)
        case Lookup():
            input_ = _carry(node.input, times, required, avoid | _lower(node.table.schema.names))
            return replace(input_, node=_in_order(replace(node, input=input_.node), node, times, input_.added))
        case Union():
            return _carry_union(node, times, required, avoid)
        case Distinct():
            input_ = _carry(node.input, times, True, avoid | (_WINDOW if node.window else _NONE))
            first = _in_order(replace(node, input=input_.node, ties=input_.ids), node, times, input_.added)
            windows = (WINDOW_START,) if node.window else ()
            return LineageNode(first, tuple(dict.fromkeys(input_.ids + windows)), input_.added)
        case TopN():
            ranked = replace(node, input=_carry(node.input, times, False, frozenset({schema.RANK})).node, latest=times)
            return LineageNode(_in_order(ranked, node, times, ()), (*node.keys, WINDOW_START, schema.RANK), ())


def _in_order(rewritten: Node, original: Node, times: Times, added: tuple[str, ...]) -> Select:
    """Selects the original columns first, then the lineage."""
    return Select(rewritten, _unchanged((*schema.columns(original), *times, *added)), f"{original.name}.lineage")


def _unchanged(names: Iterable[str]) -> Columns:
    """The columns of a select that passes these on under their own names."""
    return tuple((name, _quoted(name)) for name in names)


def _carry_explode(node: Explode, times: Times, required: bool, avoid: Taken) -> LineageNode:
    """The index in the array distinguishes the rows of one event."""
    input_ = _carry(node.input, times, required, avoid | {node.column.lower()})
    taken = _lower((*input_.added, *schema.columns(node))) | avoid
    ordinal = graph.free_name(EVENT_ORDINAL, taken) if required else None
    ordinals = (ordinal,) if ordinal else ()
    added = input_.added + ordinals
    exploded = _in_order(replace(node, input=input_.node, ordinal=ordinal), node, times, added)
    return LineageNode(exploded, input_.ids + ordinals, added)


def _carry_union(node: Union, times: Times, required: bool, avoid: Taken) -> LineageNode:
    """Every input gives the ids of all inputs; ids that it lacks are null."""
    sides = [_carry(input_, times, required, avoid) for input_ in node.inputs]
    types, renamed = _names_in_union(sides, _lower(schema.columns(node)) | avoid)
    taken = _lower((*types, *schema.columns(node))) | avoid
    branch = graph.free_name(EVENT_BRANCH, taken) if required and _ids_may_meet(node, sides) else None
    branches = (branch,) if branch else ()
    rows = []
    for number, (side, names) in enumerate(zip(sides, renamed, strict=True)):
        given = {name: _quoted(id_) for id_, name in names.items()}
        ids = tuple((name, given.get(name) or _null_of(kind, name, node)) for name, kind in types.items())
        own = _unchanged((*schema.columns(node.inputs[number]), *times))
        columns = own + ids + tuple((name, f"{number}L") for name in branches)
        rows.append(Select(side.node, columns, f"{node.name}.{number + 1}"))
    ids_ = dict.fromkeys(names.get(id_, id_) for side, names in zip(sides, renamed, strict=True) for id_ in side.ids)
    return LineageNode(replace(node, inputs=tuple(rows)), (*ids_, *branches), (*types, *branches))


def _names_in_union(sides: list[LineageNode], avoid: Taken) -> tuple[dict[str, str], list[dict[str, str]]]:
    """(name to type of every added id, each side's added id to that name). Ids of equal name and type are one."""
    types: dict[str, str] = {}
    spelled: dict[str, tuple[str, str]] = {}
    renamed = []
    for side in sides:
        taken, names, available = set(avoid), dict[str, str](), schema.columns(side.node)
        for id_ in side.added:
            name, kind = id_, available[id_]
            while name.lower() in taken or spelled.setdefault(name.lower(), (name, kind)) != (name, kind):
                name = f"id_{name}"
            taken.add(name.lower())
            names[id_], types[name] = name, kind
        renamed.append(names)
    return types, renamed


def _null_of(kind: str, name: str, node: Union) -> str:
    rule = f"cannot leave {name} out: rows of an input are identified by it, and it is {kind}"
    way_out = f"keep {name} as a column of every input, or select it as another type before the window"
    require(kind in _NULLS, f"union {node.name!r}", rule, name, way_out)
    return _NULLS[kind]


_NULLS = {
    "bigint": "nullif(0L, 0L)",
    "int": "nullif(0, 0)",
    "double": "nullif(0e0, 0e0)",
    "string": "nullif('', '')",
    "boolean": "nullif(true, true)",
    "timestamp": "timestamp_micros(nullif(0L, 0L))",
}
"""A null of each type that an id may have."""


def _ids_may_meet(node: Union, sides: list[LineageNode]) -> bool:
    """Whether two inputs may give rows with equal ids. Event ids are unique only across different streams."""
    streams = [each.name for input_ in node.inputs for each in set(graph.walk(input_)) if isinstance(each, Source)]
    return len(set(streams)) < len(streams) or any(EVENT_ID not in side.ids for side in sides)


def _carry_select(node: Select, times: Times, required: bool, avoid: Taken) -> LineageNode:
    """An id that the select passes on (perhaps renamed) remains an id; one that it drops is added again."""
    input_ = _carry(node.input, times, required)
    passed = {expression.strip(): name for name, expression in reversed(node.columns)}
    taken = {*_lower(name for name, _ in node.columns), *avoid}
    retained = {id_: passed.get(id_) or _take(id_, taken) for id_ in input_.ids} if required else {}
    added = tuple(id_ for id_ in retained if id_ not in passed)
    ids = tuple((retained[id_], _quoted(id_)) for id_ in added)
    select = replace(node, input=input_.node, columns=node.columns + _unchanged(times) + ids)
    return LineageNode(select, tuple(retained.values()), tuple(retained[id_] for id_ in added))


def _lower(names: Iterable[str]) -> Taken:
    return frozenset(name.lower() for name in names)


def _take(name: str, taken: set[str], prefix: str = "id_") -> str:
    """The name with as many prefixes as make it free, which it is no longer; `taken` is in lower case."""
    while name.lower() in taken:
        name = prefix + name
    taken.add(name.lower())
    return name


def _carry_join(node: WindowJoin | IntervalJoin, times: Times, required: bool, avoid: Taken) -> LineageNode:
    """Both sides carry their lineage under different names; a select after the join merges them."""
    left, right = _carry(node.left, times, required), _carry(node.right, times, required)
    own = tuple(schema.columns(node))
    taken = {*_lower(own), *avoid}
    left_names = _side_names(left, node.left, "left_", taken)
    right_names = _side_names(right, node.right, "right_", taken)
    left_times, right_times = ({time: _take(prefix + time, taken) for time in times} for prefix in ("left_", "right_"))
    join = replace(
        node,
        left=_side(node.left, left.node, left_times | left_names, f"{node.name}.left"),
        right=_side(node.right, right.node, right_times | right_names, f"{node.name}.right"),
    )
    added = (*left_names.values(), *right_names.values()) if required else ()
    merged = tuple((time, f"greatest({left_times[time]}, {right_times[time]})") for time in times)
    columns = _unchanged(own) + merged + _unchanged(added)
    ids = [*(left_names.get(id_, id_) for id_ in left.ids), *(right_names.get(id_, id_) for id_ in right.ids)]
    windows = [WINDOW_START] if isinstance(node, WindowJoin) else []
    unique = tuple(dict.fromkeys([*ids, *windows])) if required else ()
    return LineageNode(Select(join, columns, f"{node.name}.lineage"), unique, added)


def _carry_process(node: Process, times: Times, required: bool, avoid: Taken) -> LineageNode:
    """A keyed process always gets ids, because they order rows of equal time."""
    inputs = tuple(_carry(input_, times, required or bool(node.keys)) for input_ in node.inputs)
    order = _alike(node, [input_.ids for input_ in inputs])
    retained: dict[str, str] = {}
    if required and not node.identity:
        taken = {*_lower(name for name, _ in node.gives), *avoid}
        for id_ in (*order, *((ORDINAL,) if node.several else ())):
            retained[id_] = _take(id_ if id_ != ORDINAL else "event_ordinal", taken)
    lineage = tuple((time, time) for time in times) + tuple((name, id_) for id_, name in retained.items())
    process = replace(node, inputs=tuple(input_.node for input_ in inputs), lineage=lineage, order=order)
    ids = tuple(retained.values())
    return LineageNode(process, node.identity if required and node.identity else ids, ids)


def _alike(node: Process, ids: list[tuple[str, ...]]) -> tuple[str, ...]:
    rule, got = "must have inputs whose rows are identified by the same columns", " and ".join(map(", ".join, ids))
    require(len(set(ids)) == 1, f"process {node.name!r}", rule, got, "use windows on all inputs, or on none")
    return ids[0]


def _side_names(side: LineageNode, original: Node, prefix: str, taken: set[str]) -> dict[str, str]:
    """Added id to its name after the join: `purchases_event_id`. Names that clash get the side as a prefix."""
    names = {}
    for id_ in side.added:
        stream = next(each.name for each in graph.walk(original) if isinstance(each, Source))
        names[id_] = _take(f"{stream}_{EVENT_ID}" if id_ == EVENT_ID else id_, taken, prefix)
    return names


def _side(original: Node, rewritten: Node, renamed: dict[str, str], operator: str) -> Select:
    """The side's own columns, then its lineage under other names."""
    lineage = tuple((name, _quoted(column)) for column, name in renamed.items())
    return Select(rewritten, _unchanged(schema.columns(original)) + lineage, operator)


def _quoted(name: str) -> str:
    """A column as an expression, with backticks only where they are needed."""
    return name if name.isidentifier() and name.islower() else backquote(name)


def _required(flow: Flow) -> dict[Node, set[str]]:
    """For each node, sinks first: the columns that downstream nodes read; sinks read all."""
    required: dict[Node, set[str]] = {node: set() for node in reversed(list(graph.operators(flow)))}
    for sink in flow.sinks:
        required[sink.input].update(schema.columns(sink.input))
    for node, columns in required.items():
        for input_, read_columns in zip(graph.inputs(node), _reads(node, columns), strict=True):
            required[input_].update(read_columns)
    return required


def _reads(node: Node, required: set[str]) -> tuple[set[str], ...]:
    """The columns that a node reads from each input if its columns `required` are read downstream."""
    match node:
        case Source():
            return ()
        case Where():
            return (required | check.columns_of(node.predicate),)
        case Select():
            return (_read_by(node.columns, required) | (required & {EVENT_TIME}),)
        case WindowAggregate() | RunningAggregate() | SessionAggregate():
            time = set() if isinstance(node, RunningAggregate) else {EVENT_TIME}
            return (_read_by(node.aggregates, required) | set(node.keys) | time,)
        case WindowJoin() | IntervalJoin():
            sides = (node.left, node.right)
            return tuple(((required | set(node.keys)) & set(schema.columns(side))) | {EVENT_TIME} for side in sides)
        case Explode():
            return ((required - {node.column, node.ordinal}) | check.columns_of(node.array),)
        case InWindows():
            return ((required - {WINDOW_START, WINDOW_END}) | {EVENT_TIME},)
        case Lookup():
            return ((required & set(schema.columns(node.input))) | set(node.keys),)
        case Union():
            return (required,) * len(node.inputs)
        case Distinct():
            return ((required & set(schema.columns(node.input))) | set(node.keys) | set(node.ties) | {EVENT_TIME},)
        case TopN():
            return (set(schema.columns(node.input)),)
        case Process():
            used = {*node.reads, *node.order, *(column for _, column in node.lineage)}
            return tuple((used & set(schema.columns(input_))) | {EVENT_TIME} for input_ in node.inputs)
        case OpaqueNode():
            return tuple(set(schema.columns(each)) for each in node.inputs)


def _read_by(columns: Columns, required: set[str]) -> set[str]:
    return check.columns_of_all(_retained(columns, required))


def _retained(columns: Columns, required: set[str]) -> Columns:
    """The required columns, or the first one, so that no operator is left without columns."""
    return tuple(pair for pair in columns if pair[0] in required) or columns[:1]


def pruned(flow: Flow) -> Flow:
    """The flow without unread columns of selects and aggregates. Nodes shared by sinks stay shared."""
    required = _required(flow)
    return Flow(tuple(replace(sink, input=_pruned(sink.input, required)) for sink in flow.sinks))


def _pruned(end: Node, required: dict[Node, set[str]]) -> Node:
    """The flow up to `end` with only these columns.

    A stream that is read several times stays one source, with the union of the lineage columns.
    """
    lineage: dict[str, set[str]] = {}
    for node in graph.walk(end):
        if isinstance(node, Source):
            lineage.setdefault(node.name, set()).update(node.lineage)
    rewritten: dict[Node, Node] = {}
    for node in graph.walk(end):
        new = graph.with_inputs(node, tuple(rewritten[input_] for input_ in graph.inputs(node)))
        if isinstance(new, Source):
            new = replace(new, lineage=tuple(name for name in LINEAGE if name in lineage[new.name]))
        elif isinstance(new, Select):
            new = replace(new, columns=_retained(new.columns, required[node]))
        elif isinstance(new, WindowAggregate | RunningAggregate | SessionAggregate):
            new = replace(new, aggregates=_retained(new.aggregates, required[node]))
        rewritten[node] = new
    return rewritten[end]
