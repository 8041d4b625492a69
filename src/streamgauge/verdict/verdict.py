"""The named checks in the order of the report, and the verdict that they make together.

Pure: evidence in, `Judgement` out (codes and numbers; `results.text` has the words), without clock, process, file or
chance (the bootstrap has a fixed seed).

- Interrupted outranks invalid, invalid outranks not sustained, not sustained outranks undecided. A rate is sustained
  only if every check is ok; a check of proven growth may stay unjudged. A check that crashes is undecided.
- A slow or undecided trial is invalid if background processes were busy, or if the SUT may have waited for the driver.
  A trial that passed in spite of it stays sustained.
- A program that the driver rejected is the first reason, before a late driver and background load.
- A SUT that read almost nothing of the load is not sustained, whatever queue, generators and background processes did.
"""

from dataclasses import replace

import numpy as np

from streamgauge.metrics.interference import background_load
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.verdict import CheckState, Finding, Judgement, Remark, VerdictValue
from streamgauge.stats.bootstrap import independent_slope_interval, slope_interval
from streamgauge.verdict.check_spec import CheckFunction, CheckSpec
from streamgauge.verdict.driver_check import check_driver, driver_bottleneck
from streamgauge.verdict.evidence import Evidence, Samples
from streamgauge.verdict.limit_checks import (
    check_answers,
    check_connected,
    check_evidence,
    check_queue_bound,
    slo_check,
    span_needed_s,
    span_too_short,
)
from streamgauge.verdict.trend_checks import (
    BACKLOG_SLOPE_SHARE_MAX,
    check_backlog_trend,
    check_latency_trend,
    check_output_trend,
    far_behind_check,
)

CHECKS: tuple[CheckSpec, ...] = (
    CheckSpec("driver", check_driver),
    CheckSpec("connected", check_connected, by_slowness=False),
    CheckSpec("queue_bound", check_queue_bound),
    CheckSpec("backlog_trend", check_backlog_trend),
    CheckSpec("output_trend", check_output_trend),
    CheckSpec("latency_trend", check_latency_trend, may_be_unjudged=True),
    CheckSpec("answers", check_answers, by_slowness=False),
    CheckSpec("evidence", check_evidence),
)
"""What ends a trial early comes first, because trends and evidence are then too short for a reason of their own.
A new check is a function in `driver_check`, `trend_checks` or `limit_checks`, its entry here, and the sentences and
advice of its causes in `results.text`. Users' limits follow, one check each: `limit_checks.slo_check`."""
UNRECOVERABLE_POINTS_MIN, UNRECOVERABLE_SPAN_S_MIN, UNRECOVERABLE_CONFIDENCE = 15, 10.0, 0.999
UNRECOVERABLE_POLL_S = 5.0
"""The condition must also hold this much earlier. Neighbouring batches are alike, so a chance event seldom does."""
_GROWTH_S_MIN = 1.0
_STALL_SLOPE = 0.5


def judge(evidence: Evidence) -> Judgement:
    """Runs all checks on one trial and combines them."""
    limits = (CheckSpec(level.name, slo_check(level)) for level in evidence.levels)
    checks = tuple(_guarded(spec.name, spec.check, evidence) for spec in (*CHECKS, *limits))
    value, deciding = _combine(checks, evidence.interrupted)
    if _was_too_slow(value, deciding) and (driver := driver_bottleneck(evidence)) is not None:
        checks = tuple(driver if check.name == driver.name else check for check in checks)
        value, deciding = _combine(checks, evidence.interrupted)
    far_behind = None if evidence.interrupted or evidence.sut_unobserved else far_behind_check(evidence)
    if far_behind is not None:
        checks = tuple(far_behind if check.name == far_behind.name else check for check in checks)
        value, deciding = "not_sustained", (far_behind,)
    if evidence.sut_rejected and not (evidence.driver_reason or evidence.interrupted):
        # Neither a late driver nor a busy machine explains it, and only its own reason says what to correct.
        rejected = next(check for check in checks if check.name == "connected")
        deciding = (rejected, *(check for check in deciding if check is not rejected))
    load = background_load(evidence.background_share, evidence.background_burst_share)
    causes: dict[VerdictValue, Cause] = {"sustained": Cause.ALL_CHECKS_HOLD, "interrupted": Cause.INTERRUPTED}
    cause = causes.get(value) or deciding[0].code
    died: tuple[Finding, ...] = ()
    # Invalid, because a search repeats only invalid trials; any other value would become its upper end for good.
    if load is not None and far_behind is None and _was_too_slow(value, deciding):
        value, cause = "invalid", Cause.BACKGROUND_LOAD
    elif value == "invalid":
        # A lost process is worth reporting even in an invalid trial.
        died = tuple(one for one in checks if one.name == "connected" and one.state == "failed" and one not in deciding)
        # Background processes can slow the driver, but bring about neither its crash nor a wrong clock.
        ended = evidence.driver_reason and checks[0].code != Cause.DRIVER_SILENT
        failed = ended or evidence.negative_latencies or evidence.sut_rejected
        if load is not None and not failed and any(check.name == "driver" for check in deciding):
            cause = Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD
    verification = evidence.verification
    remarks: tuple[Remark, ...] = ()
    if value == "sustained" and verification is not None and verification.allowed:
        facts = {"allowed": verification.allowed, "expected": verification.expected}
        remarks = (Remark(Detail.GUARANTEE_ALLOWS, facts),)
    return Judgement(
        value=value, cause=cause, checks=checks, deciding=deciding, died=died, remarks=remarks,
        load=load, load_may_explain=load is not None and all(
            _by_slowness(check) and check.code not in _UNRELATED_TO_LOAD for check in deciding
        ),
        span_needed_s=span_needed_s(evidence) if span_too_short(evidence) else None,
        draining_at_start=evidence.draining_at_start, user_job=evidence.user_job,
    )  # fmt: skip


_UNRELATED_TO_LOAD = (Cause.SPAN_TOO_SHORT, Cause.NEGATIVE_LATENCY, Cause.QUEUE_CUT_BY_MEMORY)
"""Causes that no background load brings about."""


def _by_slowness(check: Finding) -> bool:
    """Whether a slow system can fail the check, for which background load or the driver may be the cause."""
    return check.name not in [spec.name for spec in CHECKS if not spec.by_slowness]


def _was_too_slow(value: VerdictValue, deciding: tuple[Finding, ...]) -> bool:
    """Whether all deciding checks are about slowness, or an undecided one is harder to decide on a slow system."""
    if value == "undecided":
        if any(check.code == Cause.SPAN_TOO_SHORT for check in deciding):
            return False  # no machine makes a span longer
        open_ = (check for check in deciding if check.state == "undecided" and _by_slowness(check))
        # That a user's limit on a percentile lacks results is a matter of the span's length, not of slowness.
        named = [spec.name for spec in CHECKS]
        return any(check.value is not None or check.name in named for check in open_)
    return value == "not_sustained" and all(_by_slowness(check) for check in deciding)


def _guarded(name: str, check: CheckFunction, evidence: Evidence) -> Finding:
    """The check's result; undecided if it crashes or gives no number."""
    crashed = Finding(name, "undecided", Cause.CHECK_FAILED_TO_RUN, None, None, "")
    try:
        result = check(evidence)
    except Exception as error:
        return replace(
            crashed, remarks=(Remark(Cause.CHECK_FAILED_TO_RUN, {"reason": str(error) or type(error).__name__}),)
        )
    if result.value is not None and np.isnan(result.value):
        return replace(crashed, limit=result.limit, unit=result.unit, remarks=(Remark(Detail.NUMBER_UNKNOWN),))
    return result


def _combine(checks: tuple[Finding, ...], interrupted: bool) -> tuple[VerdictValue, tuple[Finding, ...]]:
    if interrupted:
        return "interrupted", ()
    order: tuple[tuple[VerdictValue, tuple[CheckState, ...]], ...] = (
        ("invalid", ("invalid",)),
        ("not_sustained", ("failed",)),
        ("undecided", ("undecided", "not_judged")),
    )
    # Where only a proven fault counts, a check that was not judged decides nothing.
    optional = [spec.name for spec in CHECKS if spec.may_be_unjudged]
    judged = [check for check in checks if check.state != "not_judged" or check.name not in optional]
    for value, states in order:
        deciding = [check for check in judged if check.state in states]
        if deciding:
            # A queue that was full before the span is why the others, the driver's too, found nothing to judge.
            return value, tuple(sorted(deciding, key=lambda check: check.code != Cause.QUEUE_FULL_AT_START))
    return "sustained", ()


def cannot_recover(backlog: Samples, bound_s: float, remaining_s: float) -> Remark | None:
    """Why a running trial can only end as not sustained, or None. Cheap enough for every second.

    `backlog`: seconds of event time at deliveries of one phase, in the measured span so far. A trial cannot recover if
    its backlog reached the bound. It also cannot recover if, both now and `UNRECOVERABLE_POLL_S` ago:

    - the backlog grows with 99.9 % confidence by the verdict's interval, and still does in the later half;
    - it could not drain in `remaining_s` at the fastest pace that the engine has shown. For a stalled engine, which
      shows none, half the rate is assumed.
    """
    time_s, backlog_s = backlog.time_s, backlog.value
    if backlog_s.size and backlog_s.max() >= bound_s:
        return Remark(Detail.BOUND_REACHED, {"bound_s": bound_s})
    before = time_s <= time_s.max(initial=0.0) - UNRECOVERABLE_POLL_S
    polls = ((backlog, remaining_s), (Samples(time_s[before], backlog_s[before]), remaining_s + UNRECOVERABLE_POLL_S))
    # The cheap interval, which takes neighbours as independent, spares most polls the bootstrap.
    cannot_drain = all(_cannot_drain(samples, left_s) for samples, left_s in polls)
    if not cannot_drain or not all(
        slope_interval(samples.time_s, samples.value, UNRECOVERABLE_CONFIDENCE).low > BACKLOG_SLOPE_SHARE_MAX
        for samples, _ in polls
    ):
        return None
    return Remark(
        Detail.CANNOT_DRAIN, {"slope": independent_slope_interval(time_s, backlog_s).estimate, "left_s": remaining_s}
    )


def _cannot_drain(backlog: Samples, remaining_s: float) -> bool:
    """Whether the backlog grows (with neighbours taken as independent) by more than the engine could drain."""
    time_s, backlog_s = backlog.time_s, backlog.value
    if backlog_s.size < UNRECOVERABLE_POINTS_MIN or np.ptp(time_s) < UNRECOVERABLE_SPAN_S_MIN:
        return False
    slope = independent_slope_interval(time_s, backlog_s, UNRECOVERABLE_CONFIDENCE)
    later = independent_slope_interval(time_s[time_s.size // 2 :], backlog_s[time_s.size // 2 :])
    grown_s = float(np.median(backlog_s[-3:]) - np.median(backlog_s[:3]))
    if min(slope.low, later.estimate) <= BACKLOG_SLOPE_SHARE_MAX or grown_s < _GROWTH_S_MIN:
        return False
    # What it can drain per second: its best over five deliveries. A stall shows no pace, so half the rate is assumed.
    pace = (backlog_s[:-5] - backlog_s[5:]) / np.maximum(time_s[5:] - time_s[:-5], 1e-9)
    assumed = _STALL_SLOPE if later.estimate >= _STALL_SLOPE else 0.0
    return grown_s > remaining_s * max(float(pace.max()), assumed)
