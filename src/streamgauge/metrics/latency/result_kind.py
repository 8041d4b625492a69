"""The kind of a sink's results, and the latencies that follow from it."""

from __future__ import annotations

from streamgauge.core.schema import WINDOW_END
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import Explode, Flow, Lookup, OpaqueNode, RunningAggregate, Select, Where, WindowJoin
from streamgauge.metrics.latency.event_latency import Kind


def kind_of(flow: Flow) -> Kind:
    """The kind of results of a flow with one sink that is not a user job."""
    node = flow.sink.input
    if isinstance(node, RunningAggregate):
        return "update"
    if WINDOW_END not in schema.columns(node):
        return "row"
    return "join" if has_matches(flow) else "window"


def has_matches(flow: Flow) -> bool:
    """Whether the results are matches of a window join, possibly changed row by row."""
    node = flow.sink.input
    while isinstance(node, (Select, Where, Lookup, Explode)):
        node = node.input
    return isinstance(node, WindowJoin)


def latencies_of(flow: Flow) -> tuple[str, ...] | None:
    """The latencies that a flow's sinks have; None for user jobs, whose columns are unknown before the run."""
    if any(isinstance(node, OpaqueNode) for node in graph.operators(flow)):
        return None
    kinds = {kind_of(one) for one in flow.each()}
    counted = ("until_counted",) if "update" in kinds else ()
    closing = ("closing_delay",) if kinds & {"window", "join"} else ()
    matches = ("match_time",) if "join" in kinds else ()
    return ("event_time", *counted, "processing_time", *closing, *matches, "uncorrected")
