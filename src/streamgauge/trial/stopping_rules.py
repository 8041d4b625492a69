"""Rules by which a policy extends or stops a running trial, from the evidence so far.

Is the warm-up incomplete? Can a longer span decide an undecided check? Can the rate still be sustained?
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from streamgauge.config.thresholds import BATCHES_MIN, WINDOWS_MIN
from streamgauge.core.clock import US
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.latency import PERCENTILES
from streamgauge.results.verdict import Check
from streamgauge.stats.bootstrap import independent_slope_interval
from streamgauge.stats.percentile import carries, observations_needed
from streamgauge.verdict.collect_evidence import backlogs_of, batches_between, collect_evidence, samples_of
from streamgauge.verdict.criteria import (
    BACKLOG_SLOPE_SHARE_MAX,
    PLAN_SHARE_MIN,
    SCHEDULE_DELAY_US_MAX,
    TREND_POINTS_MIN,
)
from streamgauge.verdict.verdict import cannot_recover, judge

LEVEL_US = 10 * US
"""So much of a warm-up's end tells whether it has levelled off."""
BEHIND_INTERVALS, BEHIND_BATCHES, BEHIND_MAX_US = 1.5, 3, 30 * US
"""So many of the engine's intervals may wait at the end of the warm-up, by so many batches; at most so long is waited
for that, since at some rates more always waits."""
FASTER_US, FASTER_BATCHES_MIN = 20 * US, 4
FASTER_SHARE, FASTER_ERRORS = 0.05, 1.5
"""An engine still gets faster where the later half of those seconds has batches shorter by that share, and by so many
standard errors: rather some seconds of warm-up for nothing than a rate that holds for an engine of that age alone."""
HALF_REACHED = 1.0
"""A trial is extended where the slope is this share of the expected half interval away from its limit: less, because
the estimate moves too. Nearer to the limit only far longer spans decide, and giving up leaves it undecided."""
PLAN_WINDOW_S = 3
"""Seconds: more than lies between two polls."""
TRENDS = ("backlog_trend", "output_trend", "evidence")
"""What a longer span may decide; the first two are trends."""


FIRST_BATCH = "the engine's first batch was not done"
DRAINING = "the engine's backlog was still draining"
FASTER = "the engine's batches were still getting shorter"


def warmup_incomplete_reason(record: TrialRecord, interval_s: float = 0.0, behind_max_us: int = BEHIND_MAX_US) -> str:
    """At the end of the warm-up, in words: the engine has not yet finished a batch for every sink, or some query is
    surely still working off the backlog of the start, or its batches still get shorter. Nothing where all is level.

    `interval_s`: of the engine's batches. While much more than that waits, the rise of the rate may still be felt: near
    its limit an engine takes half a minute to forget it. `behind_max_us`: the longest extension for that reason.
    """
    if not record.trial_log.committed_until():
        return FIRST_BATCH
    parts = record.trial_log.by_query()
    until = record.spans.measured_from_us
    behind = record.prolonged_us < behind_max_us and any(_behind(part, until, interval_s) for part in parts)
    if behind or any(_falls(part, until) for part in parts):
        return DRAINING
    return FASTER if any(_gets_faster(part, until) for part in parts) else ""


def _behind(trial_log: TrialLog, until: int, interval_s: float) -> bool:
    """Whether the last batches before then found much more waiting than an interval's events."""
    times, waits = trial_log.backlog_waits()
    latest = waits[times < until][-BEHIND_BATCHES:]
    return interval_s > 0 and latest.size > 0 and float(np.median(latest)) > BEHIND_INTERVALS * interval_s


def _gets_faster(trial_log: TrialLog, until: int) -> bool:
    """Whether batches took surely less time, for the event time they took, in the later part of the last seconds.

    A JVM compiles for minutes; a rate that still rises makes the share grow, and hides nothing.
    """
    times, shares = trial_log.work_shares()
    lately = shares[(times >= until - FASTER_US) & (times < until)]
    half = lately.size // 2
    if half < FASTER_BATCHES_MIN:
        return False
    earlier, later = lately[:half], lately[half:]
    noise = float(np.hypot(_error(earlier), _error(later)))
    return float(earlier.mean() - later.mean()) > max(FASTER_SHARE * float(earlier.mean()), FASTER_ERRORS * noise)


def _error(values: Any) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size)


def _falls(trial_log: TrialLog, until: int) -> bool:
    times, waits = trial_log.backlog_waits()
    times, waits = times[times < until], waits[times < until]
    first = min(int(np.searchsorted(times, until - LEVEL_US)), max(0, times.size - TREND_POINTS_MIN))
    lately = samples_of((times[first:], waits[first:]))
    return independent_slope_interval(lately.time_s, lately.value).high < -BACKLOG_SLOPE_SHARE_MAX


def undecided_checks(
    resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float, longest: float
) -> tuple[str, ...]:
    """At the end of the span: the checks and levels that it cannot decide, where one that is `longest` times as long
    may; nothing where that is in vain.
    """
    # Nothing has counted the windows yet that closed: those that were due are the most that can have.
    span_us = record.spans.measured_to_us - record.spans.measured_from_us
    found = replace(
        collect_evidence(resolved, record, rate_per_s, None, None), windows_closed=resolved.windows_due(span_us)
    )
    verdict = judge(found)
    if any(check.state in ("failed", "invalid") for check in verdict.checks if check.name != "answers"):
        return ()
    due_at_most = resolved.windows_due(round(span_us * longest))
    if due_at_most is not None and due_at_most < WINDOWS_MIN:
        return ()
    undecided = {check.name: check for check in verdict.checks if check.name in TRENDS and check.state == "undecided"}
    # With too little evidence the slopes themselves are guesses: nothing can be given up because of them.
    if "evidence" in undecided:
        return tuple(undecided)
    if not all(_may_be_decided(check, longest) for check in undecided.values()):
        return ()
    there = _observations(resolved, record, longest)
    lacking = (name for name, needed in _missing_for_levels(resolved, record).items() if needed <= there)
    return (*undecided, *lacking)


def lacks_samples(resolved: ResolvedExperiment, record: TrialRecord) -> bool:
    """Whether the span so far holds fewer batches than any verdict needs, or fewer results than its levels do."""
    return _batches(record) < BATCHES_MIN or bool(_missing_for_levels(resolved, record))


def _missing_for_levels(resolved: ResolvedExperiment, record: TrialRecord) -> dict[str, int]:
    """How many observations each level's percentile needs, of those that the span so far does not carry, by name."""
    shares = {level.name: PERCENTILES[level.statistic] for level in resolved.limits if level.statistic in PERCENTILES}
    there = _observations(resolved, record)
    return {name: observations_needed(q) for name, q in shares.items() if not carries(q, there)}


def _observations(resolved: ResolvedExperiment, record: TrialRecord, longer: float = 1.0) -> int:
    """Batches, or windows where they are fewer, of a span that is so many times as long as the one so far."""
    windows = resolved.windows_due(round(longer * (record.spans.measured_to_us - record.spans.measured_from_us)))
    batches = int(longer * _batches(record))
    return batches if windows is None else min(batches, windows)


def _batches(record: TrialRecord) -> int:
    return batches_between(record.trial_log, record.spans.measured_from_us, record.spans.measured_to_us)


def _may_be_decided(check: Check, longest: float) -> bool:
    """A slope's interval narrows with the span's power 1.5. Too little evidence may always become enough."""
    if check.value is None or check.limit is None or check.low is None or check.high is None:
        return True
    half = (check.high - check.low) / 2 * longest**-1.5
    return not math.isfinite(half) or abs(check.value - check.limit) >= HALF_REACHED * half


def infeasible_reason(resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float) -> str | None:
    """At the last interim analysis: the reason why it will not be sustained, where a trend says so already.

    Failed, or still undecided: whatever the answers are, such a trial cannot hold any more.
    """
    trends = [
        one
        for one in judge(collect_evidence(resolved, record, rate_per_s, None, None)).checks
        if one.name in TRENDS[:2]
    ]
    failed = [check.sentence for check in trends if check.state == "failed"]
    still = [f"still undecided: {check.sentence}" for check in trends if check.state == "undecided"]
    return next(iter(failed + still), None)


def invalid_reason(record: TrialRecord) -> str | None:
    """While the trial runs: why it can only end as invalid. The last seconds alone are looked at, each time."""
    low_us, until_us = record.spans.measured_from_us, min(record.spans.measured_to_us, record.offered_until())
    whole = (until_us - low_us) // US
    if whole < 1:
        return None
    from_us = low_us + max(0, whole - PLAN_WINDOW_S) * US
    planned, kept = record.trial_log.kept_events(from_us, low_us + whole * US, SCHEDULE_DELAY_US_MAX)
    return "the generators did not keep the plan" if (kept < PLAN_SHARE_MIN * planned).any() else None


def reason_to_stop_early(
    resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float, now_us: int
) -> str | None:
    """While the trial runs: why it can only end as not sustained."""
    if record.trial_log.overflowed:
        return (
            "the queue's bound was reached"
            if record.trial_log.memory_full_us is None
            else "the queue's memory was full"
        )
    if now_us < record.spans.measured_from_us:
        return None
    remaining_s = max(0.0, (record.spans.measured_to_us - now_us) / US)
    reasons = [cannot_recover(each, resolved.bound_s(rate_per_s)[0], remaining_s) for each in backlogs_of(record)]
    return next((reason for reason in reasons if reason is not None), None)
