"""Reach: how far in event time one event can influence a flow's results; the length of a run's tail [method 9]."""

from __future__ import annotations

from streamgauge.flow import schema
from streamgauge.flow.nodes import Flow, Node, Process, RunningAggregate, WindowAggregate, WindowJoin


def reach_us(flow: Flow) -> int | None:
    """Microseconds of the longest stateful path: range + slide of each window on it, 0 row by row, None without end.

    A process says its own.
    """
    return _reach(flow.sink.input)


def _reach(node: Node) -> int | None:
    if isinstance(node, RunningAggregate) or (isinstance(node, Process) and node.reach_us is None):
        return None
    before = [_reach(input_) for input_ in schema.inputs(node)]
    if any(reach is None for reach in before):
        return None
    return _own(node) + max((reach for reach in before if reach is not None), default=0)


def _own(node: Node) -> int:
    if isinstance(node, WindowAggregate | WindowJoin):
        return node.window.range_us + node.window.slide_us
    return (node.reach_us or 0) if isinstance(node, Process) else 0
