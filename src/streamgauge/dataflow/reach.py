"""Reach: how far in event time one event can influence a flow's results. It sets the length of a trial's tail."""

from collections.abc import Callable, Sequence

from streamgauge.core.schema import WINDOW_END
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import (
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
    Window,
    WindowAggregate,
    WindowJoin,
)

ClosingDelay = Callable[[Node], int]
"""How many microseconds of event time an engine gives the results of a node later than they are complete."""


def reach_us(flow: Flow) -> int | None:
    """The reach of the longest stateful path in microseconds; None means without end.

    The reach of a path is the sum over its nodes:

    - a window adds its range, because the last window of an event ends within it;
    - a session adds its gap (a session still open after it belongs to events after the measured span);
    - an interval join adds its farther bound;
    - a process adds the reach that it declares;
    - row-by-row operators add nothing.
    """
    return _longest([_reach(sink.input) for sink in flow.sinks])


def tail_us(flow: Flow, delay_us: ClosingDelay) -> int:
    """Microseconds after an event until all windows that contain it have closed, if input continues.

    Sums as in `reach_us`, but nodes without end add nothing, and each node adds its `delay_us`.
    """
    return max((_closing(sink.input, delay_us) for sink in flow.sinks), default=0)


def slide_us(node: Node) -> int | None:
    """Microseconds between window ends in a node's rows; None if they have no regular windows."""
    if WINDOW_END not in schema.columns(node):
        return None
    windows = [window for each in graph.walk(node) if isinstance(window := getattr(each, "window", None), Window)]
    return max((window.slide_us for window in windows), default=None)


def _reach(node: Node) -> int | None:
    own_us, before_us = _own_reach_us(node), _longest([_reach(input_) for input_ in graph.inputs(node)])
    return None if own_us is None or before_us is None else own_us + before_us


def _longest(reaches_us: Sequence[int | None]) -> int | None:
    """The greatest reach; None if one is without end."""
    ended = [reach for reach in reaches_us if reach is not None]
    return max(ended, default=0) if len(ended) == len(reaches_us) else None


def _closing(node: Node, delay_us: ClosingDelay) -> int:
    before = max((_closing(each, delay_us) for each in graph.inputs(node)), default=0)
    return (_own_reach_us(node) or 0) + delay_us(node) + before


def _own_reach_us(node: Node) -> int | None:
    match node:
        case RunningAggregate():
            return None
        case Distinct():
            return None if node.window is None else node.window.range_us
        case WindowAggregate() | WindowJoin():
            return node.window.range_us
        case SessionAggregate():
            return node.session.gap_us
        case OpaqueNode() | Process():
            return node.reach_us
        case IntervalJoin():
            return max(abs(node.earliest_us), abs(node.latest_us))
        case Source() | Select() | Where() | Explode() | InWindows() | Lookup() | Union() | TopN():
            return 0
