"""The watermark delay: how far the watermark stays behind the latest event. Does not load Spark.

The watermark itself is set in `lowering.dataframe`, and for processes in `lowering.process_operator`.

If all partitions are cut at one event time, no event is later than the watermark, so no delay is needed. A broker's
partitions are read independently, and rows of a lagging one would be dropped as late. So are streams that a union puts
under one watermark. The streams of a join have a watermark each, and the least of them counts.
"""

from __future__ import annotations

from streamgauge.core.clock import US
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Source, Union
from streamgauge.engines.spark.batch_interval import seconds
from streamgauge.engines.spark.lowering.windows import NO_DELAY
from streamgauge.engines.spark.options import split
from streamgauge.engines.spi import StartRequest
from streamgauge.transports.registry import BROKERED

BROKER_DELAY = "1 second"
"""About a hundred times the skew observed between generators on one machine."""


def delay_of(requested: str, transport: str, partitions: int, flow: Flow | None = None) -> str:
    """The requested delay in Spark's format; for `auto` the delay that the transport needs."""
    if requested != "auto":
        return requested
    uneven = partitions > 1 or (flow is not None and _unites_streams(flow))
    return BROKER_DELAY if transport in BROKERED and uneven else NO_DELAY


def _unites_streams(flow: Flow) -> bool:
    unions = (node for node in graph.operators(flow) if isinstance(node, Union))
    return any(len({each.name for each in graph.walk(node) if isinstance(each, Source)}) > 1 for node in unions)


def delay_us(request: StartRequest) -> int:
    """The watermark delay in microseconds, before a start."""
    own_options, _ = split(request.options)
    delay = delay_of(own_options["watermark_delay"], request.transport, request.partitions, request.flow)
    return round(seconds(delay) * US)
