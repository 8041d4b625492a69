"""Which sinks of a flow share a streaming query, and how one query serves several sinks.

Sinks whose last steps are row by row (select, where) on one and the same operator share a query: the operator is read
once, and each row leaves with one nullable struct column for each sink, which the writer takes apart. So do running
aggregates whose inputs are row by row on one operator, a process without keys among it (`side_by_side.tagged`). Sinks
that end in different operators are different queries of the one session: each with its own checkpoint and batches, its
own output mode, at its own pace, and each reads its sources itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamgauge.dataflow.lineage import needed_columns, pruned
from streamgauge.dataflow.nodes import Flow, Mode, Node, Process, RunningAggregate, Select, Sink, Where
from streamgauge.engines.spark.lowering.partial_aggregation import aggregated, parts_of

Columns = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Query:
    """One streaming query and the sinks that it serves, all of one mode and on one operator, or on running aggregates
    over one operator.
    """

    name: str
    sinks: tuple[Sink, ...]

    @property
    def mode(self) -> Mode:
        return self.sinks[0].mode

    def columns(self, flow: Flow, given: Columns) -> Columns:
        """Of the columns that the transport gives of each stream, those for this query.

        A column that only other sinks need is left out; one that no sink needs (a payload) is there to be carried.
        """
        mine, anyones = needed_columns(Flow(self.sinks)), needed_columns(flow)
        return {
            stream: tuple(name for name in given[stream] if name in wanted or name not in anyones[stream])
            for stream, wanted in mine.items()
        }


def queries(flow: Flow) -> tuple[Query, ...]:
    """The queries that serve a flow's sinks, in the order of their first sinks; each has only what its sinks read."""
    groups: dict[tuple[Node, Mode], list[Sink]] = {}
    for sink in flow.sinks:
        groups.setdefault((_shared_by(sink, flow), sink.mode), []).append(sink)
    return tuple(Query(f"q{number}", pruned(Flow(tuple(sinks))).sinks) for number, sinks in enumerate(groups.values()))


def operator_of(node: Node) -> Node:
    """The last operator up to a node that is not merely row by row."""
    return next(each for each in _back_from(node) if not isinstance(each, Select | Where))


def steps_to(node: Node, operator: Node) -> list[Select | Where]:
    """The row-wise steps from an operator to a node, in the order in which a row meets them."""
    steps: list[Select | Where] = []
    for each in _back_from(node):
        if each == operator:
            break
        assert isinstance(each, Select | Where)
        steps.append(each)
    return steps[::-1]


def last_shared(aggregates: Sequence[RunningAggregate]) -> Node:
    """The node furthest along that what all of them aggregate has come through."""
    first, *others = [list(_before(each)) for each in aggregates]
    return next(node for node in first if all(node in other for other in others))


def process_of(aggregates: Sequence[RunningAggregate], shared: Node) -> Process | None:
    """The process that some of them have behind the node that all share."""
    found = {each: None for node in aggregates for each in _processes(node) if each in _until(node, shared)}
    return next(iter(found), None)


def _until(node: RunningAggregate, shared: Node) -> list[Node]:
    path = list(_before(node))
    return path[: path.index(shared)]


def _shared_by(sink: Sink, flow: Flow) -> Node:
    """What a sink has to have in common with another to share its query; nothing follows a running aggregate."""
    if not isinstance(sink.input, RunningAggregate):
        return operator_of(sink.input)
    *_, origin = _before(sink.input)
    others = [each.input for each in flow.sinks if isinstance(each.input, RunningAggregate)]
    beside = [other for other in others if list(_before(other))[-1] == origin]
    return origin if _go_together(beside) else operator_of(sink.input)


def _go_together(aggregates: Sequence[RunningAggregate]) -> bool:
    """Whether what is aggregated under one name has one type and spelling in all, and they have one process between
    them, or none. Where some have it and others do not, Python makes parts of all: each has parts, and nothing lies
    between the process and its aggregates.
    """
    kinds: dict[str, tuple[str, str]] = {}
    named = [one for each in aggregates for one in aggregated(each).items()]
    # Spark does not tell Price from price.
    alike = all(kinds.setdefault(name.lower(), (name, kind)) == (name, kind) for name, kind in named)
    if len({process for each in aggregates for process in _processes(each)}) > 1:
        return False
    process = process_of(aggregates, last_shared(aggregates))
    last = all(each.input == process for each in aggregates if process in _processes(each))
    return alike and (process is None or (last and all(map(parts_of, aggregates))))


def _before(node: RunningAggregate) -> Iterator[Node]:
    """From what a running aggregate takes in back over what is row by row, processes without keys among it."""
    before = node.input
    while isinstance(before, Select | Where | Process) and _is_row_wise(before):
        yield before
        before = before.inputs[0] if isinstance(before, Process) else before.input
    yield before


def _processes(node: RunningAggregate) -> list[Process]:
    return [each for each in _before(node) if isinstance(each, Process) and _is_row_wise(each)]


def _is_row_wise(node: Node) -> bool:
    return isinstance(node, Select | Where) or (isinstance(node, Process) and not node.keys and len(node.inputs) == 1)


def _back_from(node: Node) -> Iterator[Node]:
    """From a node back over its row-wise steps, the operator before them included."""
    while isinstance(node, Select | Where):
        yield node
        node = node.input
    yield node
