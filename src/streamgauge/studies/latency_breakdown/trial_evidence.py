"""The evidence of one trial: the driver's and the broker's timestamps as tables, and what the probe makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.schema import EVENT_ID, sequences_of
from streamgauge.engines.latency_probe import Breakdown, ProbeInput, ResultTimes, TrialTimes
from streamgauge.studies.latency_breakdown.broker_timestamps import BrokerTimestamps
from streamgauge.studies.latency_breakdown.driver_timestamps import commits, delivered, first_reads, offered
from streamgauge.studies.latency_breakdown.saved_results import SavedResults

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.metrics.trial_log import TrialLog
    from streamgauge.trial.trial_result import TrialResult


@dataclass(frozen=True)
class TrialEvidence:
    """What is known of a trial: collected at its end, read after it."""

    probe: ProbeInput
    broker: BrokerTimestamps = field(default_factory=BrokerTimestamps)

    def collect(self, test_bed: TestBed, judged: TrialResult) -> None:
        """Called after the trial, before its processes end."""
        self.probe.collect(test_bed.engine.batch_progress)
        self.broker.collect(test_bed, judged)

    def break_down(self, judged: TrialResult, folder: Path, results: SavedResults) -> Breakdown | str:
        """The decomposed results; or why they cannot be decomposed."""
        trial_log, counted = judged.record.trial_log, judged.result.latency.event_time_us
        times = TrialTimes(
            results=result_times(trial_log, results),
            read_us=first_reads(trial_log),
            committed_us=commits(trial_log),
            batch_table=RunFolder.open(folder).read_batches(),
            sample=self.broker.sample(results),
            no_sample=self.broker.unknown_reason,
            observations=counted.effective_count if counted else 0,
        )
        return self.probe.break_down(times)


def result_times(trial_log: TrialLog, results: SavedResults) -> ResultTimes:
    """The driver's timestamps of results."""
    batches, delivered_us = delivered(trial_log, results)
    return ResultTimes(
        event_us=results.event_us,
        emission_us=results.emission_us,
        partitions=results.partitions,
        sequences=sequences_of(np.asarray(results.names[EVENT_ID])),
        offered_us=offered(trial_log, results, all_generators=False),
        all_offered_us=offered(trial_log, results, all_generators=True),
        batches=batches,
        delivered_us=delivered_us,
    )
