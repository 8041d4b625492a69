"""How far behind the latest event the watermark stays; loads no Spark.

Where all partitions are cut at one event time, nothing comes later than the watermark, and it need not wait. A broker's
are not: each is read as far as it is, and rows of one that lags would be dropped as late.
"""

from __future__ import annotations

from streamgauge.core.clock import US
from streamgauge.engines.spark.batch_interval import seconds
from streamgauge.engines.spark.options import split
from streamgauge.engines.spi import StartRequest

NONE = "0 seconds"
OVER_A_BROKER = "1 second"
"""Of several partitions: some hundred times as much as generators of one machine were seen to come apart."""


def delay_of(requested: str, transport: str, partitions: int) -> str:
    """What was asked for, in Spark's words; where that is `auto`, what the way of the events needs."""
    if requested != "auto":
        return requested
    return OVER_A_BROKER if transport == "kafka" and partitions > 1 else NONE


def delay_us(request: StartRequest) -> int:
    """The same in microseconds, before a start."""
    ours, _ = split(request.options)
    return round(seconds(delay_of(ours["watermark_delay"], request.transport, request.partitions)) * US)
