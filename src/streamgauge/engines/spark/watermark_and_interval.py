"""The batch interval and the watermark delay of a query, known before Spark starts. Does not load Spark.

The watermark itself is set in `lowering.dataframe`, for processes in `lowering.process_operator`, for packed joins in
`lowering.packed_join`. Its delay is how far it stays behind the latest event.

If all partitions are cut at one event time, no event is later than the watermark, so no delay is needed. A broker's
partitions are read independently, and rows of a lagging one would be dropped as late. So are streams that a union puts
under one watermark. The streams of a join have a watermark each, and the least of them counts.
"""

import re
from collections.abc import Iterable, Mapping

from streamgauge.core.clock import US
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Sink, Source, Union, WindowAggregate, WindowJoin
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.lowering.windows import NO_DELAY
from streamgauge.engines.spark.options import effective_lowerings, reads_blocks, split, trigger
from streamgauge.engines.spi import BatchInterval, StartRequest
from streamgauge.transports.registry import BROKERED

_SECONDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0}
BROKER_DELAY = "1 second"
"""About a hundred times the skew observed between generators on one machine."""
PROCESS_DELAY_US = 5 * US
"""A process emits results of the watermark one batch late; a batch is seldom longer than this."""


def interval_of(sinks: Iterable[Sink], options: Mapping[str, str], packs: bool) -> str:
    """The batch interval of the query that serves these sinks, in Spark's format. `options` include defaults.

    `packs`: whether the job can pack joins, see `effective_lowerings`.
    """
    nodes = list(graph.walk(*(sink.input for sink in sinks)))
    windowed = any(isinstance(node, WindowAggregate | WindowJoin) for node in nodes)
    lowerings = effective_lowerings(nodes, options, packs)
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


def delay_of(requested: str, transport: str, partitions: int, flow: Flow | None = None) -> str:
    """The requested delay in Spark's format; for `auto` the delay that the transport needs."""
    if requested != "auto":
        return requested
    uneven = partitions > 1 or (flow is not None and _unites_streams(flow))
    return BROKER_DELAY if transport in BROKERED and uneven else NO_DELAY


def _unites_streams(flow: Flow) -> bool:
    unions = (node for node in graph.operators(flow) if isinstance(node, Union))
    return any(len({each.name for each in graph.walk(node) if isinstance(each, Source)}) > 1 for node in unions)
