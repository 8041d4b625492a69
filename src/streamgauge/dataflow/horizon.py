"""Reach: how far in event time one event can influence a flow's results; the length of a run's tail [method 9]."""

from __future__ import annotations

from typing import assert_never

from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import WINDOW_END
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    InWindows,
    Lookup,
    NativeJob,
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

HELD_US = 5 * US
"""What a process gives of the watermark comes a batch after it was due; a batch is seldom longer."""


def reach_us(flow: Flow) -> int | None:
    """Microseconds of the longest stateful path, None without end.

    On it, each window counts by its range: the last one that holds an event ends no later than that after it. A session
    counts by its gap (one that is not closed by then is of events after the measured ones), an interval by its farther
    end, row by row by nothing, and a process says its own.
    """
    longest = 0
    for sink in flow.sinks:
        reach = _reach(sink.input)
        if reach is None:
            return None
        longest = max(longest, reach)
    return longest


def tail_us(flow: Flow) -> int:
    """So long after an event all of its results that close have closed, given that input goes on: each window on the
    way to a sink, before or behind something without end, by its range, and what waits for the watermark besides.
    """
    return max((_closing(sink.input) for sink in flow.sinks), default=0)


def slide_us(node: Node) -> int | None:
    """Microseconds from one window's end to the next in a node's rows; None where they are of no such windows."""
    if WINDOW_END not in schema.columns(node):
        return None
    windows = [window for each in graph.walk(node) if isinstance(window := getattr(each, "window", None), Window)]
    return max((window.slide_us for window in windows), default=None)


def _reach(node: Node) -> int | None:
    own = _own(node)
    before = [_reach(input_) for input_ in graph.inputs(node)]
    if own is None or any(reach is None for reach in before):
        return None
    return own + max((reach for reach in before if reach is not None), default=0)


def _closing(node: Node) -> int:
    held = HELD_US if isinstance(node, Process) and node.identity else 0
    return (_own(node) or 0) + held + max(map(_closing, graph.inputs(node)), default=0)


def _own(node: Node) -> int | None:
    match node:
        case RunningAggregate():
            return None
        case Distinct():
            return None if node.window is None else node.window.range_us
        case WindowAggregate() | WindowJoin():
            return node.window.range_us
        case SessionAggregate():
            return node.session.gap_us
        case NativeJob() | Process():
            return node.reach_us
        case IntervalJoin():
            return max(abs(node.earliest_us), abs(node.latest_us))
        case Source() | Select() | Where() | Explode() | InWindows() | Lookup() | Union() | TopN():
            return 0
        case _:
            assert_never(node)
