"""Policies of trials with a verdict: their load, and when they extend or end a phase.

`JudgedTrial` extends warm-up and span; `SearchTrial` also stops once its verdict is certain. Their rules
come first: is the warm-up incomplete? Can a longer span decide an undecided check? Can the rate still be sustained?
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import attrgetter

import numpy as np

from streamgauge.config.limits import BATCHES_MIN, EXTENSION_SHARE, EXTENSION_SHARE_MAX, EXTENSIONS_MAX, WINDOWS_MIN
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.harness.start_processes import TestBed
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import HOLD_US, LEVEL_MAX_US, ResolvedExperiment, spare_s
from streamgauge.results import labels
from streamgauge.results.codes import Detail
from streamgauge.results.latency import PERCENTILES
from streamgauge.results.text.sentences import sentence, unsettled
from streamgauge.results.verdict import Finding, Remark
from streamgauge.stats.bootstrap import independent_slope_interval
from streamgauge.stats.samples import carries, observations_needed
from streamgauge.trial.events import Observer
from streamgauge.trial.phases import DRAIN_S, Extension, TrialPolicy
from streamgauge.verdict.collect_evidence import (
    backlogs_of,
    batches_between,
    collect_evidence,
    draining_at_start,
    samples_of,
)
from streamgauge.verdict.driver_check import PLAN_SHARE_MIN, SCHEDULE_DELAY_US_MAX
from streamgauge.verdict.trend_checks import BACKLOG_SLOPE_SHARE_MAX, TREND_POINTS_MIN, may_decide
from streamgauge.verdict.verdict import cannot_recover, judge

LEVEL_US = 10 * US
"""Length of the warm-up's end that shows whether the backlog has levelled off."""
BEHIND_INTERVALS, BEHIND_BATCHES, BEHIND_MAX_US = 1.5, 3, 30 * US
"""Intervals of backlog allowed at the end of the warm-up, over the last batches, and the most time spent on waiting for
that: at some rates more always waits."""
PILE_S, PILE_FACTOR = 1.0, 2.0
"""Without an interval a backlog has piled up if the oldest event waits longer than this, and this many times as long as
at the last batches."""
FASTER_US, FASTER_BATCHES_MIN = 20 * US, 4
FASTER_SHARE, FASTER_ERRORS = 0.05, 1.5
"""An engine still gets faster if the later half of these seconds has batches shorter by this share and by this many
standard errors. A longer warm-up is cheaper than a rate that holds only for a young JVM."""
HALF_REACHED = 1.0
"""Least distance of the slope from its limit, in half widths of the expected interval, for an extension. Nearer to the
limit only far longer spans decide."""
PLAN_WINDOW_S = 3
"""Seconds, longer than the time between two polls."""
TRENDS = ("backlog_trend", "output_trend", "evidence")
"""Checks that a longer span may decide; the first two are trends."""


def warmup_incomplete_reason(
    record: TrialRecord, interval_s: float = 0.0, behind_max_us: int = BEHIND_MAX_US
) -> Detail | None:
    """At the end of the warm-up: why it is incomplete, or None.

    It is incomplete while any of these holds:

    - the engine has not finished a batch for every sink;
    - a query still drains its start-up backlog;
    - much more than one batch interval (`interval_s`) waits: near its limit an engine needs half a minute after the
      rise of the rate. Without an interval: more than at the last batches, as beside a first batch of seconds.
      `behind_max_us` is the longest extension for this reason;
    - batches still get shorter.
    """
    if not record.trial_log.committed_until():
        return Detail.NOTHING_COMMITTED
    parts = record.trial_log.by_query()
    until = record.spans.measured_from_us
    if any(_falls(part, until) for part in parts):
        return Detail.DRAINING
    if record.prolonged_us < behind_max_us and any(_behind(part, until, interval_s) for part in parts):
        return Detail.BEHIND
    return Detail.FASTER if any(_gets_faster(part, until) for part in parts) else None


def _behind(trial_log: TrialLog, until: int, interval_s: float) -> bool:
    """Whether a backlog waits that a trial would begin with: of much more than an interval at the last batches before
    `until`, or, without an interval, of much more than at these.
    """
    times, waits = trial_log.backlog_waits()
    times, waits = times[times < until], waits[times < until]
    if not waits.size:
        return False
    if interval_s > 0:
        return float(np.median(waits[-BEHIND_BATCHES:])) > BEHIND_INTERVALS * interval_s
    now_s = max(float(waits[-1]), float(until - times[-1]) / US)
    return now_s > max(PILE_S, PILE_FACTOR * float(waits[-1 - BEHIND_BATCHES : -1].max(initial=0.0)))


def _gets_faster(trial_log: TrialLog, until: int) -> bool:
    """Whether batches surely took less time per event time in the later part of the last seconds.

    A JVM compiles for minutes. A rising rate makes the share grow, so it hides nothing.
    """
    batches = [one for _, one in trial_log.running.firsts() if until - FASTER_US <= one.read_us < until]
    recent = np.array([
        (one.committed_us - one.read_us) / (one.end_us - one.from_us)
        for one in sorted(batches, key=attrgetter("read_us"))
        if one.committed_us and one.end_us > one.from_us
    ])  # fmt: skip
    half = recent.size // 2
    if half < FASTER_BATCHES_MIN:
        return False
    earlier, later = recent[:half], recent[half:]
    noise = math.sqrt(sum(part.var(ddof=1) / part.size for part in (earlier, later)))
    return float(earlier.mean() - later.mean()) > max(FASTER_SHARE * float(earlier.mean()), FASTER_ERRORS * noise)


def _falls(trial_log: TrialLog, until: int) -> bool:
    times, waits = trial_log.backlog_waits()
    times, waits = times[times < until], waits[times < until]
    first = min(int(np.searchsorted(times, until - LEVEL_US)), max(0, times.size - TREND_POINTS_MIN))
    recent = samples_of((times[first:], waits[first:]))
    return independent_slope_interval(recent.time_s, recent.value).high < -BACKLOG_SLOPE_SHARE_MAX


def undecided_checks(
    resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float, longest: float
) -> tuple[str, ...]:
    """At the end of the span: the undecided checks and limits that a span `longest` times as long may decide."""
    # The closed windows are not counted yet: those that were due are the maximum.
    span_us = record.spans.measured_to_us - record.spans.measured_from_us
    evidence = replace(collect_evidence(resolved, record, rate_per_s), windows_closed=resolved.windows_due(span_us))
    verdict = judge(evidence)
    if any(check.state in ("failed", "invalid") for check in verdict.checks if check.name != "answers"):
        return ()
    due_at_most = resolved.windows_due(round(span_us * longest))
    if due_at_most is not None and due_at_most < WINDOWS_MIN:
        return ()
    undecided = {check.name: check for check in verdict.checks if check.name in TRENDS and check.state == "undecided"}
    # With too little evidence the slopes are guesses, so they cannot rule out an extension.
    if "evidence" in undecided:
        return tuple(undecided)
    by_slopes = all(_may_be_decided(check, longest) for check in undecided.values())
    if not (by_slopes or may_decide(evidence, longest)):
        return ()
    observations = _observations(resolved, record, longest)
    lacking = (name for name, needed in _missing_for_limits(resolved, record).items() if needed <= observations)
    return (*undecided, *lacking)


def lacks_samples(resolved: ResolvedExperiment, record: TrialRecord, factor: float = 1.0) -> bool:
    """Whether a span `factor` times as long holds fewer batches than a verdict needs, or results than limits need."""
    return int(factor * _batches(record)) < BATCHES_MIN or bool(_missing_for_limits(resolved, record, factor))


def _missing_for_limits(resolved: ResolvedExperiment, record: TrialRecord, factor: float = 1.0) -> dict[str, int]:
    """Observations needed by each limit's percentile for which a span `factor` times as long has too few, by limit."""
    shares = {limit.name: PERCENTILES[limit.statistic] for limit in resolved.limits if limit.statistic in PERCENTILES}
    observations = _observations(resolved, record, factor)
    return {name: observations_needed(q) for name, q in shares.items() if not carries(q, observations)}


def _observations(resolved: ResolvedExperiment, record: TrialRecord, factor: float = 1.0) -> int:
    """Expected batches or windows, whichever are fewer, of a span `factor` times as long as the one so far."""
    windows = resolved.windows_due(round(factor * (record.spans.measured_to_us - record.spans.measured_from_us)))
    batches = int(factor * _batches(record))
    return batches if windows is None else min(batches, windows)


def _batches(record: TrialRecord) -> int:
    return batches_between(record.trial_log, record.spans.measured_from_us, record.spans.measured_to_us)


def _may_be_decided(check: Finding, longest: float) -> bool:
    """Whether a longer span may decide a check: a slope's interval narrows with span^1.5."""
    if check.value is None or check.limit is None or check.low is None or check.high is None:
        return True
    half = (check.high - check.low) / 2 * longest**-1.5
    return not math.isfinite(half) or abs(check.value - check.limit) >= HALF_REACHED * half


def infeasible_trend(resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float) -> Finding | None:
    """At the last interim analysis: the failed or undecided trend by which the rate will not be sustained; or None.

    No answers can make such a trial sustained.
    """
    checks = judge(collect_evidence(resolved, record, rate_per_s)).checks
    trends = [one for one in checks if one.name in TRENDS[:2] and one.state in ("failed", "undecided")]
    return min(trends, key=lambda check: check.state != "failed", default=None)


def invalid_reason(record: TrialRecord) -> Detail | None:
    """While the trial runs: why it can only end as invalid, by its last seconds; or None."""
    low_us, until_us = record.spans.measured_from_us, min(record.spans.measured_to_us, record.offered_until())
    whole = (until_us - low_us) // US
    if whole < 1:
        return None
    from_us = low_us + max(0, whole - PLAN_WINDOW_S) * US
    planned, offered = record.trial_log.events_in_time(from_us, low_us + whole * US, SCHEDULE_DELAY_US_MAX)
    return Detail.BEHIND_PLAN if (offered < PLAN_SHARE_MIN * planned).any() else None


def reason_to_stop_early(
    resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float, now_us: int
) -> Remark | None:
    """While the trial runs: why it can only end as not sustained; or None."""
    if record.trial_log.overflowed:
        return Remark(Detail.QUEUE_REACHED if record.trial_log.memory_full_us is None else Detail.MEMORY_FULL)
    if now_us < record.spans.measured_from_us:
        return None
    remaining_s = max(0.0, (record.spans.measured_to_us - now_us) / US)
    reasons = [cannot_recover(each, resolved.bound_s(rate_per_s)[0], remaining_s) for each in backlogs_of(record)]
    return next((reason for reason in reasons if reason is not None), None)


LEVEL_STEP_US = 5 * US
"""Step by which an incomplete warm-up is extended."""


class JudgedTrial(TrialPolicy):
    """A trial with a verdict, as in `run`.

    Args:
        fresh: the engine has just started, so its warm-up is long.
        may_extend: whether warm-up and span may last longer than planned.
        probe_batches: whether the engine reports its batches and operator rows.
        recheck_missing: whether to wait for missing results after the deadline, to tell late from lost.
        drain_s: seconds to wait for results after the plan's end, once reads are seen.
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
        self.recheck_missing, self.drain_s = recheck_missing, drain_s + resolved.unseen_s
        self.interval_s, self.closes_late = resolved.interval_s, resolved.closing_sinks
        self.kept_us = resolved.kept_us
        self.results_apart = not resolved.engine.has_batch_ids
        self.stops_early = resolved.experiment.load.early_stop
        self.hold_us = HOLD_US if may_extend else 0

    @property
    def behind_max_us(self) -> int:
        """How long the warm-up waits for an engine that is behind by more than its interval.

        Not at all where an overload is watched: the queue would be full before the span.
        """
        return BEHIND_MAX_US if self.stops_early else 0

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
        return Extension(LEVEL_STEP_US, sentence(Remark(reason))) if reason else None

    def early_stop_reason(self, record: TrialRecord, now_us: int) -> str | None:
        if record.hopeless and not record.trial_log.overflowed:
            return None  # known, and the bootstrap would cost CPU at each poll
        reason = reason_to_stop_early(self.resolved, record, self.rate_per_s, now_us)
        return sentence(reason) if reason is not None else None

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

    @property
    def behind_max_us(self) -> int:
        return min(2 * LEVEL_STEP_US, super().behind_max_us)

    def early_stop_reason(self, record: TrialRecord, now_us: int) -> str | None:
        if (reason := super().early_stop_reason(record, now_us)) is not None:
            return reason
        invalid = invalid_reason(record)
        return sentence(Remark(invalid)) if invalid is not None else None

    def span_extension(self, record: TrialRecord) -> Extension | None:
        """None for a span that began with a backlog: it would take longer to decide than another trial."""
        return None if draining_at_start(record) else super().span_extension(record)

    def tail_skip_reason(self, record: TrialRecord) -> str | None:
        """A trend that failed, or stays undecided, is the search's result without tail and answers."""
        trend = infeasible_trend(self.resolved, record, self.rate_per_s)
        return unsettled(trend) if trend is not None else None

    def verifies(self, record: TrialRecord) -> bool:
        return not record.early_stop
