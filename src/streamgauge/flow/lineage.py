"""Lineage: the one flow-to-flow rewrite that carries event time, ingest time and event ids through every node.

Rules [design 2]: row by row they are kept; a window or running aggregate takes the maximum of both times, and its keys
and window identify a result; a join takes the greater of both times and keeps both ids. An id is carried only as far as
it identifies something. Neither workloads nor engines know of any of this. `flow` itself is the flow without lineage.

Operators that the rewrite adds are named after the join they serve: `join.left`, `join.right`, `join.lineage`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamgauge.events import EVENT_ID, EVENT_TIME, INGEST_TIME, LINEAGE, WINDOW_START
from streamgauge.flow import expressions, schema
from streamgauge.flow.nodes import (
    Columns,
    Flow,
    Node,
    RunningAggregate,
    Select,
    Source,
    Where,
    WindowAggregate,
    WindowJoin,
)

Times = tuple[str, ...]


@dataclass(frozen=True)
class Carried:
    """A node with lineage: the columns that identify one of its rows, and those of them that are not its own."""

    node: Node
    ids: tuple[str, ...]
    added: tuple[str, ...]


def with_lineage(flow: Flow, ingest_time: bool = True) -> Flow:
    """The flow with lineage: its own columns, then event_time, ingest_time, then the ids that it has no column for.

    `ingest_time=False` leaves that column out, for a reference that does not know when events were handed out.
    """
    times = (EVENT_TIME, INGEST_TIME) if ingest_time else (EVENT_TIME,)
    return Flow(tuple(replace(sink, input=_rewritten(sink.input, times).node) for sink in flow.sinks))


def identity(flow: Flow) -> tuple[str, ...]:
    """The columns of `with_lineage(flow)` that identify one result [method 9], for a flow of one sink, without lineage.

    Row by row: event_id. Window aggregates: keys and window_start. Joins: both event ids and window_start.
    Updates: keys and event_time.
    """
    return _rewritten(flow.sink.input, (EVENT_TIME, INGEST_TIME)).ids


def added_columns(flow: Flow) -> tuple[str, ...]:
    """The columns that `with_lineage(flow)` adds to the flow's own, in order; for a flow of one sink."""
    return (EVENT_TIME, INGEST_TIME, *_rewritten(flow.sink.input, (EVENT_TIME, INGEST_TIME)).added)


def needed_columns(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Which columns of each stream are used at all: fields in the order of the schema, then lineage.

    event_time is always among them where a window needs it, even in a flow without lineage.
    """
    used: dict[str, set[str]] = {}
    for sink in flow.sinks:
        _need(sink.input, set(schema.columns(sink.input)), used)
    by_name = {source.name: source for source in schema.sources(flow)}
    return {
        name: tuple(column for column in (*source.schema.names, *LINEAGE) if column in used[name])
        for name, source in by_name.items()
    }


def _rewritten(last: Node, times: Times) -> Carried:
    if schema.carries_lineage(last):
        raise ValueError("this flow carries lineage already; give the flow as the workload wrote it")
    return _carry(last, times, wanted=True)


def _carry(node: Node, times: Times, wanted: bool) -> Carried:
    """`wanted`: whether anything after this node is identified by this node's rows."""
    match node:
        case Source():
            ids = (EVENT_ID,) if wanted else ()
            return Carried(replace(node, lineage=(*times, *ids)), ids, ids)
        case Where():
            input_ = _carry(node.input, times, wanted)
            return replace(input_, node=replace(node, input=input_.node))
        case Select():
            return _carry_select(node, times, wanted)
        case WindowAggregate():
            input_ = _carry(node.input, times, wanted=False)
            kept = replace(node, input=input_.node, aggregates=node.aggregates + _maxima(times))
            return Carried(kept, (*node.keys, WINDOW_START), ())
        case RunningAggregate():
            input_ = _carry(node.input, times, wanted=False)
            running = replace(node, input=input_.node, aggregates=node.aggregates + _maxima(times))
            return Carried(running, (*node.keys, EVENT_TIME), ())
        case WindowJoin():
            return _carry_join(node, times, wanted)


def _maxima(times: Times) -> Columns:
    return tuple((time, f"max({time})") for time in times)


def _carry_select(node: Select, times: Times, wanted: bool) -> Carried:
    """An id that the select passes on, perhaps renamed, is an id still; one that it drops is added again."""
    input_ = _carry(node.input, times, wanted)
    passed = {expression.strip(): name for name, expression in reversed(node.columns)}
    own = {name for name, _ in node.columns}
    kept = {id_: passed.get(id_) or _free(id_, own) for id_ in input_.ids} if wanted else {}
    added = tuple(id_ for id_ in kept if id_ not in passed)
    columns = node.columns + tuple((time, time) for time in times) + tuple((kept[id_], id_) for id_ in added)
    select = replace(node, input=input_.node, columns=columns)
    return Carried(select, tuple(kept.values()), tuple(kept[id_] for id_ in added))


def _free(name: str, taken: set[str], prefix: str = "id_") -> str:
    while name in taken:
        name = prefix + name
    return name


def _carry_join(node: WindowJoin, times: Times, wanted: bool) -> Carried:
    """Each side takes its lineage under names of its own; after the join they are made one."""
    left, right = _carry(node.left, times, wanted), _carry(node.right, times, wanted)
    own = tuple(schema.columns(node))
    taken = set(own)
    left_names = _side_names(left, node.left, "left_", taken)
    right_names = _side_names(right, node.right, "right_", taken)
    join = replace(
        node,
        left=_side(node.left, left.node, times, "left_", left_names, f"{node.name}.left"),
        right=_side(node.right, right.node, times, "right_", right_names, f"{node.name}.right"),
    )
    added = (*left_names.values(), *right_names.values()) if wanted else ()
    merged = tuple((time, f"greatest(left_{time}, right_{time})") for time in times)
    columns = tuple((name, _quoted(name)) for name in own) + merged + tuple((name, name) for name in added)
    ids = [*(left_names.get(id_, id_) for id_ in left.ids), *(right_names.get(id_, id_) for id_ in right.ids)]
    unique = tuple(dict.fromkeys([*ids, WINDOW_START])) if wanted else ()
    return Carried(Select(join, columns, f"{node.name}.lineage"), unique, added)


def _side_names(side: Carried, original: Node, prefix: str, taken: set[str]) -> dict[str, str]:
    """Added id to its name after the join: `purchases_event_id`; names that clash get the side before them."""
    names = {}
    for id_ in side.added:
        stream = next(each.name for each in schema.walk(original) if isinstance(each, Source))
        names[id_] = _free(f"{stream}_{EVENT_ID}" if id_ == EVENT_ID else id_, taken, prefix)
        taken.add(names[id_])
    return names


def _side(original: Node, carried: Node, times: Times, prefix: str, names: dict[str, str], operator: str) -> Select:
    own = tuple((name, _quoted(name)) for name in schema.columns(original))
    lineage = tuple((prefix + time, time) for time in times)
    return Select(carried, own + lineage + tuple((name, id_) for id_, name in names.items()), operator)


def _quoted(name: str) -> str:
    """A column as an expression; backticks only where Spark SQL needs them."""
    return name if name.isidentifier() and name.islower() else "`" + name.replace("`", "``") + "`"


def _need(node: Node, wanted: set[str], used: dict[str, set[str]]) -> None:
    """Walks from the sink to the sources and notes what is read of each source."""
    match node:
        case Source():
            used.setdefault(node.name, set()).update(wanted)
        case Where():
            _need(node.input, wanted | expressions.columns_of(node.predicate), used)
        case Select():
            read = [expressions.columns_of(expression) for name, expression in node.columns if name in wanted]
            _need(node.input, set().union(*read) | (wanted & {EVENT_TIME}), used)
        case WindowAggregate() | RunningAggregate():
            read = [expressions.columns_of(expression) for name, expression in node.aggregates if name in wanted]
            time = {EVENT_TIME} if isinstance(node, WindowAggregate) else set()
            _need(node.input, set().union(*read) | set(node.keys) | time, used)
        case WindowJoin():
            for side in (node.left, node.right):
                _need(side, ((wanted | set(node.keys)) & set(schema.columns(side))) | {EVENT_TIME}, used)
