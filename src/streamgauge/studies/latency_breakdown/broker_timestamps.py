"""When the broker had the events and results of a sample: two timestamps of each result.

The broker's timestamps are whole milliseconds of the machine's clock, equal for all messages that came together. The
middle of the millisecond is used: it is wrong by half a millisecond at most, and shifts the mean only of a stage
shorter than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.core.errors import DriverError
from streamgauge.engines.latency_probe import HALF_MS, Sample
from streamgauge.harness.broker_timestamps import AppendTimes
from streamgauge.studies.latency_breakdown.saved_results import SavedResults

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.trial.trial_result import TrialResult


class BrokerTimestamps:
    """The broker's timestamps, read at the end of a trial; `unknown_reason` if there are none."""

    def __init__(self) -> None:
        self._appended: AppendTimes | None = None
        self.unknown_reason = "its clock is not the driver's, so its timestamps are not used"

    def collect(self, test_bed: TestBed, judged: TrialResult) -> None:
        """Reads the timestamps while the broker still runs."""
        spans, (stream,) = judged.record.offered_spans, test_bed.settings.columns
        try:
            self._appended = test_bed.appended(stream, test_bed.sinks[0], spans.measured_from_us, spans.measured_to_us)
        except DriverError as error:
            self.unknown_reason = str(error)

    def sample(self, results: SavedResults) -> Sample | None:
        """The timestamps of these results; None if none is known."""
        if self._appended is None:
            return None
        own_rows, broker_rows = results.matched(self._appended.rows)
        event_us, result_us = self._appended.event_us[broker_rows], self._appended.result_us[broker_rows]
        return Sample(own_rows, event_us - HALF_MS, result_us - HALF_MS) if len(own_rows) else None
