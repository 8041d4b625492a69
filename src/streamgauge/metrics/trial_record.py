"""The record of a trial, which the verdict uses, and its phases."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from streamgauge.core.arrays import Int64s
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.results.run import Phase
from streamgauge.transports.spi import UNOBSERVED


@dataclass
class TrialRecord:
    """What a trial left to judge: its log, its spans as they became, and how it ended.

    Who writes it:

    - `trial.phases.PhaseRunner` while the trial runs. A policy decides, and does not write.
    - `trial.conclusion` after the run: `restarted`, and `interrupted` on Ctrl-C before the verdict.
    - Nothing else: metrics, verification, evidence and observers read it.

    `prolonged_for`, `extended_for`: why the warm-up was prolonged and the span extended, once for each time.
    `hopeless`: why the trial could no longer sustain its rate, although it went on; empty if it could, or ended.
    `held_back`: whether a generator was seen to pause because as much waited as the pace of a load allows.
    `engine_disk_full`, `disk_full`: whether a full disk is why the engine or the driver failed.
    `driver_silent`: whether `driver_failed` names a generator that offered nothing of its plan.
    `limit_reached`: whether `driver_failed` names a limit of this environment that ended a process.
    `engine_rejected`: whether the driver ended a program: it gave no readable result, or nothing showed its progress.
    `restarted`: whether the driver restarted the engine, in this trial or an earlier one.
    `deadline_us`: when the last results were taken that came in time.
    """

    trial_log: TrialLog
    spans: TrialSpans
    interim_analyses: int = 1
    prolonged_us: int = 0
    prolonged_for: tuple[str, ...] = ()
    extended_for: tuple[str, ...] = ()
    engine_failed: str = ""
    engine_disk_full: bool = False
    engine_rejected: bool = False
    driver_failed: str = ""
    driver_silent: bool = False
    disk_full: bool = False
    limit_reached: bool = False
    early_stop: str = ""
    hopeless: str = ""
    held_back: bool = False
    interrupted: bool = False
    drained: bool = False
    deadline_us: int = 0
    earlier_trials: bool = False
    restarted: bool = False

    def prolong_warmup(self, more_us: int, reason: str) -> None:
        """The warm-up goes on; span and tail move along."""
        self.spans, self.prolonged_us = self.spans.later(more_us), self.prolonged_us + more_us
        self.prolonged_for = (*self.prolonged_for, reason)

    def extend_span(self, more_us: int, undecided: str) -> None:
        """The measured span goes on, because these checks were undecided at an interim analysis."""
        self.spans, self.interim_analyses = self.spans.longer(more_us), self.interim_analyses + 1
        self.extended_for = (*self.extended_for, undecided)

    def fail_driver(self, reason: str, disk_full: bool) -> None:
        """The driver failed. The first reason stays."""
        self.driver_failed = self.driver_failed or reason
        self.disk_full = self.disk_full or disk_full

    @property
    def engine_unobserved(self) -> bool:
        """Whether the engine was rejected because nothing showed how far it had read."""
        return self.engine_rejected and UNOBSERVED in self.trial_log.remarks

    @property
    def ended_early(self) -> bool:
        return bool(self.early_stop or self.engine_failed or self.driver_failed or self.interrupted)

    @property
    def owes_all(self) -> bool:
        """Whether every result was due: an engine that has not delivered by the deadline owes it still.

        Not one that is hopeless and went on: it was known to be unable to drain in time.
        """
        return not self.ended_early and (self.drained or not self.hopeless)

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
        until_us = self.offered_until()
        return TrialSpans(
            spans.start_us,
            min(spans.measured_from_us, until_us), min(spans.measured_to_us, until_us), min(spans.end_us, until_us),
        )  # fmt: skip

    def offered_until(self) -> int:
        """The event time up to which every generator offered all there was."""
        reached = [log[-1].to_us if log else self.spans.start_us for log in self.trial_log.chunks]
        return min([self.spans.end_us, *(reached or [self.spans.start_us])])


def phases(spans: TrialSpans, deadline_us: int) -> tuple[Phase, ...]:
    """Warm-up, measured span, tail and drain by planned time, until the deadline; empty ones are left out.

    Of a trial that ended early, the spans are those of what was offered. One that ended in its warm-up has no drain.
    """
    if spans.measured_from_us == spans.end_us:
        return (Phase(name="warm-up", start_us=spans.start_us, end_us=deadline_us),)
    borders = (
        ("warm-up", spans.start_us, spans.measured_from_us),
        ("measured", spans.measured_from_us, spans.measured_to_us),
        ("tail", spans.measured_to_us, spans.end_us),
        ("drain", spans.end_us, deadline_us),
    )
    return tuple(
        Phase(name=name, start_us=low, end_us=min(high, deadline_us))
        for name, low, high in borders
        if min(high, deadline_us) > low
    )


def phase_at(spans: TrialSpans, when_us: int) -> str:
    """The phase that a moment of planned time lies in."""
    borders = (spans.start_us, spans.measured_from_us, spans.measured_to_us, spans.end_us)
    return ("start", "warm-up", "measured", "tail", "drain")[bisect_right(borders, when_us)]


def within(samples: tuple[Int64s, Any], spans: TrialSpans) -> tuple[Int64s, Any]:
    """The samples of the measured span."""
    times, values = samples
    inside = (times >= spans.measured_from_us) & (times < spans.measured_to_us)
    return times[inside], values[..., inside]


def is_measured(record: TrialRecord, when_us: int) -> bool:
    """Whether a moment lies in the measured span."""
    return record.spans.measured_from_us <= when_us < record.spans.measured_to_us
