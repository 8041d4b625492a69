"""How often a query's batches begin, known before Spark is started; loads none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Node, Sink, WindowAggregate, WindowJoin
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.options import LOWERING, LOWERINGS, split, trigger
from streamgauge.engines.spi import BatchInterval, StartRequest

_SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0}


def interval_of(sinks: Iterable[Sink], options: Mapping[str, str]) -> str:
    """The interval of the query that serves these sinks, in Spark's words; `options` are ours, with defaults."""
    nodes = list(graph.walk(*(sink.input for sink in sinks)))
    windowed = any(isinstance(node, WindowAggregate | WindowJoin) for node in nodes)
    return trigger(options["trigger"], windowed, any(_copies_state(node, options) for node in nodes))


def longest_batch_interval(request: StartRequest) -> BatchInterval:
    """That of the slowest query; 0 s where batches go back to back, or where what was asked is refused anyway."""
    if request.flow is None:
        return BatchInterval()
    ours, _ = split(request.options)
    every = [seconds(interval_of(query.sinks, ours)) for query in queries(request.flow)]
    return BatchInterval(max(every, default=0.0), "trigger")


def seconds(interval: str) -> float:
    """`1400 milliseconds` as 1.4; 0 where it is not written as Spark writes it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) (millisecond|second|minute)s?", interval)
    return float(found.group(1)) * _SECONDS[found.group(2)] if found else 0.0


def _copies_state(node: Node, options: Mapping[str, str]) -> bool:
    if not isinstance(node, WindowJoin):
        return False
    return options.get(LOWERING + node.name, LOWERINGS[WindowJoin][0]) == "stream_stream"
