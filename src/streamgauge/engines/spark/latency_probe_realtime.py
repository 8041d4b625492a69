"""The latency probe of real-time mode: from topic to topic, by the driver's and the broker's timestamps.

No timestamp is Spark's. The driver knows when it offered an event and received its result, the broker when it appended
each. Between these, Spark fetches, processes and writes the row, which stays one stage: in this mode Spark 4.3 reports
no latency of its own, and there are no batches.

The broker's timestamps are checked against the driver's result by result: an event is appended after it was offered,
and a result before the recorder has it. A result appended before its event belongs to another event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import Problem
from streamgauge.engines import latency_probe
from streamgauge.engines.latency_probe import (
    DOUBT_SHARE,
    Breakdown,
    ProbeRequest,
    ResultTimes,
    Sample,
    StageTimes,
    Timestamp,
    TrialTimes,
)

READ_AND_PROCESSED = "read and processed"
STAGES = {
    "generated": "until its chunk was offered",
    latency_probe.IN_KAFKA: latency_probe.MEANING,
    READ_AND_PROCESSED: "until the broker had the result: fetched, processed and sent by Spark",
    latency_probe.CONSUMED: latency_probe.CONSUMED_MEANING,
}


class RealTime:
    """Implements `LatencyProbe`."""

    stages: Mapping[str, str] = STAGES
    interval: str | None = None

    def seconds(self, interval: str) -> float:
        return 0.0

    def option_value(self, interval_s: float) -> str:
        return ""

    def problems(self, request: ProbeRequest) -> Iterator[Problem]:
        """Nothing: every trial that can run in this mode can be decomposed."""
        return iter(())

    def evidence(self, request: ProbeRequest, private: Path) -> TopicToTopic:
        return TopicToTopic()


@dataclass(frozen=True)
class TopicToTopic:
    """Implements `ProbeInput`."""

    options: Mapping[str, str] = field(default_factory=dict)

    def collect(self, batch_progress: Callable[[], list[BatchProgress]]) -> None:
        """Nothing: there are no batches."""

    def break_down(self, trial: TrialTimes) -> Breakdown | str:
        results, sample = trial.results, trial.sample
        if sample is None:
            return f"the broker's times of events are unknown: {trial.no_sample}"
        times, known = stage_times_of(results, sample)
        if not known.any():
            return "no result's event is known to have been offered"
        independent, left_out = min(len(known), trial.observations), int((~known).sum())
        no_firsts_us = np.zeros(0, np.int64)
        return Breakdown(
            times, results.latencies_us, no_firsts_us, independent, None, left_out, *consistency_fields(times)
        )


def stage_times_of(results: ResultTimes, sample: Sample) -> tuple[StageTimes, np.ndarray]:
    """Stage times of the sampled results whose chunk is known, and their places in the sample."""
    sampled = results.select(sample.places)
    known = sampled.offered_us >= 0
    moments = [
        Timestamp("generated", sampled.offered_us),
        sample.event_in_broker(),
        sample.result_in_broker(READ_AND_PROCESSED),
    ]
    times = latency_probe.stage_times(sampled.event_us, moments, sampled.emission_us, latency_probe.CONSUMED)
    return times.select(known), known


def consistency_fields(times: StageTimes) -> tuple[dict[str, int], tuple[str, ...]]:
    """Results whose timestamps contradict each other beyond their resolution, the largest contradiction, and doubts."""
    contradicting = int((times.contradicted_us > 0).sum())
    fields = {"contradicting_results": contradicting, "contradiction_us_max": int(times.contradicted_us.max())}
    doubt = "the broker's timestamps contradict the driver's"
    return fields, (doubt,) * (contradicting > DOUBT_SHARE * len(times.contradicted_us))
