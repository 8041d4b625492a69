"""Which sinks of a flow share a streaming query, and how one query serves several sinks.

Sinks whose last steps are row by row (select, where) on one and the same operator share a query: the operator is read
once, and each row leaves with one nullable struct column for each sink, which the writer takes apart. Sinks that end in
different operators are different queries of the one session: each with its own checkpoint and batches, its own output
mode, at its own pace, and each reads its sources itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamgauge.flow.lineage import needed_columns, pruned
from streamgauge.flow.nodes import Flow, Mode, Node, Select, Sink, Where

Columns = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Query:
    """One streaming query and the sinks that it serves, all of one mode and on one operator."""

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
        groups.setdefault((operator_of(sink), sink.mode), []).append(sink)
    return tuple(Query(f"q{number}", pruned(Flow(tuple(sinks))).sinks) for number, sinks in enumerate(groups.values()))


def operator_of(sink: Sink) -> Node:
    """The last operator before a sink that is not merely row by row."""
    return next(node for node in _back_from(sink) if not isinstance(node, Select | Where))


def steps_of(sink: Sink) -> list[Select | Where]:
    """The row-wise steps between that operator and the sink, in the order in which a row meets them."""
    steps = [node for node in _back_from(sink) if isinstance(node, Select | Where)]
    return steps[::-1]


def _back_from(sink: Sink) -> Iterator[Node]:
    """From a sink back over its row-wise steps, the operator before them included."""
    node = sink.input
    while isinstance(node, Select | Where):
        yield node
        node = node.input
    yield node
