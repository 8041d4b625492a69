"""The latency probe of real-time mode: from topic to topic, by the driver's and the broker's timestamps.

No timestamp is Spark's. The driver knows when it offered an event and received its result, the broker when it appended
each. Between these, Spark fetches, processes and writes the row, which stays one stage: in this mode Spark 4.3 reports
no latency of its own, and there are no batches.

The broker's timestamps are checked against the driver's result by result: an event is appended after it was offered,
and a result before the recorder has it. A result appended before its event belongs to another event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.errors import Problem
from streamgauge.studies.latency_breakdown import broker_timestamps, stages
from streamgauge.studies.latency_breakdown.broker_timestamps import BrokerTimestamps, Sample
from streamgauge.studies.latency_breakdown.driver_timestamps import offered
from streamgauge.studies.latency_breakdown.probe_api import DOUBT_SHARE, Breakdown
from streamgauge.studies.latency_breakdown.saved_results import SavedResults
from streamgauge.studies.latency_breakdown.stages import StageTimes, Timestamp

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.metrics.log.trial_log import TrialLog
    from streamgauge.trial.trial_result import TrialResult

READ_AND_PROCESSED = "read and processed"
STAGES = {
    "generated": "until its chunk was offered",
    broker_timestamps.IN_KAFKA: broker_timestamps.MEANING,
    READ_AND_PROCESSED: "until the broker had the result: fetched, processed and sent by Spark",
    broker_timestamps.CONSUMED: broker_timestamps.CONSUMED_MEANING,
}


@dataclass(frozen=True)
class RealTime:
    """Implements `LatencyProbe`."""

    stages: Mapping[str, str] = field(default_factory=lambda: STAGES)
    interval: str | None = None

    def seconds(self, interval: str) -> float:
        return 0.0

    def problems(self, trial: Experiment) -> Iterator[Problem]:
        """Nothing: every trial that can run in this mode can be decomposed."""
        yield from ()

    def evidence(self, trial: Experiment, private: Path) -> TopicToTopic:
        return TopicToTopic()


@dataclass(frozen=True)
class TopicToTopic:
    """Implements `ProbeInput`."""

    broker: BrokerTimestamps = field(default_factory=BrokerTimestamps)
    options: Mapping[str, str] = field(default_factory=dict)

    def collect(self, test_bed: TestBed, judged: TrialResult) -> None:
        self.broker.collect(test_bed, judged)

    def break_down(self, judged: TrialResult, folder: Path, results: SavedResults) -> Breakdown | str:
        sample = self.broker.sample(results)
        if sample is None:
            return f"the broker's times of events are unknown: {self.broker.unknown_reason}"
        times, known = stage_times_of(judged.record.trial_log, results, sample)
        if not known.any():
            return "no result's event is known to have been offered"
        counted = judged.result.latency.event_time_us
        independent = min(len(known), counted.effective_count if counted else 0)
        left_out = int((~known).sum())
        firsts_us = np.zeros(0, np.int64)
        return Breakdown(
            times, results.latencies_us, firsts_us, independent, None, left_out, *consistency_fields(times)
        )


def stage_times_of(trial_log: TrialLog, results: SavedResults, sample: Sample) -> tuple[StageTimes, np.ndarray]:
    """Stage times of the sampled results whose chunk is known, and their places in the sample."""
    sampled = results.of(sample.places)
    published_us = offered(trial_log, sampled, all_generators=False)
    known = published_us >= 0
    moments = [
        Timestamp("generated", published_us),
        sample.event_in_broker(),
        sample.result_in_broker(READ_AND_PROCESSED),
    ]
    times = stages.stage_times(sampled.event_us, moments, sampled.emission_us, broker_timestamps.CONSUMED)
    return times.of(known), known


def consistency_fields(times: StageTimes) -> tuple[dict[str, int], tuple[str, ...]]:
    """Results whose timestamps contradict each other beyond their resolution, the largest contradiction, and doubts."""
    contradicting = int((times.contradicted_us > 0).sum())
    fields = {"contradicting_results": contradicting, "contradiction_us_max": int(times.contradicted_us.max())}
    doubt = "the broker's timestamps contradict the driver's"
    return fields, (doubt,) * (contradicting > DOUBT_SHARE * len(times.contradicted_us))
