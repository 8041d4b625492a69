"""The checks of a trend: `backlog_trend`, `output_trend`, `latency_trend`, and when spare time decides one.

A trend is the slope of a quantity over the span, with its interval, against a limit. It is ok if its whole interval is
at most the limit, failed if all of it is above, else undecided. A quantity that first falls and then surely grows is
also undecided, whatever its straight line says.

Few samples. With 5 to 8 steps, neither a block length nor the shape of the noise can be estimated: a percentile
bootstrap of six points covers 81 % instead of 95 %. The interval is then Student's t with n - 2 degrees of freedom. It
takes closing delays of different windows as independent, which holds if windows are longer than batches. It is wide:
in simulation, a slope of 0 passes in nine of ten trials if closing delays have a standard deviation of 40 ms (7
windows of 4 s) or 150 ms (15 windows). The interval narrows with span^1.5, from which the advice is computed.

Spare time. An engine in batches that takes all that waits at the start of each, and then waits for the next, has
emptied its queue. If its batches need clearly less time than they cover, the backlog cannot grow for good. Where
windows close in some batches only, their lengths vary so much that the slope of the backlog shows this after minutes;
the share of the time that batches need shows it after half a minute.

The share is sum(busy) / sum(covered), from the times of deliveries and commits: busy from the end of a batch in event
time to its commit, and on to the end of the next batch if that came later than the interval. So it is near 1 for
batches back to back, and above it if events are left waiting: the rule says nothing about engines without spare time.

It turns undecided into ok only, never a proven growth, and only at a constant rate: a late peak counts little in the
mean. An engine that slows down in the span has a wide interval. If it slows down so little that the interval stays
narrow, the growth of the share counts: batches must not fill the time in three times the span.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamgauge.results.codes import Cause
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.bootstrap import Interval, slope_interval
from streamgauge.verdict.check_spec import CheckSpec, make_check, worst
from streamgauge.verdict.driver_check import driver_bottleneck
from streamgauge.verdict.evidence import Evidence, Samples

TREND_POINTS_MIN = 5
"""Fewer observations than this are no trend: the check is then undecided."""


class SlopeWording(NamedTuple):
    """The code of a slope above its limit, and the words for a positive and a negative slope."""

    code: Cause
    more: str
    less: str

    def by(self, slope: float) -> str:
        # Rounded first, so that a printed 0 counts as positive.
        shown = round(slope, 4) + 0.0
        return f"{self.less if shown < 0 else self.more} by {abs(shown):.2%}"


def check_trend(
    name: str, samples: Samples, limit: float, evidence: Evidence, wording: SlopeWording, of_what: str
) -> Check:
    """The check `name` of the slope of `samples`. `of_what`: what a slope of 1 means, such as "of the rate"."""
    n, of = samples.value.size, f"{samples.about}: " if samples.about else ""
    if n < TREND_POINTS_MIN:
        sentence = f"{of}{n} observations are too few for a trend (minimum {TREND_POINTS_MIN})"
        return make_check(name, "undecided", Cause.TOO_FEW_OBSERVATIONS, None, limit, "s/s", sentence)
    interval = slope_interval(samples.time_s, samples.value, evidence.confidence)
    sentence = (
        f"{of}{wording.by(interval.estimate)} {of_what} ({interval.low:+.2%} to {interval.high:+.2%}, "
        f"{interval.confidence:.1%} interval, {n} observations), limit {limit:.0%}"
    )
    state = _trend_state(interval, limit)
    code = {"ok": Cause.OK, "failed": wording.code}.get(state, Cause.TREND_UNDECIDED)
    if state == "ok":
        later = slope_interval(samples.time_s[n // 2 :], samples.value[n // 2 :], evidence.confidence)
        if later.low > limit:
            state, code = "undecided", Cause.TREND_TURNED
            sentence += f"; but in the later half, {wording.by(later.estimate)} (at least {later.low:.2%})"
    return make_check(name, state, code, interval.estimate, limit, "s/s", sentence, interval)


def _trend_state(interval: Interval, limit: float) -> CheckState:
    if interval.high <= limit:
        return "ok"
    return "failed" if interval.low > limit else "undecided"


def steps(lag_s: Samples) -> Samples:
    """The samples at which the output frontier (time - lag) moved: one per window, all in the same phase.

    A stall produces no step. So the last sample counts too if its lag, minus the largest step so far, exceeds the last
    step's lag: the next step could not have come with less.
    """
    frontier_s = lag_s.time_s - lag_s.value
    jump_s = np.diff(frontier_s)
    moved = np.flatnonzero(jump_s > 1e-6) + 1
    times, lags = lag_s.time_s[moved], lag_s.value[moved]
    if moved.size and moved[-1] != frontier_s.size - 1:
        least_s = lag_s.value[-1] - jump_s.max()
        if least_s > lags[-1]:
            times, lags = np.append(times, lag_s.time_s[-1]), np.append(lags, least_s)
    return Samples(times, lags, lag_s.about)


BATCH_SHARE_MAX = 0.97
"""Largest share of the time that batches may need. A backlog that grows by 1 % of the rate needs 1.01."""
SPANS_MORE, FULL_SHARE = 2.0, 1.0
"""After so many more spans of the same growth, batches must not need more than this share."""


def decide_by_spare_time(check: Check, about: str, evidence: Evidence) -> Check:
    """The check of a trend about some sinks: ok if it is undecided and the batches leave time over."""
    works = [one for one in evidence.work if one.about == about]
    if check.code != Cause.TREND_UNDECIDED or len(works) != 1 or not evidence.steady:
        return check
    share, later = works[0].needed_share, works[0].share_after(SPANS_MORE)
    if share is None or later is None or share.high > BATCH_SHARE_MAX or later > FULL_SHARE:
        return check
    sentence = (
        f"{check.sentence}; but batches take all that waits and need {share.estimate:.0%} of the time (at most "
        f"{share.high:.0%}, limit {BATCH_SHARE_MAX:.0%}), so nothing accumulates"
    )
    return check.model_copy(update={"state": "ok", "code": Cause.OK, "ok": True, "sentence": sentence})


def may_decide(evidence: Evidence, longest: float) -> bool:
    """Whether a span `longest` times as long may show that every query leaves time over.

    Intervals narrow by the root of the length.
    """
    shares = [work.needed_share for work in evidence.work]
    known = [share for share in shares if share is not None]
    return 0 < len(known) == len(shares) and all(
        share.estimate + share.half_width / math.sqrt(longest) <= BATCH_SHARE_MAX for share in known
    )


BACKLOG_SLOPE_SHARE_MAX = 0.01
INGESTED_SHARE_MIN = 0.2
"""Least share of the offered events. Neither a small queue nor a late generator explains less."""
_BACKLOG = SlopeWording(Cause.BACKLOG_GROWS, "the backlog grows", "the backlog shrinks")


def _backlog_trend(evidence: Evidence) -> Check:
    # A second of waiting event time is a second of the rate, whatever the rate is at that moment.
    return worst(
        [
            decide_by_spare_time(
                check_trend("backlog_trend", backlog, BACKLOG_SLOPE_SHARE_MAX, evidence, _BACKLOG, "of the rate"),
                backlog.about,
                evidence,
            )
            for backlog in evidence.backlog
        ]
    )


def far_behind(ingested_share: float, background_share: float) -> bool:
    """Whether the SUT read so little of the load that the whole machine would not have been enough."""
    return ingested_share < INGESTED_SHARE_MIN * (1 - background_share)


def far_behind_check(evidence: Evidence) -> Check | None:
    """The check `backlog_trend` of a SUT that read almost nothing although the driver worked; else None."""
    failed = evidence.driver_reason or evidence.negative_latencies or not evidence.sut_alive
    if failed or driver_bottleneck(evidence) or not far_behind(evidence.ingested_share, evidence.background_share):
        return None
    sentence = f"the system read only {evidence.ingested_share:.2%} of the offered events"
    backlog_share, limit = 1 - evidence.ingested_share, BACKLOG_SLOPE_SHARE_MAX
    return make_check("backlog_trend", "failed", Cause.BACKLOG_GROWS, backlog_share, limit, "s/s", sentence)


BACKLOG_TREND = CheckSpec(
    "backlog_trend", _backlog_trend, "lower the rate; `streamgauge sustain` finds the highest sustained rate"
)


OUTPUT_SLOPE_MAX = 0.01
_OUTPUT = SlopeWording(Cause.RESULTS_FALL_BEHIND, "results fall behind", "results catch up")
_OUTPUT_AT_COMMITS = SlopeWording(
    Cause.RESULTS_FALL_BEHIND, "at commits, results fall behind", "at commits, results catch up"
)


def _output_trend(evidence: Evidence) -> Check:
    checks = [
        decide_by_spare_time(_output_check(steps(lag), evidence, _OUTPUT), lag.about, evidence)
        for lag in evidence.output_lag
    ]
    at_commits = [_commit_check(steps(lag), evidence, _OUTPUT_AT_COMMITS) for lag in evidence.output_lag_at_commits]
    return worst([*checks, *(check for check in at_commits if check is not None)])


def _output_check(lag: Samples, evidence: Evidence, wording: SlopeWording) -> Check:
    return check_trend("output_trend", lag, OUTPUT_SLOPE_MAX, evidence, wording, "of the time")


def _commit_check(lag: Samples, evidence: Evidence, wording: SlopeWording) -> Check | None:
    """The check of the lag at commits; None if it says nothing against the engine.

    It fails on proven growth. It is undecided if batches seem to get longer and would fill their interval after one
    more such span. Batches within their interval cause no waiting, so the trends at deliveries cannot see them.
    """
    check = _output_check(lag, evidence, wording)
    if check.state == "failed":
        return check
    if check.state != "undecided" or not _would_fill_interval(evidence.interval_s, lag, check.value):
        return None
    fills = f"one more span like this would fill the batches' interval of {evidence.interval_s:.2g} s"
    changes = {"code": Cause.BATCHES_FILL_INTERVAL, "sentence": f"{check.sentence}; {fills}"}
    return check.model_copy(update=changes)


def _would_fill_interval(interval_s: float, lag: Samples, slope: float | None) -> bool:
    """Whether batches that end within their interval would exceed it after one more span of the same growth."""
    if slope is None or slope <= OUTPUT_SLOPE_MAX:
        return False
    median_s, recent_s = float(np.median(lag.value)), float(np.median(lag.value[-TREND_POINTS_MIN:]))
    return median_s <= interval_s < recent_s + slope * float(np.ptp(lag.time_s))


OUTPUT_TREND = CheckSpec(
    "output_trend", _output_trend, "lower the rate: the engine reads in time but its results fall behind"
)


_LATENCY = SlopeWording(Cause.LATENCY_GROWS, "the latency grows", "the latency falls")


def _latency_trend(evidence: Evidence) -> Check:
    if not any(latency.value.size for latency in evidence.latency):
        code, why = Cause.NO_LATENCY, "no latencies were counted"
        if not evidence.steady:
            code, why = Cause.RATE_VARIES, "the rate varies, and latencies with it"
        sentence = f"not judged, because {why}"
        return make_check("latency_trend", "not_judged", code, None, OUTPUT_SLOPE_MAX, "s/s", sentence)
    return worst([_latency_check(latency, evidence) for latency in evidence.latency])


def _latency_check(latency: Samples, evidence: Evidence) -> Check:
    """Fails only on proven growth beyond the drift: the trends before have already shown that nothing waits."""
    trend = check_trend("latency_trend", latency, OUTPUT_SLOPE_MAX, evidence, _LATENCY, "of the time")
    if trend.state == "ok":
        return trend
    growth_s = (trend.low or 0.0) * float(np.ptp(latency.time_s)) if latency.time_s.size else 0.0
    if trend.state == "failed" and growth_s > evidence.latency_drift_s:
        return trend
    why = "not shown to fail"
    if trend.state == "failed":
        why = f"within the {evidence.latency_drift_s:.2g} s that windows and batches may drift against each other"
    ok = {"state": "ok", "code": Cause.OK, "ok": True}
    return trend.model_copy(update={**ok, "sentence": f"{trend.sentence}: {why}"})


LATENCY_TREND = CheckSpec(
    "latency_trend",
    _latency_trend,
    "lower the rate, or check what grows in the job's state: its results come later and later",
    may_be_unjudged=True,
)
