"""Was the rate sustained? The named checks of [method 3] on the numbers of one trial, and what they say together.

Pure: numbers in, `result.Verdict` out. No clock, no process, no file; nothing here is random (the bootstrap has a seed).

    driver         the plan was kept, events were available in time, clocks agree            else invalid
    connected      no process of the SUT died, no read was aborted, no task was retried      else not sustained
    backlog_trend  the backlog does not grow by more than 1 % of the rate                    else not sustained
    output_trend   results do not fall behind by more than 0.01 s per second                 else not sustained
    queue_bound    the backlog stayed below its bound, and the bound was 10 s or more        else not sustained, invalid
    answers        verification found nothing wrong                                          else not sustained
    evidence       20 batches, 5 windows closed, start-up backlog gone                       else undecided
    (service levels, each by its own name: event_time_p99 and the like)                      else not sustained

A trend is ok when its whole interval is at most the limit, failed when its whole interval is above, undecided otherwise.
A check that crashes is undecided, never a pass. Interrupted outranks invalid, invalid not sustained, that undecided.

What interval is honest with 5 to 8 windows? The frontier of windowed results is a staircase, so its seconds are not
observations: only the moments at which it moved are, one a window. With so few, neither a block length nor the shape of
the noise can be estimated (a percentile bootstrap of six points covers 81 % where it says 95 %). So the interval is then
the one of Student's t with n - 2 degrees of freedom; it assumes that closing delays of different windows are independent,
as they are where windows are longer than batches. It is wide: a verdict needs closing delays that scatter by less than
about a tenth of a second with 7 windows of 4 s. A longer span helps with its power 1.5, which the advice computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streamgauge.errors import InputError, Problem
from streamgauge.events import US, format_us, parse_duration
from streamgauge.result import Check, CheckState, Latencies, Latency, Verdict, VerdictValue, Verification
from streamgauge.stats.bootstrap import Interval, independent_slope_interval, slope_interval

Floats = NDArray[np.float64]

PLAN_SHARE_MIN = 0.99
SLIP_US_MAX = 100_000.0
SLIP_SHARE_OF_LATENCY = 0.02
STARVATION_SHARE_MAX = 0.10
BACKLOG_SLOPE_SHARE_MAX = 0.01
OUTPUT_SLOPE_MAX = 0.01
BOUND_S_MIN = 10.0
BATCHES_MIN, WINDOWS_MIN = 20, 5
TREND_POINTS_MIN = 5
CONFIDENCE, LOOKS = 0.95, 3

_KINDS = ("event_time", "processing_time", "closing_delay", "match_time", "uncorrected")
_STATISTICS = ("min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max")
_LIMIT = re.compile(rf"\s*(?:({'|'.join(_KINDS)})_)?({'|'.join(_STATISTICS)}|p99\.9)\s*<=\s*(\S+)\s*$")


@dataclass(frozen=True)
class Samples:
    """A quantity at moments of the measured span: `time_s` (n,) ascending, `value` (n,)."""

    time_s: Floats
    value: Floats

    @classmethod
    def of(cls, time_s: Iterable[float], value: Iterable[float]) -> Samples:
        return cls(np.asarray(list(time_s), dtype=np.float64), np.asarray(list(value), dtype=np.float64))


@dataclass(frozen=True)
class ServiceLevel:
    """A limit that the user sets on one statistic of one latency, microseconds; `text` is as it was written."""

    kind: str
    statistic: str
    limit_us: float
    text: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.statistic}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a verdict rests on, of the measured span only.

    `planned_per_s`, `offered_per_s` (seconds,): events whose *due* time lies in each second, and those of them that were
    made available in time; binned by plan on both sides, since chunks straddle seconds of the wall clock.
    `backlog`: events due and not handed out, at hand-outs, every sample in the same phase (all just before, or all just
    after). `output_lag`: seconds of planned time - output frontier, sampled as results arrive.
    `starvation_share`: share of the span that the worst driver process waited in a run queue.
    `backlog_max_s`, `bound_s`: in seconds of the rate. `windows_closed`: None where nothing is windowed.
    `look`: 0 for the first judgement of a trial, 1 and 2 after its extensions.
    """

    rate_per_s: float
    planned_per_s: Floats
    offered_per_s: Floats
    slip_us_p50: float
    slip_us_p99: float
    starvation_share: float
    sut_alive: bool
    backlog: Samples
    output_lag: Samples
    backlog_max_s: float
    bound_s: float
    verification: Verification | None
    batches: int
    latencies: Latencies = field(default_factory=Latencies)
    windows_closed: int | None = None
    aborted_reads: int = 0
    retried_tasks: int = 0
    negative_latencies: int = 0
    bound_cut_by_memory: bool = False
    draining_at_start: bool = False
    interrupted: bool = False
    look: int = 0
    levels: tuple[ServiceLevel, ...] = ()
    sut_reason: str = ""

    @property
    def confidence(self) -> float:
        """Every look has a third of the error: three looks together err no more than one at 95 % (Bonferroni)."""
        if not 0 <= self.look < LOOKS:
            raise ValueError(f"look must be 0 to {LOOKS - 1}, got {self.look}")
        return 1 - (1 - CONFIDENCE) / LOOKS


def parse_limit(text: str, setting: str = "limit") -> ServiceLevel:
    """`event_time_p99 <= 2s` as a service level; `p99<=2s` means event time. InputError on anything else."""
    match = _LIMIT.match(text)
    if match is None:
        rule = f"must be KIND_STATISTIC <= TIME, KIND one of {', '.join(_KINDS)}, STATISTIC of {', '.join(_STATISTICS)}"
        raise InputError(Problem(setting, rule, text, '"event_time_p99 <= 2s"'))
    limit_us = parse_duration(match.group(3), setting) * US
    if limit_us <= 0:
        raise InputError(Problem(setting, "must allow more than no time", text, '"event_time_p99 <= 2s"'))
    return ServiceLevel(match.group(1) or "event_time", match.group(2).replace(".", "_"), limit_us, text.strip())


def judge(evidence: Evidence) -> Verdict:
    """All checks on one trial, and the verdict that they give together [method 3]."""
    checks = tuple(_guarded(name, check, evidence) for name, check in _checks(evidence))
    value, deciding = _combine(checks, evidence.interrupted)
    return Verdict(
        value=value,
        checks=checks,
        decided_by=tuple(check.name for check in deciding) if not evidence.interrupted else ("interrupted",),
        sentence=_sentence(value, deciding),
        advice=_advice(value, deciding, evidence),
    )


def _checks(evidence: Evidence) -> list[tuple[str, Callable[[Evidence], Check]]]:
    levels = [(level.name, _level_check(level)) for level in evidence.levels]
    return [*_CHECKS, *levels]


def _guarded(name: str, check: Callable[[Evidence], Check], evidence: Evidence) -> Check:
    """The check's answer; one that crashes is undecided, because nothing is known then."""
    try:
        return check(evidence)
    except Exception as error:  # whatever went wrong, it is no pass
        sentence = f"could not be judged: {error or type(error).__name__}"
        return _check(name, "undecided", None, None, "", sentence)


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


def _check(
    name: str,
    state: CheckState,
    value: float | None,
    limit: float | None,
    unit: str,
    sentence: str,
    interval: Interval | None = None,
) -> Check:
    ok = {"ok": True, "failed": False, "invalid": False}.get(state)
    low, high = (interval.low, interval.high) if interval is not None else (None, None)
    return Check(
        name=name, value=value, limit=limit, unit=unit, ok=ok, state=state, sentence=sentence, low=low, high=high
    )


@dataclass(frozen=True)
class _Part:
    """One condition of a check that has several; `good` where it holds."""

    good: bool
    value: float
    limit: float
    unit: str
    sentence: str


def _of_parts(name: str, parts: list[_Part], bad_state: CheckState, shown: int) -> Check:
    """A check from its parts: the first bad one gives the number, all bad ones the sentence; else part `shown`."""
    bad = [part for part in parts if not part.good]
    part = bad[0] if bad else parts[shown]
    sentence = "; ".join(one.sentence for one in bad) if bad else part.sentence
    return _check(name, bad_state if bad else "ok", part.value, part.limit, part.unit, sentence)


def _driver(evidence: Evidence) -> Check:
    parts = [_plan(evidence), _slip(evidence), _starvation(evidence), _clock(evidence)]
    return _of_parts("driver", parts, "invalid", shown=1)


def _plan(evidence: Evidence) -> _Part:
    planned, offered = np.asarray(evidence.planned_per_s, float), np.asarray(evidence.offered_per_s, float)
    asked = planned > 0
    if not asked.any():
        raise ValueError("no second of the plan was recorded")
    share = float((offered[asked] / planned[asked]).min())
    sentence = f"in the worst second {share:.1%} of the plan was offered, at least {PLAN_SHARE_MIN:.0%} is needed"
    return _Part(share >= PLAN_SHARE_MIN, share, PLAN_SHARE_MIN, "share of plan", sentence)


def _slip(evidence: Evidence) -> _Part:
    limit = max(SLIP_US_MAX, SLIP_SHARE_OF_LATENCY * (_statistic(evidence, "event_time", "p50") or 0.0))
    slip = evidence.slip_us_p99
    sentence = f"events became available {format_us(slip)} late (p99), at most {format_us(limit)} is allowed"
    return _Part(slip <= limit, slip, limit, "us", sentence)


def _starvation(evidence: Evidence) -> _Part:
    share, limit = evidence.starvation_share, STARVATION_SHARE_MAX
    sentence = f"a driver process waited for a processor {share:.0%} of the time, at most {limit:.0%} is allowed"
    return _Part(share <= limit, share, limit, "share of span", sentence)


def _clock(evidence: Evidence) -> _Part:
    negative = evidence.negative_latencies
    return _Part(negative == 0, negative, 0, "results", f"clock: {negative} latencies are negative")


def _connected(evidence: Evidence) -> Check:
    reason = f": {evidence.sut_reason}" if evidence.sut_reason else ""
    parts = [
        _Part(evidence.sut_alive, 1, 0, "deaths", f"a process of the system under test died{reason}"),
        _counted(evidence.aborted_reads, "aborted reads", "reads of the system under test were aborted"),
        _counted(evidence.retried_tasks, "retried tasks", "tasks of the system under test were retried"),
    ]
    if all(part.good for part in parts):
        return _check("connected", "ok", 0, 0, "faults", "nothing died, was aborted or retried")
    return _of_parts("connected", parts, "failed", shown=1)


def _counted(n: int, unit: str, what: str) -> _Part:
    return _Part(n == 0, n, 0, unit, f"{n} {what}")


def _backlog_trend(evidence: Evidence) -> Check:
    share = Samples(evidence.backlog.time_s, evidence.backlog.value / evidence.rate_per_s)
    return _trend("backlog_trend", share, BACKLOG_SLOPE_SHARE_MAX, evidence, "the backlog grows by", "of the rate")


def _output_trend(evidence: Evidence) -> Check:
    moved = steps(evidence.output_lag)
    return _trend("output_trend", moved, OUTPUT_SLOPE_MAX, evidence, "results fall behind by", "of the time")


def steps(lag_s: Samples) -> Samples:
    """The samples at which the output frontier (time - lag) moved: one a window, all of the same phase.

    A stall leaves no step behind. So where the last sample's lag, less the largest step ever made, is above the last
    step's, it is kept too: the next step could not have come with less.
    """
    frontier_s = lag_s.time_s - lag_s.value
    jump_s = np.diff(frontier_s)
    at = np.flatnonzero(jump_s > 1e-6) + 1
    times, lags = lag_s.time_s[at], lag_s.value[at]
    if at.size and at[-1] != frontier_s.size - 1:
        least_s = lag_s.value[-1] - jump_s.max()
        if least_s > lags[-1]:
            times, lags = np.append(times, lag_s.time_s[-1]), np.append(lags, least_s)
    return Samples(times, lags)


def _trend(name: str, samples: Samples, limit: float, evidence: Evidence, verb: str, of_what: str) -> Check:
    n = samples.value.size
    if n < TREND_POINTS_MIN:
        return _check(name, "undecided", None, limit, "s/s", f"{n} observations carry no trend; {TREND_POINTS_MIN} do")
    interval = slope_interval(samples.time_s, samples.value, evidence.confidence)
    sentence = (
        f"{verb} {interval.estimate:+.2%} {of_what} ({interval.low:+.2%} to {interval.high:+.2%}, "
        f"{interval.confidence:.1%} interval, {n} observations), limit {limit:.0%}"
    )
    return _check(name, _trend_state(interval, limit), interval.estimate, limit, "s/s", sentence, interval)


def _trend_state(interval: Interval, limit: float) -> CheckState:
    if interval.high <= limit:
        return "ok"
    return "failed" if interval.low > limit else "undecided"


def _queue_bound(evidence: Evidence) -> Check:
    reached, bound = evidence.backlog_max_s, evidence.bound_s
    if evidence.bound_cut_by_memory and bound < BOUND_S_MIN:
        sentence = f"memory cut the queue to {bound:.3g} s of the rate, {BOUND_S_MIN:.0f} s are needed to judge it"
        return _check("queue_bound", "invalid", bound, BOUND_S_MIN, "s", sentence)
    sentence = f"the backlog reached {reached:.3g} s of the rate, its bound is {bound:.3g} s"
    return _check("queue_bound", "ok" if reached < bound else "failed", reached, bound, "s", sentence)


def _answers(evidence: Evidence) -> Check:
    found = evidence.verification
    if found is None or not found.judged:
        return _check("answers", "not_judged", None, 0, "rows", "answers: not judged")
    faults = {name: getattr(found, name) for name in ("missing", "extra", "duplicate", "wrong", "late")}
    number = sum(faults.values())
    listed = ", ".join(f"{count} {name}" for name, count in faults.items() if count)
    sentence = f"of {found.expected} expected results: {listed or 'all right'}"
    return _check("answers", "ok" if found.right else "failed", number, 0, "rows", sentence)


def _evidence(evidence: Evidence) -> Check:
    windows = evidence.windows_closed
    parts = [
        _enough(evidence.batches, BATCHES_MIN, "batches"),
        _Part(not evidence.draining_at_start, 1, 0, "", "the span began while start-up backlog was still draining"),
    ]
    if windows is not None:
        parts.insert(1, _enough(windows, WINDOWS_MIN, "windows closed"))
    return _of_parts("evidence", parts, "undecided", shown=0)


def _enough(n: int, least: int, what: str) -> _Part:
    return _Part(n >= least, n, least, what, f"{n} {what}, at least {least} are needed")


def _level_check(level: ServiceLevel) -> Callable[[Evidence], Check]:
    def check(evidence: Evidence) -> Check:
        latency: Latency | None = getattr(evidence.latencies, f"{level.kind}_us")
        value = _statistic(evidence, level.kind, level.statistic)
        if latency is None or value is None:
            seen = 0 if latency is None else latency.effective_count
            sentence = f"{level.text}: {seen} independent results do not carry it"
            return _check(level.name, "undecided", None, level.limit_us, "us", sentence)
        sentence = f"{level.text}: it is {format_us(value)}"
        if value > level.limit_us:
            return _check(level.name, "failed", value, level.limit_us, "us", sentence)
        if latency.lower_bounds:
            sentence += f" or more: {latency.lower_bounds} results had not arrived"
            return _check(level.name, "undecided", value, level.limit_us, "us", sentence)
        return _check(level.name, "ok", value, level.limit_us, "us", sentence)

    return check


def _statistic(evidence: Evidence, kind: str, statistic: str) -> float | None:
    latency = getattr(evidence.latencies, f"{kind}_us")
    value: float | None = None if latency is None else getattr(latency, statistic)
    return value


_CHECKS: tuple[tuple[str, Callable[[Evidence], Check]], ...] = (
    ("driver", _driver),
    ("connected", _connected),
    ("backlog_trend", _backlog_trend),
    ("output_trend", _output_trend),
    ("queue_bound", _queue_bound),
    ("answers", _answers),
    ("evidence", _evidence),
)


def _sentence(value: VerdictValue, deciding: tuple[Check, ...]) -> str:
    because = "; ".join(f"{check.name}: {check.sentence}" for check in deciding)
    return {
        "sustained": "sustained: every check holds",
        "not_sustained": f"not sustained, by {because}",
        "undecided": f"undecided, by {because}",
        "invalid": f"invalid: the driver itself failed, so this figure must not be used ({because})",
        "interrupted": "interrupted before the span was over; what was measured is kept and proves nothing",
    }[value]


_ADVICE_INVALID = {
    "driver": "free the machine or give the driver cores of its own (--isolation pinned), or ask for a lower rate",
    "queue_bound": "give the queue more memory (load.memory), or ask for a lower rate",
}
_ADVICE_FAILED = {
    "connected": "look into engine/ in the run folder for the engine's own reason before trying another rate",
    "backlog_trend": "a lower rate; `streamgauge sustain` finds the highest that holds",
    "output_trend": "a lower rate; the engine reads in time and falls behind inside",
    "queue_bound": "a lower rate; or a longer bound (load.bound) if this was one short stall",
    "answers": "look at the examples in verification.json: a rate means nothing while answers are wrong",
}
_ADVICE_OTHER = "a lower rate, or another setting of the engine"


def _advice(value: VerdictValue, deciding: tuple[Check, ...], evidence: Evidence) -> str:
    """What to do next, by the first check that decided."""
    if value == "sustained":
        return ""
    if value == "interrupted":
        return "run it again; the same command repeats the same input"
    first = deciding[0]
    if value == "invalid":
        return _ADVICE_INVALID.get(first.name, _ADVICE_OTHER)
    if value == "not_sustained":
        return _ADVICE_FAILED.get(first.name, _ADVICE_OTHER)
    return _advice_undecided(first, evidence)


def _advice_undecided(check: Check, evidence: Evidence) -> str:
    if check.state == "not_judged":
        return "this workload brings no reference answer; without one no rate is called sustained"
    if check.low is not None and check.high is not None and check.value is not None and check.limit is not None:
        return _longer(abs(check.limit - check.value), (check.high - check.low) / 2)
    if evidence.draining_at_start:
        return "a longer warm-up (load.warmup), so that the start-up backlog is gone before the span begins"
    return "a longer trial (--duration)"


def _longer(distance: float, half_width: float) -> str:
    """How much longer the span must be: an interval of a slope narrows with the span to the power of 1.5."""
    factor = (half_width / distance) ** (2 / 3) if distance > 0 else np.inf
    if factor > 5:
        return "a rate a little lower: this one lies so close to the border that no trial of a sensible length decides"
    return f"a trial about {max(1.2, factor):.1f} times as long (--duration), or a rate a little lower"


HOPELESS_POINTS_MIN, HOPELESS_SPAN_S_MIN, HOPELESS_CONFIDENCE = 15, 10.0, 0.999
_GROWTH_S_MIN = 1.0
_STALL_SLOPE = 0.5


def hopeless(backlog: Samples, rate_per_s: float, bound_s: float, remaining_s: float) -> str | None:
    """Why a running trial can only end as not sustained, or None; cheap enough to ask every second [method 3].

    `backlog`: events at hand-outs of one phase, of the measured span so far. Either the queue's bound was reached, or the
    backlog grows steadily (99.9 % sure, still so in the later half) and could not drain in `remaining_s` at the fastest
    pace that the engine has shown. While an engine is stalled it shows no pace, so half the rate is then assumed.
    """
    time_s, backlog_s = backlog.time_s, backlog.value / rate_per_s
    if backlog_s.size and backlog_s.max() >= bound_s:
        return f"the backlog reached the queue's bound of {bound_s:.3g} s of the rate"
    if backlog_s.size < HOPELESS_POINTS_MIN or np.ptp(time_s) < HOPELESS_SPAN_S_MIN:
        return None
    slope = independent_slope_interval(time_s, backlog_s, HOPELESS_CONFIDENCE)
    later = independent_slope_interval(time_s[time_s.size // 2 :], backlog_s[time_s.size // 2 :])
    grown_s = float(np.median(backlog_s[-3:]) - np.median(backlog_s[:3]))
    if min(slope.low, later.estimate) <= BACKLOG_SLOPE_SHARE_MAX or grown_s < _GROWTH_S_MIN:
        return None
    if grown_s <= remaining_s * _drain_pace(time_s, backlog_s, slope.estimate):
        return None
    return (
        f"the backlog grows by {slope.estimate:.1%} of the rate and can no longer drain in the {remaining_s:.0f} s left"
    )


def _drain_pace(time_s: Floats, backlog_s: Floats, slope: float) -> float:
    """Seconds of backlog that the engine can work off in a second: the most it has shown over five hand-outs."""
    pace = (backlog_s[:-5] - backlog_s[5:]) / np.maximum(time_s[5:] - time_s[:-5], 1e-9)
    assumed = _STALL_SLOPE if slope >= _STALL_SLOPE else 0.0
    return max(float(pace.max()), assumed)
