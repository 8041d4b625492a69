"""Windows that give their values so far instead of waiting for their end, as engines do that write updates alone.

A windowed aggregate at the end of a flow becomes a running aggregate by its keys and its window. Its results are
updates: each is verified as the value after all events of its key and window up to the one that made it [method 9].
"""

from __future__ import annotations

from dataclasses import replace

from streamgauge.core.lineage_columns import WINDOW_END, WINDOW_START
from streamgauge.dataflow.nodes import Flow, InWindows, RunningAggregate, Sink, WindowAggregate


def with_early_firing(flow: Flow) -> Flow:
    """The flow whose sinks take what their windows hold so far, where a window's aggregate is what they take."""
    return Flow(tuple(map(_early, flow.sinks)))


def _early(sink: Sink) -> Sink:
    node = sink.input
    if not isinstance(node, WindowAggregate):
        return sink
    each = InWindows(node.input, node.window, f"{node.name}.windows")
    keys = (*node.keys, WINDOW_START, WINDOW_END)
    return replace(sink, input=RunningAggregate(each, keys, node.aggregates, node.name), mode="update")
