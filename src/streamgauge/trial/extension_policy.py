"""Policies of trials with a verdict: their load, and when they extend or end a phase.

`JudgedTrial` extends warm-up and span; `SearchTrial` also stops once its verdict is certain. Their rules are in
`trial.stopping_rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.config.limits import EXTENSION_SHARE, EXTENSION_SHARE_MAX, EXTENSIONS_MAX
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import HOLD_US, LEVEL_MAX_US, ResolvedExperiment, spare_s
from streamgauge.results import labels
from streamgauge.trial.phases import DRAIN_S, Extension, TrialPolicy
from streamgauge.trial.stopping_rules import (
    BEHIND_MAX_US,
    infeasible_reason,
    invalid_reason,
    lacks_samples,
    reason_to_stop_early,
    undecided_checks,
    warmup_incomplete_reason,
)
from streamgauge.verdict.collect_evidence import draining_at_start

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.loadgen.plan import Plan
    from streamgauge.trial.events import Observer

LEVEL_STEP_US = 5 * US
"""Step by which an incomplete warm-up is extended."""


class JudgedTrial(TrialPolicy):
    """A trial with a verdict, as in `run`.

    Args:
        fresh: the engine has just started, so its warm-up is long.
        may_extend: whether warm-up and span may last longer than planned.
        probe_batches: whether the engine reports its batches and operator rows.
        recheck_missing: whether to wait for missing results after the deadline, to tell late from lost.
        drain_s: seconds to wait for results after the plan's end.
    """

    def __init__(
        self,
        resolved: ResolvedExperiment,
        rate_per_s: float,
        *,
        fresh: bool,
        duration_s: float,
        may_extend: bool = True,
        keep_results: bool = False,
        probe_batches: bool = True,
        recheck_missing: bool = False,
        drain_s: float = DRAIN_S,
    ) -> None:
        self.resolved, self.rate_per_s, self.fresh, self.duration_s = resolved, rate_per_s, fresh, duration_s
        self.may_extend, self.keep_results, self.probe_batches = may_extend, keep_results, probe_batches
        self.recheck_missing, self.drain_s = recheck_missing, drain_s
        self.interval_s, self.closes_late = resolved.interval_s, resolved.closing_sinks
        self.results_apart = not resolved.engine.has_batch_ids
        self.hold_us = HOLD_US if may_extend else 0

    behind_max_us = BEHIND_MAX_US
    """How long the warm-up waits for an engine that is still behind by more than its interval."""

    @property
    def gap_us(self) -> int:
        """Event time between this trial and the events offered before.

        The flow's reach, so that no window holds events of two trials, plus the watermark's delay, so that the first
        events close the windows of the trial before.
        """
        return (self.resolved.reach_us or 0) + self.resolved.watermark_delay_us

    def spans(self, start_us: int) -> TrialSpans:
        """The planned spans."""
        return self.resolved.spans(start_us, self.fresh, self.duration_s)

    def plan(self, spans: TrialSpans) -> Plan:
        """The offered plan, long enough for every extension."""
        spare = spare_s(self.duration_s) if self.may_extend else 0.0
        return self.resolved.trial_plan(spans, self.rate_per_s, self.fresh, spare)

    def warmup_extension(self, record: TrialRecord) -> Extension | None:
        if not self.may_extend or record.prolonged_us >= LEVEL_MAX_US:
            return None
        reason = warmup_incomplete_reason(record, self.resolved.interval_s, self.behind_max_us)
        return Extension(LEVEL_STEP_US, reason) if reason else None

    def early_stop_reason(self, record: TrialRecord, now_us: int) -> str | None:
        return reason_to_stop_early(self.resolved, record, self.rate_per_s, now_us)

    def span_extension(self, record: TrialRecord) -> Extension | None:
        """Decided by trends alone, because answers are compared after the run."""
        if not self.may_extend or record.interim_analyses > EXTENSIONS_MAX:
            return None
        measured_s = (record.spans.measured_to_us - record.spans.measured_from_us) / US
        extension_s = self.duration_s * EXTENSION_SHARE
        if lacks_samples(self.resolved, record, 1 + extension_s / measured_s):
            extension_s = self.duration_s * EXTENSION_SHARE_MAX
        longest = 1 + (EXTENSIONS_MAX + 1 - record.interim_analyses) * extension_s / measured_s
        undecided = undecided_checks(self.resolved, record, self.rate_per_s, longest)
        names = " and ".join(labels.check(name) for name in undecided)
        return Extension(round(extension_s * US), names) if undecided else None

    def before_judging(self, testbed: TestBed, record: TrialRecord, observe: Observer) -> None:
        """Called between the end of the trial and its verdict; does nothing by default."""

    def verifies(self, record: TrialRecord) -> bool:
        """Whether answers are compared."""
        return True


class SearchTrial(JudgedTrial):
    """A trial of a search, which ends once its verdict is certain.

    A search repeats an invalid trial, so it does not wait for its end; a single run does, to show what happened. It
    also does not wait half a minute for a warm engine that stays behind, which is near its limit or above.
    """

    behind_max_us = 2 * LEVEL_STEP_US

    def early_stop_reason(self, record: TrialRecord, now_us: int) -> str | None:
        return super().early_stop_reason(record, now_us) or invalid_reason(record)

    def span_extension(self, record: TrialRecord) -> Extension | None:
        """None for a span that began with a backlog: it would take longer to decide than another trial."""
        return None if draining_at_start(record) else super().span_extension(record)

    def tail_skip_reason(self, record: TrialRecord) -> str | None:
        """A trend that failed, or stays undecided, is the search's result without tail and answers."""
        return infeasible_reason(self.resolved, record, self.rate_per_s)

    def verifies(self, record: TrialRecord) -> bool:
        return not record.early_stop
