"""The batch interval of a query, known before Spark starts. Does not load Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Sink, WindowAggregate, WindowJoin
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.options import lowerings_in_force, reads_blocks, split, trigger
from streamgauge.engines.spi import BatchInterval, StartRequest

_SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0}


def interval_of(sinks: Iterable[Sink], options: Mapping[str, str], packs: bool) -> str:
    """The batch interval of the query that serves these sinks, in Spark's format. `options` include defaults.

    `packs`: whether the job can pack joins, see `lowerings_in_force`.
    """
    nodes = list(graph.walk(*(sink.input for sink in sinks)))
    windowed = any(isinstance(node, WindowAggregate | WindowJoin) for node in nodes)
    lowerings = lowerings_in_force(nodes, options, packs)
    copies_state = any(isinstance(node, WindowJoin) and lowerings.get(node.name) != "packed" for node in nodes)
    return trigger(options["trigger"], windowed, copies_state)


def longest_batch_interval(request: StartRequest) -> BatchInterval:
    """The interval of the slowest query; 0 s for back-to-back batches or without a valid flow."""
    if request.flow is None:
        return BatchInterval()
    own_options, _ = split(request.options)
    packs = reads_blocks(request.transport, request.frontier)
    intervals = [seconds(interval_of(query.sinks, own_options, packs)) for query in queries(request.flow)]
    return BatchInterval(max(intervals, default=0.0), "trigger")


def seconds(interval: str) -> float:
    """`1400 milliseconds` as 1.4; 0 if it is not in Spark's format."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) (millisecond|second|minute)s?", interval)
    return float(match.group(1)) * _SECONDS[match.group(2)] if match else 0.0
