"""The named checks of [method 3]: each takes the evidence of a trial and answers with its number and its limit.

    driver         the plan was kept in time, clocks agree, nobody waited long for it        else invalid
    connected      no process of the SUT died; in the span no read aborted, no task retried  else not sustained
    backlog_trend  the backlog does not grow by more than 1 % of the rate                    else not sustained
    output_trend   results do not fall behind by more than 0.01 s per second                 else not sustained
    latency_trend  nothing shows that results are later by more than 0.01 s every second     else not sustained
    queue_bound    the backlog stayed below its bound, and the bound was 10 s or more        else not sustained, invalid
    answers        verification found nothing wrong                                          else not sustained
    evidence       20 batches, 5 windows closed, start-up backlog gone                       else undecided
    (service levels, each by its own name: event_time_p99 and the like)                      else not sustained

A trend is ok when its whole interval is at most the limit, failed when all of it is above, undecided otherwise; a
quantity that first falls and then surely grows is undecided too, whatever its straight line says.

What interval is honest with few samples? An output frontier that moves by windows alone is a staircase, so its
seconds are not observations: only the moments at which it moved are (with Spark one a batch). Of an engine that has
committed all before it reads on, the output is sampled when a batch begins, as the backlog is: at commits its lag has
the length of each batch in it, which varies while nothing waits at all. Batches that take longer and longer are no
backlog as long as they end within their interval; so at commits the output fails where it surely falls behind, and is
undecided where batches seem to grow and would soon fill their interval. The latency of the results themselves, from
the hand-out of their last event, shows an engine that holds results back inside batches that it has committed; there
only sure growth counts.

With 5 to 8 steps, neither a block length nor the shape of the noise can be estimated (a percentile bootstrap of six
points covers 81 % where it says 95 %). The interval is then the one of Student's t with n - 2 degrees of freedom; it
takes closing delays of different windows as independent, which they are where windows are longer than batches. It is
wide: slope 0 is passed in nine trials of ten (simulated) where closing delays scatter by 40 ms (standard deviation)
with 7 windows of 4 s, or by 150 ms with 15; with more it stays undecided. So a frontier that moves with every batch is
worth having, and a longer span helps with its power 1.5, which the advice computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamgauge.config.thresholds import BATCHES_MIN, BOUND_S_MIN, WINDOWS_MIN
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_us
from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.bootstrap import Interval, slope_interval
from streamgauge.verdict.evidence import Evidence, Samples

PLAN_SHARE_MIN = 0.99
SLIP_US_MAX = 100_000
SLIP_SHARE_OF_LATENCY = 0.02
CORE_WAIT_US_MAX = 10_000.0
WAITED_SHARE_MAX = 0.5
"""Of the span, for which an end of the transport may be at work: more than that, and it is what is measured. A driver
that keeps up has some hundredths: a hand-out takes 3 ns an event."""
WAITED_SHARE_MAX_WHERE_SLOW = 0.25
"""The same where the system was too slow: it might have kept up had it not waited for the driver so long."""
STILL_SHARE_MAX = 0.01
"""Of the span: what arrives in so little of it moves no percentile up to the 99th."""
NOTHING_DUE = "no result came and none was due, so there is no latency"
BACKLOG_SLOPE_SHARE_MAX = 0.01
OUTPUT_SLOPE_MAX = 0.01
TREND_POINTS_MIN = 5

CheckFunction = Callable[[Evidence], Check]


def answer(
    name: str,
    state: CheckState,
    code: Cause,
    value: float | None,
    limit: float | None,
    unit: str,
    sentence: str,
    interval: Interval | None = None,
) -> Check:
    ok = {"ok": True, "failed": False, "invalid": False}.get(state)
    low, high = (interval.low, interval.high) if interval is not None else (None, None)
    return Check(
        name=name,
        code=code,
        value=value,
        limit=limit,
        unit=unit,
        ok=ok,
        state=state,
        sentence=sentence,
        low=low,
        high=high,
    )


@dataclass(frozen=True)
class _Part:
    """One condition of a check that has several; `good` where it holds."""

    good: bool
    code: Cause
    value: float
    limit: float
    unit: str
    sentence: str


def _of_parts(name: str, parts: list[_Part], bad_state: CheckState, shown: int) -> Check:
    """A check from its parts: the first bad one gives number and code, all bad ones the sentence; else part `shown`."""
    bad = [part for part in parts if not part.good]
    part = bad[0] if bad else parts[shown]
    sentence = "; ".join(one.sentence for one in bad) if bad else part.sentence
    state, code = (bad_state, part.code) if bad else ("ok", Cause.OK)
    return answer(name, state, code, part.value, part.limit, part.unit, sentence)


def _driver(evidence: Evidence) -> Check:
    if evidence.driver_reason:
        sentence = f"a process of the driver failed: {evidence.driver_reason}"
        code = Cause.DISK_FULL if evidence.driver_disk_full else Cause.DRIVER_FAILED
        return answer("driver", "invalid", code, 1, 0, "failures", sentence)
    waited = _waited_for(evidence, WAITED_SHARE_MAX, "is allowed")
    parts = [_clock(evidence), _plan(evidence), _slip(evidence), *waited, _standstill(evidence)]
    if not math.isnan(evidence.core_wait_us):
        return _of_parts("driver", [*parts, _starvation(evidence)], "invalid", shown=2)
    found = _of_parts("driver", parts, "invalid", shown=2)
    return found.model_copy(update={"sentence": f"{found.sentence}; how long it waited for a core is not known"})


def _plan(evidence: Evidence) -> _Part:
    planned, offered = np.asarray(evidence.planned_per_s, float), np.asarray(evidence.offered_per_s, float)
    asked = planned > 0
    if not asked.any():
        raise ValueError("no second of the plan was recorded")
    share = float((offered[asked] / planned[asked]).min())
    sentence = f"in the worst second {share:.1%} of the plan was offered, at least {PLAN_SHARE_MIN:.0%} is needed"
    return _Part(share >= PLAN_SHARE_MIN, Cause.PLAN_NOT_KEPT, share, PLAN_SHARE_MIN, "share of plan", sentence)


def _slip(evidence: Evidence) -> _Part:
    limit = max(SLIP_US_MAX, SLIP_SHARE_OF_LATENCY * _least_p50(evidence))
    slip = evidence.slip_us_p99
    sentence = f"events became available {format_us(slip)} late (p99), at most {format_us(limit)} is allowed"
    return _Part(slip <= limit, Cause.SCHEDULE_DELAY, slip, limit, "us", sentence)


def _starvation(evidence: Evidence) -> _Part:
    wait, limit = evidence.core_wait_us, CORE_WAIT_US_MAX
    shown, allowed = format_us(wait), format_us(limit)
    sentence = f"starved: a driver process waited {shown} for a core each time it was ready, {allowed} is allowed"
    return _Part(wait <= limit, Cause.DRIVER_STARVED, wait, limit, "us", sentence)


def _clock(evidence: Evidence) -> _Part:
    negative = evidence.negative_latencies
    sentence = f"clock: {negative} latencies are negative"
    return _Part(negative == 0, Cause.NEGATIVE_LATENCY, negative, 0, "results", sentence)


_WAITED_FOR = (
    (Cause.HAND_OUT_BUSY, "the driver was handing out events for {share:.0%} of the time"),
    (Cause.RECORDER_BUSY, "the recorder was at work on results for {share:.0%} of the time"),
    (Cause.RECORDER_DISK_BUSY, "the recorder waited {share:.0%} of the time for its disk"),
)


def _waited_for(evidence: Evidence, limit: float, allowed: str) -> list[_Part]:
    """What the system may have waited for: the driver's hand-outs, its recorder, and the recorder's disk."""
    shares = (evidence.hand_out_share, evidence.receive_share, evidence.disk_share)
    return [
        _Part(share <= limit, code, share, limit, "share of time", f"{what.format(share=share)}, {limit:.0%} {allowed}")
        for share, (code, what) in zip(shares, _WAITED_FOR, strict=True)
    ]


def driver_bottleneck(evidence: Evidence) -> Check | None:
    """Of a system that was not seen to keep up: the check `driver` where that may be for having waited for us."""
    parts = _waited_for(evidence, WAITED_SHARE_MAX_WHERE_SLOW, "is allowed where the system was not seen to keep up")
    return None if all(part.good for part in parts) else _of_parts("driver", parts, "invalid", shown=0)


def _standstill(evidence: Evidence) -> _Part:
    still_s, limit = evidence.stood_still_s, STILL_SHARE_MAX
    share = still_s / evidence.span_s if evidence.span_s else 0.0
    sentence = (
        f"the recorder stood still for {still_s:.1f} s of {evidence.span_s:.0f} s, {limit:.0%} is allowed: what "
        "arrived then was stamped late"
    )
    return _Part(share <= limit, Cause.RECORDER_STALLED, share, limit, "share of time", sentence)


def _connected(evidence: Evidence) -> Check:
    reason = f": {evidence.sut_reason}" if evidence.sut_reason else ""
    died = Cause.DISK_FULL if evidence.sut_disk_full else Cause.SUT_DIED
    said = f"a process of the system under test died, or does not answer{reason}"
    cut_off = "reads of the system under test were cut off before they were taken whole"
    retried = "tasks of the system under test were retried"
    parts = [
        _Part(evidence.sut_alive, died, 1, 0, "deaths", said),
        _counted(evidence.aborted_reads, Cause.READS_ABORTED, "aborted reads", cut_off),
        _counted(evidence.retried_tasks, Cause.TASKS_RETRIED, "retried tasks", retried),
    ]
    if all(part.good for part in parts):
        return answer("connected", "ok", Cause.OK, 0, 0, "faults", "nothing died, was aborted or retried")
    return _of_parts("connected", parts, "failed", shown=1)


def _counted(n: int, code: Cause, unit: str, what: str) -> _Part:
    return _Part(n == 0, code, n, 0, unit, f"{n} {what}")


def _backlog_trend(evidence: Evidence) -> Check:
    # A second of waiting event time is a second of the rate, whatever the rate is at that moment.
    return worst(
        [
            _trend("backlog_trend", waiting, BACKLOG_SLOPE_SHARE_MAX, evidence, _BACKLOG, "of the rate")
            for waiting in evidence.backlog
        ]
    )


INGESTED_SHARE_MIN = 0.2
"""Of what was offered: a system that took less was not kept from more by a small queue or a late generator."""


def far_behind(ingested_share: float, background_share: float) -> bool:
    """Whether a system took so little of the load that all of the machine would not have been enough for it."""
    return ingested_share < INGESTED_SHARE_MIN * (1 - background_share)


def left_far_behind(evidence: Evidence) -> Check | None:
    """The check `backlog_trend` of a system that took next to nothing, where the driver did not keep it from more."""
    failed = evidence.driver_reason or evidence.negative_latencies or not evidence.sut_alive
    if failed or driver_bottleneck(evidence) or not far_behind(evidence.ingested_share, evidence.background_share):
        return None
    sentence = f"the system took {evidence.ingested_share:.2%} of what was offered"
    left, limit = 1 - evidence.ingested_share, BACKLOG_SLOPE_SHARE_MAX
    return answer("backlog_trend", "failed", Cause.BACKLOG_GROWS, left, limit, "s/s", sentence)


def _output_trend(evidence: Evidence) -> Check:
    level = [_output_of(steps(lag), evidence, _OUTPUT) for lag in evidence.output_lag]
    later = [_at_commits(steps(lag), evidence, _OUTPUT_AT_COMMITS) for lag in evidence.output_lag_at_commits]
    return worst([*level, *(check for check in later if check is not None)])


def _at_commits(lag: Samples, evidence: Evidence, wording: _SlopeWording) -> Check | None:
    """What the lag at commits says against the engine, None where nothing.

    Failed, or undecided where its batches seem to get longer and one more span like this would fill their interval: as
    long as they end within it, nothing waits that the trends at hand-outs could see.
    """
    check = _output_of(lag, evidence, wording)
    if check.state == "failed":
        return check
    if check.state != "undecided" or not _would_fill(evidence.interval_s, lag, check.value):
        return None
    fills = f"one more span like this would fill the batches' interval of {evidence.interval_s:.2g} s"
    changed = {"code": Cause.BATCHES_FILL_INTERVAL, "sentence": f"{check.sentence}; {fills}"}
    return check.model_copy(update=changed)


def _would_fill(interval_s: float, lag: Samples, slope: float | None) -> bool:
    """Whether batches that end within their interval no longer would after one more span of the same growth."""
    if slope is None or slope <= OUTPUT_SLOPE_MAX:
        return False
    usual_s, lately_s = float(np.median(lag.value)), float(np.median(lag.value[-TREND_POINTS_MIN:]))
    return usual_s <= interval_s < lately_s + slope * float(np.ptp(lag.time_s))


def _output_of(lag: Samples, evidence: Evidence, wording: _SlopeWording) -> Check:
    return _trend("output_trend", lag, OUTPUT_SLOPE_MAX, evidence, wording, "of the time")


def _latency_trend(evidence: Evidence) -> Check:
    if not evidence.latency:
        sentence = "no latencies at a steady rate: not judged"
        return answer("latency_trend", "ok", Cause.OK, None, OUTPUT_SLOPE_MAX, "s/s", sentence)
    return worst([_latency_of(latency, evidence) for latency in evidence.latency])


def _latency_of(latency: Samples, evidence: Evidence) -> Check:
    """Only growth that is sure fails, and by more than latencies drift by: the trends above have shown that nothing
    waits.
    """
    trend = _trend("latency_trend", latency, OUTPUT_SLOPE_MAX, evidence, _LATENCY, "of the time")
    if trend.state == "ok":
        return trend
    grown_s = (trend.low or 0.0) * float(np.ptp(latency.time_s)) if latency.time_s.size else 0.0
    if trend.state == "failed" and grown_s > evidence.latency_drift_s:
        return trend
    why = "not shown to fail"
    if trend.state == "failed":
        why = f"no more than windows and batches may drift against each other by, {evidence.latency_drift_s:.2g} s"
    held = {"state": "ok", "code": Cause.OK, "ok": True}
    return trend.model_copy(update={**held, "sentence": f"{trend.sentence}: {why}"})


def worst(checks: list[Check]) -> Check:
    """Of the same check on several queries or sinks: the first that failed, else that is undecided, else the largest
    number.
    """
    for state in ("failed", "undecided"):
        if bad := [check for check in checks if check.state == state]:
            return bad[0]
    return max(checks, key=lambda check: check.value if check.value is not None else -np.inf)


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
    return Samples(times, lags, lag_s.about)


class _SlopeWording(NamedTuple):
    """The code of a slope that is too large, how one above 0 is said, and one below."""

    code: Cause
    more: str
    less: str

    def by(self, slope: float) -> str:
        # Rounded first: what is shown as 0 has no sign either.
        shown = round(slope, 4) + 0.0
        return f"{self.less if shown < 0 else self.more} by {abs(shown):.2%}"


_BACKLOG = _SlopeWording(Cause.BACKLOG_GROWS, "the backlog grows", "the backlog shrinks")
_OUTPUT = _SlopeWording(Cause.RESULTS_FALL_BEHIND, "results fall behind", "results catch up")
_OUTPUT_AT_COMMITS = _SlopeWording(
    Cause.RESULTS_FALL_BEHIND, "at commits, results fall behind", "at commits, results catch up"
)
_LATENCY = _SlopeWording(Cause.LATENCY_GROWS, "the latency grows", "the latency falls")


def _trend(
    name: str, samples: Samples, limit: float, evidence: Evidence, wording: _SlopeWording, of_what: str
) -> Check:
    n, of = samples.value.size, f"{samples.about}: " if samples.about else ""
    if n < TREND_POINTS_MIN:
        sentence = f"{of}{n} observations carry no trend; {TREND_POINTS_MIN} do"
        return answer(name, "undecided", Cause.TOO_FEW_OBSERVATIONS, None, limit, "s/s", sentence)
    interval = slope_interval(samples.time_s, samples.value, evidence.confidence)
    sentence = (
        f"{of}{wording.by(interval.estimate)} {of_what} ({interval.low:+.2%} to {interval.high:+.2%}, "
        f"{interval.confidence:.1%} interval, {n} observations), limit {limit:.0%}"
    )
    state = _trend_state(interval, limit)
    code = {"ok": Cause.OK, "failed": wording.code}.get(state, Cause.TREND_UNDECIDED)
    if state == "ok" and (later := _later_half(samples, evidence.confidence)).low > limit:
        state, code = "undecided", Cause.TREND_TURNED
        sentence += f"; but in the later half, {wording.by(later.estimate)}, {later.low:.2%} or more"
    return answer(name, state, code, interval.estimate, limit, "s/s", sentence, interval)


def _later_half(samples: Samples, confidence: float) -> Interval:
    half = samples.value.size // 2
    return slope_interval(samples.time_s[half:], samples.value[half:], confidence)


def _trend_state(interval: Interval, limit: float) -> CheckState:
    if interval.high <= limit:
        return "ok"
    return "failed" if interval.low > limit else "undecided"


def _queue_bound(evidence: Evidence) -> Check:
    reached, bound = evidence.backlog_max_s, evidence.bound_s
    if evidence.bound_cut_by_memory and bound < BOUND_S_MIN:
        sentence = f"memory cut the queue to {bound:.3g} s of the rate, {BOUND_S_MIN:.0f} s are needed to judge it"
        return answer("queue_bound", "invalid", Cause.QUEUE_CUT_BY_MEMORY, bound, BOUND_S_MIN, "s", sentence)
    if evidence.out_of_memory:
        least, waited = min(bound, BOUND_S_MIN), evidence.memory_full_s
        sentence = (
            f"the driver's memory was full while {waited:.3g} s of event time waited, of {least:.3g} s that must be "
            "able to: the rest was in flight, or kept for a repeat"
        )
        return answer("queue_bound", "invalid", Cause.DRIVER_MEMORY_FULL, waited, least, "s", sentence)
    if not evidence.span_began and evidence.batches_ever < TREND_POINTS_MIN:
        sentence = (
            f"the queue of {bound:.3g} s was full before the measured span, and the engine had hardly begun to read"
        )
        return answer("queue_bound", "undecided", Cause.QUEUE_FULL_AT_START, None, bound, "s", sentence)
    if evidence.overflowed:
        sentence = f"the queue was full: it holds {bound:.3g} s of event time"
        return answer("queue_bound", "failed", Cause.QUEUE_FULL, max(reached, bound), bound, "s", sentence)
    sentence = f"the backlog reached {reached:.3g} s of the rate, its bound is {bound:.3g} s"
    if reached < bound:
        return answer("queue_bound", "ok", Cause.OK, reached, bound, "s", sentence)
    return answer("queue_bound", "failed", Cause.QUEUE_FULL, reached, bound, "s", sentence)


def _answers(evidence: Evidence) -> Check:
    found = evidence.verification
    if found is None or not found.judged:
        reason = found.sentence if found is not None else ""
        code = Cause.ANSWERS_NOT_COMPARED if reason else Cause.NO_REFERENCE
        code = Cause.DISK_FULL if evidence.answers_disk_full else code
        return answer("answers", "not_judged", code, None, 0, "rows", reason or "answers: not judged")
    if found.expected == 0 and found.right:
        sentence = NOTHING_DUE if _nothing_came(evidence) else "no result was due, so none could be judged"
        return answer("answers", "undecided", Cause.NO_RESULT_DUE, 0, 0, "rows", sentence)
    faults = {name: getattr(found, name) for name in ("missing", "extra", "duplicate", "wrong", "late")}
    number = sum(faults.values())
    listed = ", ".join(f"{count:,} {name}" for name, count in faults.items() if count)
    sentence = f"of {found.expected:,} expected results: {listed or 'all right'}{_wrong_sinks(evidence)}"
    if found.right:
        return answer("answers", "ok", Cause.OK, number, 0, "rows", sentence)
    return answer("answers", "failed", Cause.WRONG_ANSWERS, number, 0, "rows", sentence)


def _nothing_came(evidence: Evidence) -> bool:
    return bool(evidence.sinks) and not any(sink.rows for sink in evidence.sinks)


def _wrong_sinks(evidence: Evidence) -> str:
    """Where there are several sinks: which of them the faults are in."""
    if len(evidence.sinks) < 2:
        return ""
    judged = [(sink.name, sink.verification) for sink in evidence.sinks]
    wrong = [name for name, found in judged if found is not None and found.judged and not found.right]
    return f" (wrong: {', '.join(wrong)}; right: {len(judged) - len(wrong)} of {len(judged)} sinks)" if wrong else ""


def _evidence(evidence: Evidence) -> Check:
    windows, draining = evidence.windows_closed, "the span began while start-up backlog was still draining"
    parts = [
        _enough(evidence.batches, Cause.TOO_FEW_BATCHES, BATCHES_MIN, "batches"),
        _Part(not evidence.draining_at_start, Cause.START_BACKLOG, 1, 0, "", draining),
    ]
    if windows is not None:
        parts.insert(0 if span_too_short(evidence) else 1, _windows(windows, evidence))
    return _of_parts("evidence", parts, "undecided", shown=0)


def _windows(closed: int, evidence: Evidence) -> _Part:
    if not span_too_short(evidence):
        return _enough(closed, Cause.TOO_FEW_WINDOWS, WINDOWS_MIN, "windows closed")
    sentence = (
        f"{closed} windows closed, at least {WINDOWS_MIN} are needed; the results have windows that end "
        f"{evidence.window_gap_s:.3g} s apart, so the span must be at least {span_needed_s(evidence):.4g} s long"
    )
    return _Part(False, Cause.SPAN_TOO_SHORT, closed, WINDOWS_MIN, "windows closed", sentence)


def span_needed_s(evidence: Evidence) -> float:
    """How long the span must be for enough windows to end in it, by the distance that was seen in the results."""
    return WINDOWS_MIN * evidence.window_gap_s


def span_too_short(evidence: Evidence) -> bool:
    """Whether too few windows closed because the span is too short, whatever the machine and the system do."""
    too_few = evidence.windows_closed is not None and evidence.windows_closed < WINDOWS_MIN
    return too_few and 0 < evidence.span_s < span_needed_s(evidence)


def _enough(n: int, code: Cause, least: int, what: str) -> _Part:
    return _Part(n >= least, code, n, least, what, f"{n} {what}, at least {least} are needed")


def _least_p50(evidence: Evidence) -> float:
    """The event-time p50 of the fastest sink, which a late driver would disturb most; microseconds.

    Latencies come with the answers, and a trial that ended early, or still runs, has none. How far the output is behind
    when a batch is committed then stands for them: no result of a batch came sooner after its event than that. 0 where
    nothing was committed either.
    """
    all_latencies = [sink.latency for sink in evidence.sinks] or [evidence.latencies]
    p50s = [one.event_time_us.p50 for one in all_latencies if one.event_time_us is not None]
    known = [p50 for p50 in p50s if p50 is not None]
    if known and len(known) == len(p50s):
        return min(known)
    return evidence.output_delay_s * US


CHECKS: tuple[tuple[str, CheckFunction], ...] = (
    ("driver", _driver),
    ("connected", _connected),
    ("backlog_trend", _backlog_trend),
    ("output_trend", _output_trend),
    ("latency_trend", _latency_trend),
    ("queue_bound", _queue_bound),
    ("answers", _answers),
    ("evidence", _evidence),
)
