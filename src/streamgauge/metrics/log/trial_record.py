"""The record of a trial, which the verdict uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamgauge.core.trial_spans import TrialSpans
from streamgauge.metrics.log.trial_log import TrialLog


@dataclass
class TrialRecord:
    """What a trial left to judge. Its warm-up was prolonged, and its span extended, for what is named, each time.

    `engine_disk_full`, `disk_full`: whether a full disk is why the engine or the driver failed.
    """

    trial_log: TrialLog
    spans: TrialSpans
    interim_analyses: int = 1
    prolonged_us: int = 0
    prolonged_for: list[str] = field(default_factory=list)
    extended_for: list[str] = field(default_factory=list)
    engine_failed: str = ""
    engine_disk_full: bool = False
    driver_failed: str = ""
    disk_full: bool = False
    early_stop: str = ""
    interrupted: bool = False
    drained: bool = False
    deadline_us: int = 0
    earlier_trials: bool = False

    @property
    def ended_early(self) -> bool:
        return bool(self.early_stop or self.engine_failed or self.driver_failed or self.interrupted)

    @property
    def owes_all(self) -> bool:
        """Whether every result was due: an engine that has not delivered by the deadline owes it still."""
        return not self.ended_early

    @property
    def measured_until(self) -> int:
        """The end of what was measured: that of the span, or where a trial ended early."""
        return self.offered_spans.measured_to_us

    @property
    def offered_spans(self) -> TrialSpans:
        """The spans as they were: of a trial that ended early, no more of each than was offered."""
        spans = self.spans
        if not self.ended_early:
            return spans
        until = self.offered_until()
        borders = (spans.measured_from_us, spans.measured_to_us, spans.end_us)
        return TrialSpans(spans.start_us, *(min(border, until) for border in borders))

    def offered_until(self) -> int:
        """The event time up to which every generator offered all there was."""
        reached = [log[-1].to_us if log else self.spans.start_us for log in self.trial_log.chunks]
        return min([self.spans.end_us, *(reached or [self.spans.start_us])])
