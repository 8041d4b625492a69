"""Reach: how far in event time one event can influence a flow's results; the length of a run's tail [method 9]."""

from __future__ import annotations

from streamgauge.flow import schema
from streamgauge.flow.nodes import Flow, Node, RunningAggregate, WindowAggregate, WindowJoin


def reach_us(flow: Flow) -> int | None:
    """Microseconds of the longest stateful path: range + slide of each window on it, 0 row by row, None without end."""
    reaches = [_reach(sink.input) for sink in flow.sinks]
    return None if None in reaches else tail_us(flow)


def tail_us(flow: Flow) -> int:
    """The longest of those reaches that end: so long after an event all of its results that close have closed."""
    return max((reach for sink in flow.sinks if (reach := _reach(sink.input)) is not None), default=0)


def _reach(node: Node) -> int | None:
    if isinstance(node, RunningAggregate):
        return None
    before = [_reach(input_) for input_ in schema.inputs(node)]
    if any(reach is None for reach in before):
        return None
    own = node.window.range_us + node.window.slide_us if isinstance(node, WindowAggregate | WindowJoin) else 0
    return own + max((reach for reach in before if reach is not None), default=0)
