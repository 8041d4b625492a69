"""The latency probe of DStreams, whose batches are made at fixed times and may wait for their turn.

With a queue, stages and checks are those of micro-batches except for the wait. Spark's own receivers make blocks first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.errors import Problem
from streamgauge.engines.spark.dstream import block_log
from streamgauge.engines.spark.dstream.options import BATCH, BLOCK, RECEIVERS, requested_value, seconds
from streamgauge.engines.spark.observe import event_log
from streamgauge.studies.latency_breakdown.probes import receiver
from streamgauge.studies.latency_breakdown.probes.intervals import QUEUED, IntervalProbe
from streamgauge.studies.latency_breakdown.probes.micro_batch import READ, WRITTEN, ReadVisibility
from streamgauge.studies.latency_breakdown.probes.micro_batch import STAGES as OF_MICRO_BATCHES
from streamgauge.studies.latency_breakdown.probes.receiver import READ_KNOWN_BEFORE_START, ReceiverProbe

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

    def problems(self, trial: Experiment) -> Iterator[Problem]:
        yield from event_log.conflicts(trial.options)
        if trial.transport == RECEIVERS:
            yield from block_log.conflicts(trial.options)

    def evidence(self, trial: Experiment, private: Path) -> IntervalProbe:
        between = {QUEUED: "fixed_us"}
        if trial.transport != RECEIVERS:
            return IntervalProbe(
                private, ReadVisibility(True, trial.load.frontier == "common"), stages_before_tasks=between
            )
        interval_s = seconds(requested_value(trial.options, BLOCK))
        return ReceiverProbe(private / "events", READ_KNOWN_BEFORE_START, private=private, interval_s=interval_s)
