"""Was the rate sustained? What the named checks of `verdict.criteria` say together [method 3].

Pure: numbers in, `result.Verdict` out. No clock, no process, no file, no chance (the bootstrap has a fixed seed).
A check that crashes is undecided, never a pass. Interrupted outranks invalid, invalid outranks not sustained, not
sustained outranks undecided; only where every check is ok is a rate called sustained. What was too slow while other
processes were busy on the machine, or while it may have waited for the driver, is no proof against the system, and so
invalid; likewise where nothing could be decided then. What held has held in spite of it. A system that took next to
nothing of the load is not sustained, whatever queue, generators and other processes did.
"""

from __future__ import annotations

import math

import numpy as np

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check, CheckState, Verdict, VerdictValue
from streamgauge.stats.bootstrap import independent_slope_interval, slope_interval
from streamgauge.system.full_disk import WAY_OUT
from streamgauge.verdict.criteria import (
    BACKLOG_SLOPE_SHARE_MAX,
    CHECKS,
    CheckFunction,
    answer,
    driver_bottleneck,
    left_far_behind,
    span_needed_s,
    span_too_short,
)
from streamgauge.verdict.evidence import Evidence, Floats, Samples, background_load
from streamgauge.verdict.slo_checks import slo_check

UNRECOVERABLE_POINTS_MIN, UNRECOVERABLE_SPAN_S_MIN, UNRECOVERABLE_CONFIDENCE = 15, 10.0, 0.999
UNRECOVERABLE_POLL_S = 5.0
"""A trial is asked twice a second, and neighbouring batches are alike: what is true by chance at one look is seldom
true so much earlier as well."""
_GROWTH_S_MIN = 1.0
_STALL_SLOPE = 0.5


def judge(evidence: Evidence) -> Verdict:
    """All checks on one trial, and the verdict that they give together [method 3]."""
    checks = tuple(_guarded(name, check, evidence) for name, check in _checks_of(evidence))
    value, deciding = _combine(checks, evidence.interrupted)
    if _was_too_slow(value, deciding) and (driver := driver_bottleneck(evidence)) is not None:
        checks = tuple(driver if check.name == driver.name else check for check in checks)
        value, deciding = _combine(checks, evidence.interrupted)
    far_behind = None if evidence.interrupted else left_far_behind(evidence)
    if far_behind is not None:
        checks = tuple(far_behind if check.name == far_behind.name else check for check in checks)
        value, deciding = "not_sustained", (far_behind,)
    busy = background_load(evidence.background_share, evidence.background_burst_share)
    if busy is not None and far_behind is None and _was_too_slow(value, deciding):
        return _disturbed(value, checks, deciding, busy)
    # What became of the system is worth knowing even where nothing may be said against it.
    lost = (check for check in checks if check.name == "connected" and check.state == "failed")
    died = tuple(lost) if value == "invalid" else ()
    slowed = busy if value == "invalid" and _kept_from_work(deciding, evidence) else None
    return Verdict(
        value=value,
        cause=_cause(value, deciding, slowed is not None),
        checks=checks,
        decided_by=tuple(check.name for check in deciding) if not evidence.interrupted else ("interrupted",),
        sentence=_sentence(value, deciding, died, slowed),
        advice=_advice_disk(value, deciding)
        or _advice(value, deciding, evidence) + _background_load(value, deciding, busy),
    )


def _cause(value: VerdictValue, deciding: tuple[Check, ...], slowed: bool) -> Cause | None:
    """`slowed`: by other processes, the driver."""
    if value in ("sustained", "interrupted"):
        return Cause.ALL_CHECKS_HOLD if value == "sustained" else Cause.INTERRUPTED
    return Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD if slowed else deciding[0].code


_NOT_BY_SLOWNESS = ("connected", "answers")
"""What neither other processes bring about by taking the system's processors, nor the driver by letting it wait: all
other checks say that it was slow."""


def _checks_of(evidence: Evidence) -> list[tuple[str, CheckFunction]]:
    """Name and check, in the order in which they are shown; service levels last."""
    return [*CHECKS, *((level.name, slo_check(level)) for level in evidence.levels)]


def _was_too_slow(value: VerdictValue, deciding: tuple[Check, ...]) -> bool:
    """Too slow by all that decided; or not decided by something that a slower system makes harder to decide."""
    if value == "undecided":
        if any(check.code == Cause.SPAN_TOO_SHORT for check in deciding):
            return False  # no machine makes a span longer
        open_ = (check for check in deciding if check.state == "undecided" and check.name not in _NOT_BY_SLOWNESS)
        return not all(_lacks_results(check) for check in open_)
    return value == "not_sustained" and not any(check.name in _NOT_BY_SLOWNESS for check in deciding)


def _kept_from_work(deciding: tuple[Check, ...], evidence: Evidence) -> bool:
    """Whether the driver itself was too slow, which other processes bring about; neither an end nor a wrong clock."""
    failed = evidence.driver_reason or evidence.negative_latencies
    return not failed and any(check.name == "driver" for check in deciding)


def _lacks_results(check: Check) -> bool:
    """Whether it is a level on a percentile that too few batches were there for: the span's length, and no slowness."""
    return check.value is None and check.name not in dict(CHECKS)


def _disturbed(
    value: VerdictValue, checks: tuple[Check, ...], deciding: tuple[Check, ...], busy: tuple[str, str]
) -> Verdict:
    """Of a system that was too slow, or could not be judged, while others had a part of its machine. Each check keeps
    what it has seen.

    Invalid, because that alone is made again by a search; anything else would be its upper end for good.
    """
    used, allowed = busy
    nothing = "that it stayed undecided" if value == "undecided" else "that it was too slow"
    sentence = (
        f"invalid: other processes used {used}, at most {allowed} is allowed, so it is no proof against the system "
        f"{nothing} ({_because(deciding)})"
    )
    names = tuple(check.name for check in deciding)
    return Verdict(
        value="invalid", cause=Cause.BACKGROUND_LOAD, checks=checks, decided_by=names, sentence=sentence,
        advice=_ADVICE_DISTURBED,
    )  # fmt: skip


def _guarded(name: str, check: CheckFunction, evidence: Evidence) -> Check:
    """The check's answer; one that crashes or comes without a number is undecided, because nothing is known then."""
    try:
        found = check(evidence)
    except Exception as error:  # whatever went wrong, it is no pass
        reason = str(error) or type(error).__name__
        return answer(name, "undecided", Cause.CHECK_FAILED_TO_RUN, None, None, "", f"could not be judged: {reason}")
    if found.value is not None and np.isnan(found.value):
        sentence = "could not be judged: its number is not known"
        return answer(name, "undecided", Cause.CHECK_FAILED_TO_RUN, None, found.limit, found.unit, sentence)
    return found


def _combine(checks: tuple[Check, ...], interrupted: bool) -> tuple[VerdictValue, tuple[Check, ...]]:
    if interrupted:
        return "interrupted", ()
    order: tuple[tuple[VerdictValue, tuple[CheckState, ...]], ...] = (
        ("invalid", ("invalid",)),
        ("not_sustained", ("failed",)),
        ("undecided", ("undecided", "not_judged")),
    )
    for value, states in order:
        deciding = tuple(check for check in checks if check.state in states)
        if deciding:
            return value, deciding
    return "sustained", ()


def _sentence(
    value: VerdictValue, deciding: tuple[Check, ...], died: tuple[Check, ...], busy: tuple[str, str] | None
) -> str:
    """`busy`: what others used, where that may be why the driver was too slow."""
    because = _because(deciding + died)
    if busy is not None:
        return (
            f"invalid: other processes used {busy[0]}, at most {busy[1]} is allowed, and the driver did not do its "
            f"work in time beside them, so this figure must not be used ({because})"
        )
    return {
        "sustained": "sustained: every check holds",
        "not_sustained": f"not sustained, by {because}",
        "undecided": f"undecided, by {because}",
        "invalid": f"invalid: the driver itself failed, so this figure must not be used ({because})",
        "interrupted": "interrupted before it was judged; what was measured is kept and proves nothing",
    }[value]


def _because(deciding: tuple[Check, ...]) -> str:
    return "; ".join(f"{check.name}: {check.sentence}" for check in deciding)


_ADVICE_DISTURBED = "see what else runs on this machine, end it, and run this again"
_ADVICE_INVALID = {
    "driver": "free the machine or give the driver cores of its own (--isolation pinned), or ask for a lower rate",
    "queue_bound": "give the queue more memory (--memory), or ask for a lower rate or a smaller payload",
}
_ADVICE_FAILED = {
    "connected": "look into engine/ in the run folder for the engine's own reason before trying another rate",
    "backlog_trend": "a lower rate; `streamgauge sustain` finds the highest that holds",
    "output_trend": "a lower rate; the engine reads in time and falls behind inside",
    "latency_trend": "a lower rate, or a look at what grows in the job's state: its results come later and later",
    "queue_bound": "a lower rate; or a longer bound (--bound) if this was one short stall",
    "answers": "look at the examples in verification.json: a rate means nothing while answers are wrong",
}
_ADVICE_NOTHING_DUE = (
    "look at the conditions of the job, which let nothing of this input through; if its windows are longer than the "
    "trial, take a longer span (--duration)"
)
_ADVICE_OTHER = "a lower rate, or another setting of the engine"


def _advice_disk(value: VerdictValue, deciding: tuple[Check, ...]) -> str:
    """Where a full disk decided, nothing else helps: neither processors nor a lower rate."""
    full = value not in ("sustained", "interrupted") and deciding[0].code == Cause.DISK_FULL
    return f"{WAY_OUT}; then run it again" if full else ""


def _advice(value: VerdictValue, deciding: tuple[Check, ...], evidence: Evidence) -> str:
    """What to do next, by the first check that decided."""
    if value == "sustained":
        return ""
    if value == "interrupted":
        return "run it again; the same command repeats the same input"
    first = deciding[0]
    if value == "undecided" and span_too_short(evidence):
        return f"a longer span: --duration {math.ceil(span_needed_s(evidence))}s or more"
    if value == "invalid":
        return _ADVICE_INVALID.get(first.name, _ADVICE_OTHER)
    if value == "not_sustained":
        return _ADVICE_FAILED.get(first.name, _ADVICE_OTHER)
    return _advice_undecided(first, evidence)


def _background_load(value: VerdictValue, deciding: tuple[Check, ...], busy: tuple[str, str] | None) -> str:
    """A machine that is busy besides may be what kept the system, or the driver, from its work; nothing else."""
    if busy is None or value in ("sustained", "interrupted"):
        return ""
    if any(check.name in _NOT_BY_SLOWNESS or check.code == Cause.SPAN_TOO_SHORT for check in deciding):
        return ""
    return (
        f"; but first see what else runs on this machine: other processes used {busy[0]} meanwhile, which may be the "
        "reason"
    )


def _advice_undecided(check: Check, evidence: Evidence) -> str:
    if check.code == Cause.NO_RESULT_DUE:
        return _ADVICE_NOTHING_DUE
    if check.state == "not_judged":
        if check.code != Cause.NO_REFERENCE:
            return "see to the reason why the answers could not be judged, then run it again"
        return "this workload brings no reference answer; without one no rate is called sustained"
    if check.low is not None and check.high is not None and check.value is not None and check.limit is not None:
        return _longer(abs(check.limit - check.value), (check.high - check.low) / 2)
    if evidence.draining_at_start:
        return "a longer warm-up (--warmup), so that the start-up backlog is gone before the span begins"
    return "a longer trial (--duration)"


def _longer(distance: float, half_width: float) -> str:
    """How much longer the span must be: an interval of a slope narrows with the span to the power of 1.5."""
    factor = (half_width / distance) ** (2 / 3) if distance > 0 else np.inf
    if factor > 5:
        return "a rate a little lower: this one lies so close to the border that no trial of a sensible length decides"
    return f"a trial about {max(1.2, factor):.1f} times as long (--duration), or a rate a little lower"


def cannot_recover(backlog: Samples, bound_s: float, remaining_s: float) -> str | None:
    """Why a running trial can only end as not sustained, or None; cheap enough to ask every second [method 3].

    `backlog`: seconds of event time at hand-outs of one phase, of the measured span so far. Either the queue's bound
    was reached, or by all that is known now, and by what was known `CANNOT_RECOVER_APART_S` ago, the backlog grows
    steadily (99.9 % sure by the interval of a verdict, still so in the later half) and could not drain in
    `remaining_s` at the fastest pace that the engine has shown. A stalled engine shows none, so half the rate is then
    assumed.
    """
    time_s, backlog_s = backlog.time_s, backlog.value
    if backlog_s.size and backlog_s.max() >= bound_s:
        return f"the backlog reached the queue's bound of {bound_s:.3g} s of the rate"
    before = time_s <= time_s.max(initial=0.0) - UNRECOVERABLE_POLL_S
    earlier = Samples(time_s[before], backlog_s[before])
    polls = ((backlog, remaining_s), (earlier, remaining_s + UNRECOVERABLE_POLL_S))
    # The cheap interval first: it takes neighbours as independent, and spares most polls the bootstrap.
    cannot_drain = all(_cannot_drain(samples, left_s) for samples, left_s in polls)
    if not cannot_drain or not all(_grows(samples) for samples, _ in polls):
        return None
    growth = independent_slope_interval(time_s, backlog_s).estimate
    return f"the backlog grows by {growth:.1%} of the rate and can no longer drain in the {remaining_s:.0f} s left"


def _cannot_drain(backlog: Samples, remaining_s: float) -> bool:
    """Whether it grows, as far as neighbours are independent, and by more than the engine could ever make good."""
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
    """By the verdict's own interval, which is wide where neighbours are alike, and more surely than that asks for."""
    return slope_interval(backlog.time_s, backlog.value, UNRECOVERABLE_CONFIDENCE).low > BACKLOG_SLOPE_SHARE_MAX


def _drain_pace(time_s: Floats, backlog_s: Floats, slope: float) -> float:
    """Seconds of backlog that the engine can work off in a second: the most it has shown over five hand-outs.

    `slope` is the latest growth; where it is that of a stall, what was shown before says nothing of catching up.
    """
    pace = (backlog_s[:-5] - backlog_s[5:]) / np.maximum(time_s[5:] - time_s[:-5], 1e-9)
    assumed = _STALL_SLOPE if slope >= _STALL_SLOPE else 0.0
    return max(float(pace.max()), assumed)
