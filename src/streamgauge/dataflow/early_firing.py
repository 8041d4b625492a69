"""Early firing: windows emit their current values instead of waiting for their end.

Engines that only write updates need it. A windowed aggregate at a sink becomes a running aggregate by keys and window.
Each result is verified as the value after all events of its key and window up to the one that caused it.
"""

from __future__ import annotations

from dataclasses import replace

from streamgauge.core.schema import WINDOW_END, WINDOW_START
from streamgauge.dataflow.nodes import Flow, InWindows, RunningAggregate, Sink, WindowAggregate


def with_early_firing(flow: Flow) -> Flow:
    """The flow in which every windowed aggregate at a sink fires early."""
    return Flow(tuple(map(_early, flow.sinks)))


def _early(sink: Sink) -> Sink:
    node = sink.input
    if not isinstance(node, WindowAggregate):
        return sink
    each = InWindows(node.input, node.window, f"{node.name}.windows")
    keys = (*node.keys, WINDOW_START, WINDOW_END)
    return replace(sink, input=RunningAggregate(each, keys, node.aggregates, node.name), mode="update")
