"""The named checks of a verdict. Each takes the evidence of a trial and gives a number and its limit.

    driver         the driver kept the plan in time, clocks agree, the SUT did not wait      else invalid
    connected      no process of the SUT died; in the span no read aborted, no task retried  else not sustained
    backlog_trend  the backlog does not grow by more than 1 % of the rate                    else not sustained
    output_trend   results do not fall behind by more than 0.01 s per second                 else not sustained
    latency_trend  nothing shows that results are later by more than 0.01 s every second     else not sustained
    queue_bound    the backlog stayed below its bound, and the bound was 10 s or more        else not sustained, invalid
    answers        verification found nothing wrong                                          else not sustained
    evidence       20 batches, 5 windows closed, start-up backlog gone                       else undecided
    (the user's limits, each by its own name, such as event_time_p99)                        else not sustained

A trend is ok if its whole interval is at most the limit, failed if all of it is above, else undecided. A quantity that
first falls and then surely grows is also undecided, whatever its straight line says.

Sampling. An output frontier that moves by windows is a staircase, so only the moments at which it moved are
observations (with Spark, one per batch). If an engine commits everything before it reads on, the output is sampled at
the start of a batch, like the backlog: at commits, the lag contains the length of each batch, which varies even if
nothing waits. Growing batches are not a backlog while they end within their interval. So at commits the output fails
only on proven growth, and is undecided if batches seem to grow and would soon fill their interval. The latency of the
results, from the delivery of their last event, shows an engine that holds results back inside committed batches. There
only proven growth counts.

Few samples. With 5 to 8 steps, neither a block length nor the shape of the noise can be estimated: a percentile
bootstrap of six points covers 81 % instead of 95 %. The interval is then Student's t with n - 2 degrees of freedom. It
takes closing delays of different windows as independent, which holds if windows are longer than batches. It is wide:
in simulation, a slope of 0 passes in nine of ten trials if closing delays have a standard deviation of 40 ms (7
windows of 4 s) or 150 ms (15 windows). The interval narrows with span^1.5, from which the advice is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamgauge.config.thresholds import BATCHES_MIN, BOUND_S_MIN, WINDOWS_MIN
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_us, share_beside
from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.bootstrap import Interval, slope_interval
from streamgauge.verdict.evidence import Evidence, Samples

PLAN_SHARE_MIN = 0.99
SCHEDULE_DELAY_US_MAX = 100_000
DELAY_SHARE_OF_LATENCY = 0.02
CORE_WAIT_US_MAX = 10_000.0
BUSY_SHARE_MAX = 0.5
"""Share of the span in which one end of the transport may be busy. Above it, the trial measures the driver. A driver
that keeps up is busy for a few percent: a delivery takes 3 ns per event."""
BUSY_SHARE_MAX_IF_SLOW = 0.25
"""The same for a slow SUT, which might have kept up without waiting for the driver."""
STALL_SHARE_MAX = 0.01
"""Share of the span in which the recorder may stand still without moving a percentile up to the 99th."""
NOTHING_DUE = "no result came and none was due, so there is no latency"
BACKLOG_SLOPE_SHARE_MAX = 0.01
OUTPUT_SLOPE_MAX = 0.01
TREND_POINTS_MIN = 5

CheckFunction = Callable[[Evidence], Check]
ADVICE_OTHER = "lower the rate, or change a setting of the engine"


class CheckSpec(NamedTuple):
    """A named check: its function, and what to do if it fails or makes the trial invalid.

    `by_slowness`: whether a slow system can fail it. If so, background load or the driver may be the cause instead.
    """

    name: str
    check: CheckFunction
    advice_failed: str = ADVICE_OTHER
    advice_invalid: str = ADVICE_OTHER
    by_slowness: bool = True


def make_check(
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
    """One condition of a check that has several."""

    holds: bool
    code: Cause
    value: float
    limit: float
    unit: str
    sentence: str


def _combine(name: str, parts: list[_Part], bad_state: CheckState, shown: int) -> Check:
    """Combines the parts of a check.

    The first failing part gives number and code, all failing parts the sentence. If none fails, part `shown` does.
    """
    bad = [part for part in parts if not part.holds]
    part = bad[0] if bad else parts[shown]
    sentence = "; ".join(one.sentence for one in bad) if bad else part.sentence
    state, code = (bad_state, part.code) if bad else ("ok", Cause.OK)
    return make_check(name, state, code, part.value, part.limit, part.unit, sentence)


def _driver(evidence: Evidence) -> Check:
    if evidence.driver_reason:
        sentence = f"a process of the driver failed: {evidence.driver_reason}"
        code = Cause.DISK_FULL if evidence.driver_disk_full else Cause.DRIVER_FAILED
        return make_check("driver", "invalid", code, 1, 0, "failures", sentence)
    busy = _busy_parts(evidence, BUSY_SHARE_MAX)
    parts = [_clock(evidence), _plan(evidence), _schedule_delay(evidence), *busy, _standstill(evidence)]
    if not math.isnan(evidence.core_wait_us):
        return _combine("driver", [*parts, _starvation(evidence)], "invalid", shown=2)
    check = _combine("driver", parts, "invalid", shown=2)
    return check.model_copy(update={"sentence": f"{check.sentence}; its wait for a core is unknown"})


def _plan(evidence: Evidence) -> _Part:
    planned, offered = np.asarray(evidence.planned_per_s, float), np.asarray(evidence.offered_per_s, float)
    loaded = planned > 0
    if not loaded.any():
        raise ValueError("no second of the plan was recorded")
    share = float((offered[loaded] / planned[loaded]).min())
    offered_share = share_beside(share, PLAN_SHARE_MIN, 1)
    sentence = f"in the worst second the driver offered {offered_share} of the plan (minimum {PLAN_SHARE_MIN:.0%})"
    return _Part(share >= PLAN_SHARE_MIN, Cause.PLAN_NOT_KEPT, share, PLAN_SHARE_MIN, "share of plan", sentence)


def _schedule_delay(evidence: Evidence) -> _Part:
    limit = max(SCHEDULE_DELAY_US_MAX, DELAY_SHARE_OF_LATENCY * _least_p50(evidence))
    delay = evidence.schedule_delay_us_p99
    sentence = f"events became available {format_us(delay)} late (p99, limit {format_us(limit)})"
    return _Part(delay <= limit, Cause.SCHEDULE_DELAY, delay, limit, "us", sentence)


def _starvation(evidence: Evidence) -> _Part:
    wait, limit = evidence.core_wait_us, CORE_WAIT_US_MAX
    sentence = f"a driver process waited {format_us(wait)} for a core at each wake-up (limit {format_us(limit)})"
    return _Part(wait <= limit, Cause.DRIVER_STARVED, wait, limit, "us", sentence)


def _clock(evidence: Evidence) -> _Part:
    negative = evidence.negative_latencies
    sentence = f"{negative} latencies are negative, so a clock is wrong"
    return _Part(negative == 0, Cause.NEGATIVE_LATENCY, negative, 0, "results", sentence)


_BUSY = (
    (Cause.DELIVERY_BUSY, "the generators delivered events for {share} of the time"),
    (Cause.RECORDER_BUSY, "the recorder processed results for {share} of the time"),
    (Cause.RECORDER_DISK_BUSY, "the recorder waited for its disk for {share} of the time"),
)


def _busy_parts(evidence: Evidence, limit: float, condition: str = "") -> list[_Part]:
    """What the SUT may have waited for: the driver's deliveries, its recorder, and the recorder's disk."""
    shares = (evidence.delivery_share, evidence.receive_share, evidence.disk_share)
    return [
        _Part(
            share <= limit, code, share, limit, "share of time",
            f"{sentence.format(share=share_beside(share, limit))} (limit {limit:.0%}{condition})",
        )
        for share, (code, sentence) in zip(shares, _BUSY, strict=True)
    ]  # fmt: skip


def driver_bottleneck(evidence: Evidence) -> Check | None:
    """The check `driver` if a slow SUT may have waited for the driver; else None."""
    parts = _busy_parts(evidence, BUSY_SHARE_MAX_IF_SLOW, " if the system did not keep up")
    return None if all(part.holds for part in parts) else _combine("driver", parts, "invalid", shown=0)


def _standstill(evidence: Evidence) -> _Part:
    stall_s, limit = evidence.recorder_stall_s, STALL_SHARE_MAX
    share = stall_s / evidence.span_s if evidence.span_s else 0.0
    sentence = (
        f"the recorder stood still for {stall_s:.1f} s of {evidence.span_s:.0f} s (limit {limit:.0%}), so results "
        "that arrived meanwhile have late timestamps"
    )
    return _Part(share <= limit, Cause.RECORDER_STALLED, share, limit, "share of time", sentence)


def _connected(evidence: Evidence) -> Check:
    reason = f": {evidence.sut_reason}" if evidence.sut_reason else ""
    died = Cause.DISK_FULL if evidence.sut_disk_full else Cause.SUT_DIED
    sentence = f"a process of the system under test died or does not answer{reason}"
    aborted = "reads of the system under test were aborted"
    retried = "tasks of the system under test were retried"
    parts = [
        _Part(evidence.sut_alive, died, 1, 0, "deaths", sentence),
        _no_faults(evidence.aborted_reads, Cause.READS_ABORTED, "aborted reads", aborted),
        _no_faults(evidence.retried_tasks, Cause.TASKS_RETRIED, "retried tasks", retried),
    ]
    if all(part.holds for part in parts):
        sentence = "no process died, no read was aborted, no task was retried"
        return make_check("connected", "ok", Cause.OK, 0, 0, "faults", sentence)
    return _combine("connected", parts, "failed", shown=1)


def _no_faults(n: int, code: Cause, unit: str, what: str) -> _Part:
    return _Part(n == 0, code, n, 0, unit, f"{n} {what}")


def _backlog_trend(evidence: Evidence) -> Check:
    # A second of waiting event time is a second of the rate, whatever the rate is at that moment.
    return worst(
        [
            _trend("backlog_trend", backlog, BACKLOG_SLOPE_SHARE_MAX, evidence, _BACKLOG, "of the rate")
            for backlog in evidence.backlog
        ]
    )


INGESTED_SHARE_MIN = 0.2
"""Least share of the offered events. Neither a small queue nor a late generator explains less."""


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


def _output_trend(evidence: Evidence) -> Check:
    checks = [_output_check(steps(lag), evidence, _OUTPUT) for lag in evidence.output_lag]
    at_commits = [_commit_check(steps(lag), evidence, _OUTPUT_AT_COMMITS) for lag in evidence.output_lag_at_commits]
    return worst([*checks, *(check for check in at_commits if check is not None)])


def _commit_check(lag: Samples, evidence: Evidence, wording: _SlopeWording) -> Check | None:
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


def _output_check(lag: Samples, evidence: Evidence, wording: _SlopeWording) -> Check:
    return _trend("output_trend", lag, OUTPUT_SLOPE_MAX, evidence, wording, "of the time")


def _latency_trend(evidence: Evidence) -> Check:
    if not evidence.latency:
        sentence = "not judged: there are no latencies at a steady rate"
        return make_check("latency_trend", "ok", Cause.OK, None, OUTPUT_SLOPE_MAX, "s/s", sentence)
    return worst([_latency_check(latency, evidence) for latency in evidence.latency])


def _latency_check(latency: Samples, evidence: Evidence) -> Check:
    """Fails only on proven growth beyond the drift: the trends before have already shown that nothing waits."""
    trend = _trend("latency_trend", latency, OUTPUT_SLOPE_MAX, evidence, _LATENCY, "of the time")
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


def worst(checks: list[Check]) -> Check:
    """The worst of one check on several queries or sinks: failed before undecided before the largest number."""
    for state in ("failed", "undecided"):
        if bad := [check for check in checks if check.state == state]:
            return bad[0]
    return max(checks, key=lambda check: check.value if check.value is not None else -np.inf)


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


class _SlopeWording(NamedTuple):
    """The code of a slope above its limit, and the words for a positive and a negative slope."""

    code: Cause
    more: str
    less: str

    def by(self, slope: float) -> str:
        # Rounded first, so that a printed 0 counts as positive.
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
        sentence = f"{of}{n} observations are too few for a trend (minimum {TREND_POINTS_MIN})"
        return make_check(name, "undecided", Cause.TOO_FEW_OBSERVATIONS, None, limit, "s/s", sentence)
    interval = slope_interval(samples.time_s, samples.value, evidence.confidence)
    sentence = (
        f"{of}{wording.by(interval.estimate)} {of_what} ({interval.low:+.2%} to {interval.high:+.2%}, "
        f"{interval.confidence:.1%} interval, {n} observations), limit {limit:.0%}"
    )
    state = _trend_state(interval, limit)
    code = {"ok": Cause.OK, "failed": wording.code}.get(state, Cause.TREND_UNDECIDED)
    if state == "ok" and (later := _later_half(samples, evidence.confidence)).low > limit:
        state, code = "undecided", Cause.TREND_TURNED
        sentence += f"; but in the later half, {wording.by(later.estimate)} (at least {later.low:.2%})"
    return make_check(name, state, code, interval.estimate, limit, "s/s", sentence, interval)


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
        sentence = f"memory cut the queue to {bound:.3g} s of the rate (minimum {BOUND_S_MIN:.0f} s)"
        return make_check("queue_bound", "invalid", Cause.QUEUE_CUT_BY_MEMORY, bound, BOUND_S_MIN, "s", sentence)
    if evidence.out_of_memory:
        least, waited = min(bound, BOUND_S_MIN), evidence.memory_full_s
        sentence = (
            f"the driver's memory was full while {waited:.3g} s of event time waited (minimum {least:.3g} s), because "
            "events in flight or retained for redelivery filled the rest"
        )
        return make_check("queue_bound", "invalid", Cause.DRIVER_MEMORY_FULL, waited, least, "s", sentence)
    if not evidence.span_began and evidence.batches_ever < TREND_POINTS_MIN:
        sentence = (
            f"the queue of {bound:.3g} s was full before the measured span, when the engine had hardly begun to read"
        )
        return make_check("queue_bound", "undecided", Cause.QUEUE_FULL_AT_START, None, bound, "s", sentence)
    if evidence.overflowed:
        sentence = f"the queue was full: it holds {bound:.3g} s of event time"
        return make_check("queue_bound", "failed", Cause.QUEUE_FULL, max(reached, bound), bound, "s", sentence)
    sentence = f"the backlog reached {reached:.3g} s of the rate (limit {bound:.3g} s)"
    if reached < bound:
        return make_check("queue_bound", "ok", Cause.OK, reached, bound, "s", sentence)
    return make_check("queue_bound", "failed", Cause.QUEUE_FULL, reached, bound, "s", sentence)


def _answers(evidence: Evidence) -> Check:
    verification = evidence.verification
    if verification is None or not verification.judged:
        reason = verification.sentence if verification is not None else ""
        code = Cause.ANSWERS_NOT_COMPARED if reason else Cause.NO_REFERENCE
        code = Cause.DISK_FULL if evidence.answers_disk_full else code
        return make_check("answers", "not_judged", code, None, 0, "rows", reason or "not judged")
    if verification.expected == 0 and verification.right:
        sentence = NOTHING_DUE if _nothing_came(evidence) else "no result was due, so no answer could be checked"
        return make_check("answers", "undecided", Cause.NO_RESULT_DUE, 0, 0, "rows", sentence)
    total = verification.fault_count
    in_words = ", ".join(f"{count:,} {kind}" for kind, count in verification.faults.items() if count)
    sentence = f"of {verification.expected:,} expected results: {in_words or 'all right'}{_wrong_sinks(evidence)}"
    if verification.right:
        return make_check("answers", "ok", Cause.OK, total, 0, "rows", sentence)
    return make_check("answers", "failed", Cause.WRONG_ANSWERS, total, 0, "rows", sentence)


def _nothing_came(evidence: Evidence) -> bool:
    return bool(evidence.sinks) and not any(sink.rows for sink in evidence.sinks)


def _wrong_sinks(evidence: Evidence) -> str:
    """The sinks with faults, if there are several sinks."""
    if len(evidence.sinks) < 2:
        return ""
    sinks = [(sink.name, sink.verification) for sink in evidence.sinks]
    wrong = [name for name, verified in sinks if verified is not None and verified.judged and not verified.right]
    return f" (wrong: {', '.join(wrong)}; right: {len(sinks) - len(wrong)} of {len(sinks)} sinks)" if wrong else ""


def _evidence(evidence: Evidence) -> Check:
    windows, draining = evidence.windows_closed, "the span began while start-up backlog was still draining"
    parts = [
        _enough(evidence.batches, Cause.TOO_FEW_BATCHES, BATCHES_MIN, "batches"),
        _Part(not evidence.draining_at_start, Cause.START_BACKLOG, 1, 0, "", draining),
    ]
    if windows is not None:
        parts.insert(0 if span_too_short(evidence) else 1, _windows(windows, evidence))
    return _combine("evidence", parts, "undecided", shown=0)


def _windows(closed: int, evidence: Evidence) -> _Part:
    if not span_too_short(evidence):
        return _enough(closed, Cause.TOO_FEW_WINDOWS, WINDOWS_MIN, "windows closed")
    sentence = (
        f"{closed} windows closed (minimum {WINDOWS_MIN}); the results have windows that end "
        f"{evidence.window_gap_s:.3g} s apart, so the span must be at least {span_needed_s(evidence):.4g} s long"
    )
    return _Part(False, Cause.SPAN_TOO_SHORT, closed, WINDOWS_MIN, "windows closed", sentence)


def span_needed_s(evidence: Evidence) -> float:
    """Seconds of span in which enough windows end, by the distance of windows in the results."""
    return WINDOWS_MIN * evidence.window_gap_s


def span_too_short(evidence: Evidence) -> bool:
    """Whether the span itself is too short for enough windows, on any machine and system.

    Not if batches are too few as well: then the system was slow, and a longer span may not help.
    """
    too_few = evidence.windows_closed is not None and evidence.windows_closed < WINDOWS_MIN
    return too_few and evidence.batches >= BATCHES_MIN and 0 < evidence.span_s < span_needed_s(evidence)


def _enough(n: int, code: Cause, least: int, what: str) -> _Part:
    return _Part(n >= least, code, n, least, what, f"{n} {what} (minimum {least})")


def _least_p50(evidence: Evidence) -> float:
    """The event-time p50 of the fastest sink in microseconds, which a late driver disturbs most.

    A trial that ended early, or still runs, has no latencies yet. The output lag at commits then stands for them: no
    result of a batch came sooner. 0 if nothing was committed.
    """
    latencies = [sink.latency for sink in evidence.sinks] or [evidence.latencies]
    p50s = [one.event_time_us.p50 for one in latencies if one.event_time_us is not None]
    values = [p50 for p50 in p50s if p50 is not None]
    if values and len(values) == len(p50s):
        return min(values)
    return evidence.output_delay_s * US


CHECKS: tuple[CheckSpec, ...] = (
    CheckSpec(
        "driver",
        _driver,
        advice_invalid="close other processes, separate the driver's cores (--isolation pinned), or lower the rate",
    ),
    CheckSpec(
        "connected",
        _connected,
        "read the engine's log in engine/ of the run folder before you try another rate",
        by_slowness=False,
    ),
    CheckSpec(
        "backlog_trend", _backlog_trend, "lower the rate; `streamgauge sustain` finds the highest sustained rate"
    ),
    CheckSpec("output_trend", _output_trend, "lower the rate: the engine reads in time but its results fall behind"),
    CheckSpec(
        "latency_trend",
        _latency_trend,
        "lower the rate, or check what grows in the job's state: its results come later and later",
    ),
    CheckSpec(
        "queue_bound",
        _queue_bound,
        "lower the rate, or raise the bound (--bound) if this was one short stall",
        "give the queue more memory (--memory), or lower the rate or the payload",
    ),
    CheckSpec(
        "answers",
        _answers,
        "correct the job first: verification.json has examples, and a rate with wrong answers means nothing",
        by_slowness=False,
    ),
    CheckSpec("evidence", _evidence),
)
"""The named checks in the order of the report. A new check is one function and its entry here."""
