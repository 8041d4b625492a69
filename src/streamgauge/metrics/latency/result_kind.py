"""Which kind of results a sink has, and so which latencies exist for it."""

from __future__ import annotations

from streamgauge.core.lineage_columns import WINDOW_END
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import Explode, Flow, Lookup, RunningAggregate, Select, UserJobNode, Where, WindowJoin
from streamgauge.metrics.latency.event_latency import Kind


def kind_of(flow: Flow) -> Kind:
    """Of a flow with one sink, which is not a user job: what its results are."""
    node = flow.sink.input
    if isinstance(node, RunningAggregate):
        return "update"
    if WINDOW_END not in schema.columns(node):
        return "row"
    return "join" if has_matches(flow) else "window"


def has_matches(flow: Flow) -> bool:
    """Whether the results are the matches of a window join, as they are or row by row made into others."""
    node = flow.sink.input
    while isinstance(node, (Select, Where, Lookup, Explode)):
        node = node.input
    return isinstance(node, WindowJoin)


def latencies_of(flow: Flow) -> tuple[str, ...] | None:
    """The latencies that some sink of a flow has; None for user jobs, whose columns are unknown before the run."""
    if any(isinstance(node, UserJobNode) for node in graph.operators(flow)):
        return None
    kinds = {kind_of(one) for one in flow.each()}
    counted = ("until_counted",) if "update" in kinds else ()
    closing = ("closing_delay",) if kinds & {"window", "join"} else ()
    matches = ("match_time",) if "join" in kinds else ()
    return ("event_time", *counted, "processing_time", *closing, *matches, "uncorrected")
