"""The latency probe of DStreams, whose batches are made at fixed times and may wait for their turn.

With a queue, stages and checks are those of micro-batches except for the wait. Spark's own receivers make blocks first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.core.errors import Problem
from streamgauge.engines.latency_probe import ProbeRequest
from streamgauge.engines.spark.dstream import block_log
from streamgauge.engines.spark.dstream.options import BATCH, BLOCK, RECEIVERS, requested_value, seconds
from streamgauge.engines.spark.observe import event_log
from streamgauge.engines.spark.probes import receiver
from streamgauge.engines.spark.probes.intervals import QUEUED, IntervalProbe
from streamgauge.engines.spark.probes.micro_batch import READ, WRITTEN, ReadVisibility, milliseconds
from streamgauge.engines.spark.probes.micro_batch import STAGES as OF_MICRO_BATCHES
from streamgauge.engines.spark.probes.receiver import READ_KNOWN_BEFORE_START, ReceiverProbe

STAGES = {
    "generated": OF_MICRO_BATCHES["generated"],
    **receiver.STAGES,
    "waiting": "until the time of the next batch, which is made then and knows what it reads",
    QUEUED: "until Spark began to work on the batch",
    **{name: OF_MICRO_BATCHES[name] for name in ("scheduled", "read", WRITTEN)},
    READ: "over sockets, which hide reads: until the recorder had the result",
}


@dataclass(frozen=True)
class DStream:
    """Implements `LatencyProbe`."""

    stages: Mapping[str, str] = field(default_factory=lambda: STAGES)
    interval: str | None = BATCH

    def seconds(self, interval: str) -> float:
        return seconds(interval)

    def option_value(self, interval_s: float) -> str:
        return milliseconds(interval_s)

    def problems(self, request: ProbeRequest) -> Iterator[Problem]:
        yield from event_log.conflicts(request.options)
        if request.transport == RECEIVERS:
            yield from block_log.conflicts(request.options)

    def evidence(self, request: ProbeRequest, private: Path) -> IntervalProbe:
        between = {QUEUED: "fixed_us"}
        if request.transport != RECEIVERS:
            return IntervalProbe(
                private, ReadVisibility(True, request.frontier == "common"), stages_before_tasks=between
            )
        interval_s = seconds(requested_value(request.options, BLOCK))
        return ReceiverProbe(private / "events", READ_KNOWN_BEFORE_START, private=private, interval_s=interval_s)
