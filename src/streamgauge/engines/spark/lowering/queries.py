"""Assigns the sinks of a flow to streaming queries.

These sinks share a query:

- Sinks with row-by-row steps (select, where) on the same operator. Each row has one nullable struct column per sink,
  which the writer splits.
- Running aggregates with row-by-row inputs on the same operator, stateless processes included
  (`shared_scan.fuse_aggregates`).

Other sinks are separate queries of the session, each with its own checkpoint, batches, output mode and readers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from streamgauge.core.schema import StreamColumns
from streamgauge.dataflow.lineage import needed_columns, pruned
from streamgauge.dataflow.nodes import Flow, Mode, Node, Process, RunningAggregate, Select, Sink, Where
from streamgauge.engines.spark.lowering.partial_aggregation import aggregated, parts_of


@dataclass(frozen=True)
class Query:
    """One streaming query and its sinks, which have one mode and share an operator."""

    name: str
    sinks: tuple[Sink, ...]

    @property
    def mode(self) -> Mode:
        return self.sinks[0].mode

    def columns(self, flow: Flow, available: StreamColumns) -> dict[str, tuple[str, ...]]:
        """The columns of each stream that this query reads, out of those that the transport offers.

        Columns that only other sinks need are omitted. Columns that no sink needs (payload) are read.
        """
        own, all_needed = needed_columns(Flow(self.sinks)), needed_columns(flow)
        return {
            stream: tuple(name for name in available[stream] if name in needed or name not in all_needed[stream])
            for stream, needed in own.items()
        }


def queries(flow: Flow) -> tuple[Query, ...]:
    """The queries of a flow, in the order of their first sinks, each pruned to what its sinks read."""
    groups: dict[tuple[Node, Mode], list[Sink]] = {}
    for sink in flow.sinks:
        groups.setdefault((_shared_by(sink, flow), sink.mode), []).append(sink)
    return tuple(Query(f"q{number}", pruned(Flow(tuple(sinks))).sinks) for number, sinks in enumerate(groups.values()))


def operator_of(node: Node) -> Node:
    """The last operator up to a node that is not a select or where."""
    return next(each for each in _back_from(node) if not isinstance(each, Select | Where))


def steps_to(node: Node, operator: Node) -> list[Select | Where]:
    """The row-wise steps from an operator to a node, in order."""
    steps = takewhile(lambda each: each != operator, _back_from(node))
    return [each for each in steps if isinstance(each, Select | Where)][::-1]


def last_shared(aggregates: Sequence[RunningAggregate]) -> Node:
    """The last node that is upstream of all aggregates."""
    first, *others = [list(_before(each)) for each in aggregates]
    return next(node for node in first if all(node in other for other in others))


def process_of(aggregates: Sequence[RunningAggregate], shared: Node) -> Process | None:
    """The process between the shared node and some of the aggregates, or None."""
    paths = (list(_before(node)) for node in aggregates)
    return next((each for path in paths for each in path[: path.index(shared)] if isinstance(each, Process)), None)


def _shared_by(sink: Sink, flow: Flow) -> Node:
    """The operator that sinks must have in common to share a query."""
    if not isinstance(sink.input, RunningAggregate):
        return operator_of(sink.input)
    *_, origin = _before(sink.input)
    others = (each.input for each in flow.sinks)
    beside = [each for each in others if isinstance(each, RunningAggregate) and list(_before(each))[-1] == origin]
    return origin if _go_together(beside) else operator_of(sink.input)


def _go_together(aggregates: Sequence[RunningAggregate]) -> bool:
    """Whether aggregates can share a query: columns of one name have one type and spelling, and there is at most one
    process. With a process, all need partials, and no step may follow the process.
    """
    kinds: dict[str, tuple[str, str]] = {}
    named = [one for each in aggregates for one in aggregated(each).items()]
    # Spark ignores case in column names.
    alike = all(kinds.setdefault(name.lower(), (name, kind)) == (name, kind) for name, kind in named)
    if len({process for each in aggregates for process in _processes(each)}) > 1:
        return False
    process = process_of(aggregates, last_shared(aggregates))
    last = all(each.input == process for each in aggregates if process in _processes(each))
    return alike and (process is None or (last and all(map(parts_of, aggregates))))


def _before(node: RunningAggregate) -> Iterator[Node]:
    """The input of a running aggregate and its row-wise upstream nodes, stateless processes included."""
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
    """A node, its upstream row-wise steps, and the operator before them."""
    while isinstance(node, Select | Where):
        yield node
        node = node.input
    yield node
