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

import math
from dataclasses import replace

import numpy as np

from streamgauge.results.codes import Cause, Detail
from streamgauge.results.verdict import CheckState, Finding, Remark
from streamgauge.stats.bootstrap import slope_interval
from streamgauge.verdict.check_spec import Condition, worst
from streamgauge.verdict.driver_check import driver_bottleneck
from streamgauge.verdict.evidence import TREND_CONFIDENCE, Evidence, Samples

TREND_POINTS_MIN = 5
"""Fewer observations than this are no trend: the check is then undecided."""


def check_trend(name: str, trend: Cause, samples: Samples, limit: float, at_commits: bool = False) -> Finding:
    """The check `name` of the slope of `samples`. `trend` is the code of a slope above its limit."""
    n, about = samples.value.size, {"about": samples.about}
    if n < TREND_POINTS_MIN:
        facts = {**about, "n": n, "least": TREND_POINTS_MIN}
        return Condition(False, Cause.TOO_FEW_OBSERVATIONS, None, limit, "s/s", facts).finding(name, "undecided")
    interval = slope_interval(samples.time_s, samples.value, TREND_CONFIDENCE)
    slope, low, high = interval.estimate, interval.low, interval.high
    facts = {**about, "n": n, "slope": slope, "low": low, "high": high, "limit": limit}
    remarks = [Remark(trend, {**facts, "confidence": TREND_CONFIDENCE, "at_commits": at_commits})]
    state: CheckState = "ok" if high <= limit else "failed" if low > limit else "undecided"
    code = {"ok": Cause.OK, "failed": trend}.get(state, Cause.TREND_UNDECIDED)
    if state == "ok":
        later = slope_interval(samples.time_s[n // 2 :], samples.value[n // 2 :], TREND_CONFIDENCE)
        if later.low > limit:
            state, code = "undecided", Cause.TREND_TURNED
            remarks.append(Remark(Detail[f"{trend.name}_LATER"], {"slope": later.estimate, "low": later.low}))
    return Finding(name, state, code, slope, limit, "s/s", tuple(remarks), low, high)


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


def decide_by_spare_time(check: Finding, about: str, evidence: Evidence) -> Finding:
    """The check of a trend about some sinks: ok if it is undecided and the batches leave time over."""
    works = [one for one in evidence.work if one.about == about]
    if check.code != Cause.TREND_UNDECIDED or len(works) != 1 or not evidence.steady:
        return check
    share, later = works[0].needed_share, works[0].share_after(SPANS_MORE)
    if share is None or later is None or share.high > BATCH_SHARE_MAX or later > FULL_SHARE:
        return check
    return _passed(
        check, Remark(Detail.SPARE_TIME, {"share": share.estimate, "high": share.high, "limit": BATCH_SHARE_MAX})
    )


def _passed(check: Finding, why: Remark) -> Finding:
    """The check as ok, with the reason."""
    return replace(check, state="ok", code=Cause.OK, remarks=(*check.remarks, why))


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


def check_backlog_trend(evidence: Evidence) -> Finding:
    # A second of waiting event time is a second of the rate, whatever the rate is at that moment.
    return worst(
        [
            decide_by_spare_time(
                check_trend("backlog_trend", Cause.BACKLOG_GROWS, backlog, BACKLOG_SLOPE_SHARE_MAX),
                backlog.about,
                evidence,
            )
            for backlog in evidence.backlog
        ]
    )


def far_behind(ingested_share: float, background_share: float) -> bool:
    """Whether the SUT read so little of the load that the whole machine would not have been enough."""
    return ingested_share < INGESTED_SHARE_MIN * (1 - background_share)


def far_behind_check(evidence: Evidence) -> Finding | None:
    """The check `backlog_trend` of a SUT that read almost nothing although the driver worked; else None."""
    failed = evidence.driver_reason or evidence.negative_latencies or not evidence.sut_alive
    if failed or driver_bottleneck(evidence) or not far_behind(evidence.ingested_share, evidence.background_share):
        return None
    share, limit = evidence.ingested_share, BACKLOG_SLOPE_SHARE_MAX
    behind = Condition(False, Cause.BACKLOG_GROWS, 1 - share, limit, "s/s", {"share": share}, Detail.HARDLY_READ)
    return behind.finding("backlog_trend", "failed")


OUTPUT_SLOPE_MAX = 0.01


def check_output_trend(evidence: Evidence) -> Finding:
    checks = [decide_by_spare_time(_output_check(steps(lag)), lag.about, evidence) for lag in evidence.output_lag]
    at_commits = [_commit_check(steps(lag), evidence) for lag in evidence.output_lag_at_commits]
    return worst([*checks, *(check for check in at_commits if check is not None)])


def _output_check(lag: Samples, at_commits: bool = False) -> Finding:
    return check_trend("output_trend", Cause.RESULTS_FALL_BEHIND, lag, OUTPUT_SLOPE_MAX, at_commits)


def _commit_check(lag: Samples, evidence: Evidence) -> Finding | None:
    """The check of the lag at commits; None if it says nothing against the engine.

    It fails on proven growth. It is undecided if batches seem to get longer and would fill their interval after one
    more such span. Batches within their interval cause no waiting, so the trends at deliveries cannot see them.
    """
    check = _output_check(lag, at_commits=True)
    if check.state == "failed":
        return check
    if check.state != "undecided" or not _would_fill_interval(evidence.interval_s, lag, check.value):
        return None
    fills = Remark(Cause.BATCHES_FILL_INTERVAL, {"interval_s": evidence.interval_s})
    return replace(check, code=Cause.BATCHES_FILL_INTERVAL, remarks=(*check.remarks, fills))


def _would_fill_interval(interval_s: float, lag: Samples, slope: float | None) -> bool:
    """Whether batches that end within their interval would exceed it after one more span of the same growth."""
    if slope is None or slope <= OUTPUT_SLOPE_MAX:
        return False
    median_s, recent_s = float(np.median(lag.value)), float(np.median(lag.value[-TREND_POINTS_MIN:]))
    return median_s <= interval_s < recent_s + slope * float(np.ptp(lag.time_s))


def check_latency_trend(evidence: Evidence) -> Finding:
    if not any(latency.value.size for latency in evidence.latency):
        code, says = (Cause.NO_LATENCY, Detail.NO_LATENCIES) if evidence.steady else (Cause.RATE_VARIES, None)
        return Condition(False, code, None, OUTPUT_SLOPE_MAX, "s/s", says=says).finding("latency_trend", "not_judged")
    return worst([_latency_check(latency, evidence) for latency in evidence.latency])


def _latency_check(latency: Samples, evidence: Evidence) -> Finding:
    """Fails only on proven growth beyond the drift: the trends before have already shown that nothing waits."""
    trend = check_trend("latency_trend", Cause.LATENCY_GROWS, latency, OUTPUT_SLOPE_MAX)
    if trend.state == "ok":
        return trend
    growth_s = (trend.low or 0.0) * float(np.ptp(latency.time_s)) if latency.time_s.size else 0.0
    if trend.state == "failed" and growth_s > evidence.latency_drift_s:
        return trend
    why = Detail.WITHIN_DRIFT if trend.state == "failed" else Detail.NOT_SHOWN_TO_FAIL
    return _passed(trend, Remark(why, {"drift_s": evidence.latency_drift_s}))
