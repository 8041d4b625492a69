"""The watermark delay: how far the watermark stays behind the latest event. Does not load Spark.

If all partitions are cut at one event time, no event is later than the watermark, so no delay is needed. A broker's
partitions are read independently, and rows of a lagging one would be dropped as late.
"""

from __future__ import annotations

from streamgauge.core.clock import US
from streamgauge.engines.spark.batch_interval import seconds
from streamgauge.engines.spark.options import split
from streamgauge.engines.spi import StartRequest

NONE = "0 seconds"
BROKER_DELAY = "1 second"
"""About a hundred times the skew observed between generators on one machine."""


def delay_of(requested: str, transport: str, partitions: int) -> str:
    """The requested delay in Spark's format; for `auto` the delay that the transport needs."""
    if requested != "auto":
        return requested
    return BROKER_DELAY if transport == "kafka" and partitions > 1 else NONE


def delay_us(request: StartRequest) -> int:
    """The watermark delay in microseconds, before a start."""
    own_options, _ = split(request.options)
    return round(seconds(delay_of(own_options["watermark_delay"], request.transport, request.partitions)) * US)
