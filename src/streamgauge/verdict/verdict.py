"""The named checks in the order of the report, and the verdict that they make together.

Pure: evidence in, `Verdict` out, without clock, process, file or chance (the bootstrap has a fixed seed).

- Interrupted outranks invalid, invalid outranks not sustained, not sustained outranks undecided. A rate is sustained
  only if every check is ok; a check of proven growth may stay unjudged. A check that crashes is undecided.
- A slow or undecided trial is invalid if background processes were busy, or if the SUT may have waited for the driver.
  A trial that passed in spite of it stays sustained.
- A SUT that read almost nothing of the load is not sustained, whatever queue, generators and background processes did.
"""

from __future__ import annotations

import math

import numpy as np

from streamgauge.core.arrays import Floats
from streamgauge.results.codes import Cause
from streamgauge.results.verdict import Check, CheckState, Verdict, VerdictValue
from streamgauge.stats.bootstrap import independent_slope_interval, slope_interval
from streamgauge.system.disk import WAY_OUT
from streamgauge.verdict.background_load import background_load
from streamgauge.verdict.check_spec import ADVICE_OTHER, CheckFunction, CheckSpec, make_check
from streamgauge.verdict.driver_check import DRIVER, driver_bottleneck
from streamgauge.verdict.evidence import Evidence, Samples
from streamgauge.verdict.limit_checks import (
    ADVICE_BUILT_IN,
    ANSWERS,
    CONNECTED,
    EVIDENCE,
    QUEUE_BOUND,
    slo_check,
    span_needed_s,
    span_too_short,
)
from streamgauge.verdict.trend_checks import (
    BACKLOG_SLOPE_SHARE_MAX,
    BACKLOG_TREND,
    LATENCY_TREND,
    OUTPUT_TREND,
    far_behind_check,
)

CHECKS: tuple[CheckSpec, ...] = (
    DRIVER, CONNECTED, BACKLOG_TREND, OUTPUT_TREND, LATENCY_TREND, QUEUE_BOUND, ANSWERS, EVIDENCE,
)  # fmt: skip
"""A new check is a `CheckSpec` in `driver_check`, `trend_checks` or `limit_checks`, and its entry here. Users' limits
follow, one check each: `limit_checks.slo_check`."""
UNRECOVERABLE_POINTS_MIN, UNRECOVERABLE_SPAN_S_MIN, UNRECOVERABLE_CONFIDENCE = 15, 10.0, 0.999
UNRECOVERABLE_POLL_S = 5.0
"""The condition must also hold this much earlier. Neighbouring batches are alike, so a chance event seldom does."""
_GROWTH_S_MIN = 1.0
_STALL_SLOPE = 0.5


def judge(evidence: Evidence) -> Verdict:
    """Runs all checks on one trial and combines them."""
    checks = tuple(_guarded(spec.name, spec.check, evidence) for spec in _checks_of(evidence))
    value, deciding = _combine(checks, evidence.interrupted)
    if _was_too_slow(value, deciding) and (driver := driver_bottleneck(evidence)) is not None:
        checks = tuple(driver if check.name == driver.name else check for check in checks)
        value, deciding = _combine(checks, evidence.interrupted)
    far_behind = None if evidence.interrupted or evidence.sut_unobserved else far_behind_check(evidence)
    if far_behind is not None:
        checks = tuple(far_behind if check.name == far_behind.name else check for check in checks)
        value, deciding = "not_sustained", (far_behind,)
    busy = background_load(evidence.background_share, evidence.background_burst_share)
    if busy is not None and far_behind is None and _was_too_slow(value, deciding):
        return _invalid_by_background_load(value, checks, deciding, busy)
    # A lost process is worth reporting even in an invalid trial.
    lost = (check for check in checks if check.name == "connected" and check.state == "failed")
    died = tuple(lost) if value == "invalid" else ()
    slowed = busy if value == "invalid" and _driver_was_slow(deciding, evidence) else None
    return Verdict(
        value=value,
        cause=_cause(value, deciding, slowed is not None),
        checks=checks,
        decided_by=tuple(check.name for check in deciding) if not evidence.interrupted else ("interrupted",),
        sentence=_sentence(value, deciding, died, slowed, checks)
        + _wrong_answers(checks, deciding)
        + (_allowed(evidence) if value == "sustained" else ""),
        advice=_advice_disk(value, deciding)
        or _advice(value, deciding, evidence) + _background_advice(value, deciding, busy),
    )


def _cause(value: VerdictValue, deciding: tuple[Check, ...], slowed: bool) -> Cause | None:
    """`slowed`: whether background processes slowed the driver."""
    if value in ("sustained", "interrupted"):
        return Cause.ALL_CHECKS_HOLD if value == "sustained" else Cause.INTERRUPTED
    return Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD if slowed else deciding[0].code


def _checks_of(evidence: Evidence) -> list[CheckSpec]:
    """The checks in the order of the report; the user's limits last."""
    return [*CHECKS, *(CheckSpec(level.name, slo_check(level)) for level in evidence.levels)]


def _spec_of(check: Check) -> CheckSpec | None:
    """The declaration of a named check; None for a limit of the user."""
    return next((spec for spec in CHECKS if spec.name == check.name), None)


def _by_slowness(check: Check) -> bool:
    """Whether a slow system can fail the check, for which background load or the driver may be the cause."""
    spec = _spec_of(check)
    return spec is None or spec.by_slowness


def _may_be_unjudged(check: Check) -> bool:
    """Whether a check was not judged and need not be, as only a proven fault counts there."""
    spec = _spec_of(check)
    return check.state == "not_judged" and spec is not None and spec.may_be_unjudged


def _was_too_slow(value: VerdictValue, deciding: tuple[Check, ...]) -> bool:
    """Whether all deciding checks are about slowness, or an undecided one is harder to decide on a slow system."""
    if value == "undecided":
        if any(check.code == Cause.SPAN_TOO_SHORT for check in deciding):
            return False  # no machine makes a span longer
        open_ = (check for check in deciding if check.state == "undecided" and _by_slowness(check))
        return not all(_lacks_results(check) for check in open_)
    return value == "not_sustained" and all(_by_slowness(check) for check in deciding)


def _driver_was_slow(deciding: tuple[Check, ...], evidence: Evidence) -> bool:
    """Whether the driver was too slow, which background processes can cause; a crash or a wrong clock is different."""
    failed = evidence.driver_reason or evidence.negative_latencies
    return not failed and any(check.name == "driver" for check in deciding)


def _lacks_results(check: Check) -> bool:
    """Whether a limit on a percentile lacks results: a matter of the span's length, not of slowness."""
    return check.value is None and _spec_of(check) is None


def _invalid_by_background_load(
    value: VerdictValue, checks: tuple[Check, ...], deciding: tuple[Check, ...], busy: tuple[str, str]
) -> Verdict:
    """The verdict of a slow or undecided trial beside background load; every check keeps its state.

    Invalid, because a search repeats only invalid trials; any other value would become its upper end for good.
    """
    used, limit = busy
    what = "open result" if value == "undecided" else "slowdown"
    sentence = (
        f"invalid: background processes used {used} (limit {limit}), so the {what} cannot be attributed to the system "
        f"under test ({_because(deciding)})"
    ) + _wrong_answers(checks, deciding)
    names = tuple(check.name for check in deciding)
    return Verdict(
        value="invalid", cause=Cause.BACKGROUND_LOAD, checks=checks, decided_by=names, sentence=sentence,
        advice=_ADVICE_BACKGROUND_LOAD,
    )  # fmt: skip


def _guarded(name: str, check: CheckFunction, evidence: Evidence) -> Check:
    """The check's result; undecided if it crashes or gives no number."""
    try:
        result = check(evidence)
    except Exception as error:
        reason = str(error) or type(error).__name__
        return make_check(
            name, "undecided", Cause.CHECK_FAILED_TO_RUN, None, None, "", f"could not be judged: {reason}"
        )
    if result.value is not None and np.isnan(result.value):
        sentence = "could not be judged: its number is unknown"
        return make_check(name, "undecided", Cause.CHECK_FAILED_TO_RUN, None, result.limit, result.unit, sentence)
    return result


def _combine(checks: tuple[Check, ...], interrupted: bool) -> tuple[VerdictValue, tuple[Check, ...]]:
    if interrupted:
        return "interrupted", ()
    order: tuple[tuple[VerdictValue, tuple[CheckState, ...]], ...] = (
        ("invalid", ("invalid",)),
        ("not_sustained", ("failed",)),
        ("undecided", ("undecided", "not_judged")),
    )
    for value, states in order:
        deciding = tuple(check for check in checks if check.state in states and not _may_be_unjudged(check))
        if deciding:
            return value, deciding
    return "sustained", ()


def _sentence(
    value: VerdictValue,
    deciding: tuple[Check, ...],
    died: tuple[Check, ...],
    busy: tuple[str, str] | None,
    checks: tuple[Check, ...],
) -> str:
    """`busy`: the background load, if it may have slowed the driver."""
    unjudged = ", ".join(check.name for check in checks if check.state == "not_judged")
    because = _because(deciding + died)
    if busy is not None:
        return (
            f"invalid: background processes used {busy[0]} (limit {busy[1]}) and the driver was late, so these figures "
            f"must not be used ({because})"
        )
    return {
        "sustained": "sustained: every check holds"
        + (f" that was judged (not judged: {unjudged})" if unjudged else ""),
        "not_sustained": f"not sustained: {because}",
        "undecided": f"undecided: {because}",
        "invalid": f"invalid: {_at_fault(deciding)}, so these figures must not be used ({because})",
        "interrupted": "interrupted before the verdict: the run folder keeps the measurements, and they prove nothing",
    }[value]


_UNRELATED_TO_LOAD = (Cause.SPAN_TOO_SHORT, Cause.NEGATIVE_LATENCY, Cause.QUEUE_CUT_BY_MEMORY)
"""Causes that no background load brings about."""
_AT_FAULT = {
    Cause.PROGRESS_UNKNOWN: "nothing showed how far the program had read",
    Cause.NEGATIVE_LATENCY: "a clock is wrong",
    Cause.LIMIT_REACHED: "a limit of this environment ended a process",
    Cause.SCHEDULE_DELAY: "the driver was late",
    Cause.DISK_FULL: "a disk is full",
    Cause.QUEUE_CUT_BY_MEMORY: "the queue's memory limit (--memory) is too small",
    Cause.DRIVER_MEMORY_FULL: "the queue's memory limit (--memory) is too small",
}
"""Causes of an invalid trial that are not a failure of the driver."""


def _at_fault(deciding: tuple[Check, ...]) -> str:
    code = deciding[0].code if deciding else None
    return _AT_FAULT.get(code, "the driver failed") if code is not None else "the driver failed"


def _wrong_answers(checks: tuple[Check, ...], deciding: tuple[Check, ...]) -> str:
    """The wrong answers of a trial whose verdict has another first reason; empty if there are none."""
    wrong = next((check for check in checks if check.code == Cause.WRONG_ANSWERS), None)
    if wrong is None or wrong in deciding[:1]:
        return ""
    said = "" if wrong in deciding else f" ({wrong.sentence})"
    return f"; answers are wrong too{said}: see verification.json"


def _allowed(evidence: Evidence) -> str:
    """The results that differ as a promised guarantee allows; empty if there are none."""
    verification = evidence.verification
    if verification is None or not verification.allowed:
        return ""
    return f"; {verification.allowed_in_words} of {verification.expected:,} results, as its guarantee allows"


def _because(deciding: tuple[Check, ...]) -> str:
    return "; ".join(f"{check.name}: {check.sentence}" for check in deciding)


_ADVICE_BACKGROUND_LOAD = "close the background processes (`top` lists them), then run it again"
_ADVICE_NOTHING_DUE = (
    "check the job's conditions, which let no event of this input through; if its windows are longer than the trial, "
    "use a longer span (--duration)"
)


_ADVICE_UNDECIDED = {
    Cause.QUEUE_FULL_AT_START: "use a longer warm-up (--warmup), a larger queue (--bound), or a lower rate",
    Cause.CHECK_FAILED_TO_RUN: "report it with result.json: a check crashed",
}


def _advice_disk(value: VerdictValue, deciding: tuple[Check, ...]) -> str:
    """The advice for a full disk, which nothing else can help."""
    full = value not in ("sustained", "interrupted") and deciding[0].code == Cause.DISK_FULL
    return f"{WAY_OUT}; then run it again" if full else ""


def _advice(value: VerdictValue, deciding: tuple[Check, ...], evidence: Evidence) -> str:
    """What to do next, by the first deciding check."""
    if value == "sustained":
        return ""
    if value == "interrupted":
        return "run it again; the same command repeats the same input"
    first = deciding[0]
    if first.code == Cause.WRONG_ANSWERS and not evidence.user_job:
        return ADVICE_BUILT_IN
    if value == "undecided" and span_too_short(evidence):
        return f"a longer span: --duration {math.ceil(span_needed_s(evidence))}s or more"
    spec = _spec_of(first)
    if spec is not None and first.code is not None and first.code in spec.advice_by_code:
        return spec.advice_by_code[first.code]
    if value == "invalid":
        return spec.advice_invalid if spec is not None else ADVICE_OTHER
    if value == "not_sustained":
        return spec.advice_failed if spec is not None else ADVICE_OTHER
    return _advice_undecided(first, evidence)


def _background_advice(value: VerdictValue, deciding: tuple[Check, ...], busy: tuple[str, str] | None) -> str:
    """Further advice if background load may have slowed the system or the driver."""
    if busy is None or value in ("sustained", "interrupted"):
        return ""
    if any(not _by_slowness(check) or check.code in _UNRELATED_TO_LOAD for check in deciding):
        return ""
    return f"; but first close background processes: they used {busy[0]} meanwhile, which may be the reason"


def _advice_undecided(check: Check, evidence: Evidence) -> str:
    if check.code == Cause.NO_RESULT_DUE:
        return _ADVICE_NOTHING_DUE
    if check.state == "not_judged":
        if check.code != Cause.NO_REFERENCE:
            return "read why in verification.json, correct that, and run it again"
        return "give the job a reference answer: without one no rate is called sustained"
    if check.low is not None and check.high is not None and check.value is not None and check.limit is not None:
        return _longer(abs(check.limit - check.value), (check.high - check.low) / 2)
    if check.code in _ADVICE_UNDECIDED:
        return _ADVICE_UNDECIDED[check.code]
    if evidence.draining_at_start:
        return "use a longer warm-up (--warmup), so that the start-up backlog is gone before the span begins"
    return "use a longer trial (--duration)"


def _longer(distance: float, half_width: float) -> str:
    """Advice on the span's length: the interval of a slope narrows with span^1.5."""
    factor = (half_width / distance) ** (2 / 3) if distance > 0 else np.inf
    if factor > 5:
        return "lower the rate a little: this one is so close to the limit that no reasonable trial length decides"
    return f"use a trial about {max(1.2, factor):.1f} times as long (--duration), or lower the rate a little"


def cannot_recover(backlog: Samples, bound_s: float, remaining_s: float) -> str | None:
    """Why a running trial can only end as not sustained, or None. Cheap enough for every second.

    `backlog`: seconds of event time at deliveries of one phase, in the measured span so far. A trial cannot recover if
    its backlog reached the bound. It also cannot recover if, both now and `UNRECOVERABLE_POLL_S` ago:

    - the backlog grows with 99.9 % confidence by the verdict's interval, and still does in the later half;
    - it could not drain in `remaining_s` at the fastest pace that the engine has shown. For a stalled engine, which
      shows none, half the rate is assumed.
    """
    time_s, backlog_s = backlog.time_s, backlog.value
    if backlog_s.size and backlog_s.max() >= bound_s:
        return f"the backlog reached the queue's bound of {bound_s:.3g} s of the rate"
    before = time_s <= time_s.max(initial=0.0) - UNRECOVERABLE_POLL_S
    earlier = Samples(time_s[before], backlog_s[before])
    polls = ((backlog, remaining_s), (earlier, remaining_s + UNRECOVERABLE_POLL_S))
    # The cheap interval, which takes neighbours as independent, spares most polls the bootstrap.
    cannot_drain = all(_cannot_drain(samples, left_s) for samples, left_s in polls)
    if not cannot_drain or not all(_grows(samples) for samples, _ in polls):
        return None
    growth = independent_slope_interval(time_s, backlog_s).estimate
    return f"the backlog grows by {growth:.1%} of the rate and can no longer drain in the {remaining_s:.0f} s left"


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
    return grown_s > remaining_s * _drain_pace(time_s, backlog_s, later.estimate)


def _grows(backlog: Samples) -> bool:
    """Whether the backlog grows by the verdict's own interval, at a higher confidence."""
    return slope_interval(backlog.time_s, backlog.value, UNRECOVERABLE_CONFIDENCE).low > BACKLOG_SLOPE_SHARE_MAX


def _drain_pace(time_s: Floats, backlog_s: Floats, slope: float) -> float:
    """Seconds of backlog that the engine can drain per second: its best over five deliveries.

    `slope`: the latest growth. During a stall, the pace before says nothing about catching up.
    """
    pace = (backlog_s[:-5] - backlog_s[5:]) / np.maximum(time_s[5:] - time_s[:-5], 1e-9)
    assumed = _STALL_SLOPE if slope >= _STALL_SLOPE else 0.0
    return max(float(pace.max()), assumed)
