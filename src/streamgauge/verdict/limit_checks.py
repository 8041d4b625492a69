"""The checks of a number against its limit: `connected`, `queue_bound`, `answers`, `evidence`, and users' limits."""

from __future__ import annotations

from typing import NamedTuple

from streamgauge.config.limits import BATCHES_MIN, BOUND_S_MIN, WINDOWS_MIN, ServiceLevelObjective
from streamgauge.core.formatting import format_us
from streamgauge.results.codes import Cause
from streamgauge.results.latency import PERCENTILES, Latencies, Latency
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.samples import observations_needed
from streamgauge.verdict.check_spec import CheckFunction, CheckSpec, Condition, combine, make_check, worst
from streamgauge.verdict.evidence import Evidence
from streamgauge.verdict.trend_checks import TREND_POINTS_MIN


def _connected(evidence: Evidence) -> Check:
    if evidence.sut_unobserved:
        return make_check(
            "connected", "invalid", Cause.PROGRESS_UNKNOWN, 1, 0, "rejected programs", evidence.sut_reason
        )
    reason = f": {evidence.sut_reason}" if evidence.sut_reason else ""
    died = Cause.DISK_FULL if evidence.sut_disk_full else Cause.SUT_DIED
    unit, sentence = "deaths", f"a process of the system under test died or does not answer{reason}"
    if evidence.sut_rejected:
        died, unit, sentence = Cause.NO_RESULTS, "rejected programs", evidence.sut_reason
    aborted = "reads of the system under test were aborted"
    retried = "tasks of the system under test were retried"
    parts = [
        Condition(evidence.sut_alive, died, 1, 0, unit, sentence),
        _no_faults(evidence.aborted_reads, Cause.READS_ABORTED, "aborted reads", aborted),
        _no_faults(evidence.retried_tasks, Cause.TASKS_RETRIED, "retried tasks", retried),
    ]
    if all(part.holds for part in parts):
        sentence = "no process died, no read was aborted, no task was retried"
        return make_check("connected", "ok", Cause.OK, 0, 0, "faults", sentence)
    return combine("connected", parts, "failed", shown=1)


def _no_faults(n: int, code: Cause, unit: str, what: str) -> Condition:
    return Condition(n == 0, code, n, 0, unit, f"{n} {what}")


CONNECTED = CheckSpec(
    "connected",
    _connected,
    "read the log that is named there, or else those in engine/ of the run folder, before you try another rate",
    by_slowness=False,
    advice_by_code={
        Cause.NO_RESULTS: "correct the program or its file, as the sentence says; what it printed: engine/program.log "
        "of the run folder",
        Cause.PROGRESS_UNKNOWN: "correct the program or its file, as the sentence says",
    },
)


def _queue_bound(evidence: Evidence) -> Check:
    reached, bound = evidence.backlog_max_s, evidence.bound_s
    if evidence.bound_cut_by_memory:
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


QUEUE_BOUND = CheckSpec(
    "queue_bound",
    _queue_bound,
    "lower the rate, or raise the bound (--bound) if this was one short stall",
    "give the queue more memory (--memory), or lower the rate or the payload",
)


NOTHING_DUE = "no result came and none was due, so there is no latency"


def _answers(evidence: Evidence) -> Check:
    verification = evidence.verification
    if verification is None or not verification.judged:
        reason = verification.sentence if verification is not None else ""
        code = Cause.ANSWERS_NOT_COMPARED if reason else Cause.NO_REFERENCE
        code = Cause.DISK_FULL if evidence.answers_disk_full else code
        return make_check("answers", "not_judged", code, None, 0, "rows", reason or "not judged")
    if verification.expected == 0 and verification.right:
        came = not evidence.sinks or any(sink.rows for sink in evidence.sinks)
        sentence = "no result was due, so no answer could be checked" if came else NOTHING_DUE
        return make_check("answers", "undecided", Cause.NO_RESULT_DUE, 0, 0, "rows", sentence)
    total = verification.fault_count
    in_words = ", ".join(f"{count:,} {kind}" for kind, count in verification.faults.items() if count)
    allowed = verification.allowed_in_words
    allowed = f", and {allowed} that the promised delivery guarantee allows" if allowed else ""
    sentence = (
        f"of {verification.expected:,} expected results: {in_words or 'all right'}{allowed}"
        f"{verification.wrong_columns_in_words}{_wrong_sinks(evidence)}"
    )
    if verification.right:
        return make_check("answers", "ok", Cause.OK, total, 0, "rows", sentence)
    return make_check("answers", "failed", Cause.WRONG_ANSWERS, total, 0, "rows", sentence)


def _wrong_sinks(evidence: Evidence) -> str:
    """The sinks with faults, if there are several sinks."""
    if len(evidence.sinks) < 2:
        return ""
    sinks = [(sink.name, sink.verification) for sink in evidence.sinks]
    wrong = [name for name, verified in sinks if verified is not None and verified.judged and not verified.right]
    silent = [sink.name for sink in evidence.sinks if sink.name in wrong and not sink.rows]
    nothing = f"; no result came on {', '.join(silent)}" if silent else ""
    right = f"right: {len(sinks) - len(wrong)} of {len(sinks)} sinks"
    return f" (wrong: {', '.join(wrong)}; {right}{nothing})" if wrong else ""


ADVICE_BUILT_IN = (
    "look at the examples in verification.json; the workload is built in, so the engine, its lowering or streamgauge "
    "is at fault: report it with verification.json and experiment.toml"
)
"""The advice for wrong answers to a workload that no user wrote."""

ANSWERS = CheckSpec(
    "answers",
    _answers,
    "correct the job first: verification.json has examples, and a rate with wrong answers means nothing",
    by_slowness=False,
)


def _evidence(evidence: Evidence) -> Check:
    windows, draining = evidence.windows_closed, "the span began while start-up backlog was still draining"
    parts = [
        _enough(evidence.batches, Cause.TOO_FEW_BATCHES, BATCHES_MIN, "batches"),
        Condition(not evidence.draining_at_start, Cause.START_BACKLOG, 1, 0, "", draining),
        _heard(evidence.silent_sinks),
    ]
    if windows is not None:
        parts.insert(0 if span_too_short(evidence) else 1, _windows(windows, evidence))
    return combine("evidence", parts, "undecided", shown=0)


def _heard(silent_sinks: tuple[str, ...]) -> Condition:
    sentence = f"no value of {', '.join(silent_sinks)} came in the span, so how late values are is not known"
    return Condition(not silent_sinks, Cause.NO_LATENCY, len(silent_sinks), 0, "sinks", sentence)


def _windows(closed: int, evidence: Evidence) -> Condition:
    if not span_too_short(evidence):
        return _enough(closed, Cause.TOO_FEW_WINDOWS, WINDOWS_MIN, "windows closed")
    sentence = (
        f"{closed} windows closed (minimum {WINDOWS_MIN}); the results have windows that end "
        f"{evidence.window_gap_s:.3g} s apart, so the span must be at least {span_needed_s(evidence):.4g} s long"
    )
    return Condition(False, Cause.SPAN_TOO_SHORT, closed, WINDOWS_MIN, "windows closed", sentence)


def span_needed_s(evidence: Evidence) -> float:
    """Seconds of span in which enough windows end, by the distance of windows in the results."""
    return WINDOWS_MIN * evidence.window_gap_s


def span_too_short(evidence: Evidence) -> bool:
    """Whether the span itself is too short for enough windows, on any machine and system.

    Not if batches are too few as well: then the system was slow, and a longer span may not help.
    """
    too_few = evidence.windows_closed is not None and evidence.windows_closed < WINDOWS_MIN
    return too_few and evidence.batches >= BATCHES_MIN and 0 < evidence.span_s < span_needed_s(evidence)


def _enough(n: int, code: Cause, least: int, what: str) -> Condition:
    return Condition(n >= least, code, n, least, what, f"{n} {what} (minimum {least})")


EVIDENCE = CheckSpec("evidence", _evidence)


def slo_check(level: ServiceLevelObjective) -> CheckFunction:
    """The check of a limit on every sink that has such a latency: a sink without windows has no closing delay."""

    def check(evidence: Evidence) -> Check:
        by_sink = {f"{sink.name}: ": sink.latency for sink in evidence.sinks} if len(evidence.sinks) > 1 else {}
        measured = {of: _measured(level, one) for of, one in (by_sink or {"": evidence.latencies}).items()}
        with_latency = {of: one for of, one in measured.items() if one.latency is not None}
        return worst([_sink_check(of, one) for of, one in (with_latency or {"": _Measured(None)}).items()])

    def _sink_check(of: str, measured: _Measured) -> Check:
        latency = measured.latency
        value: float | None = None if latency is None else getattr(latency, level.statistic)
        if latency is None or value is None:
            return _check_without_value(of, level, measured)
        sentence = f"{of}{level.text}: {measured.of_what}it is {format_us(value)}"
        state: CheckState = "ok"
        code = Cause.OK
        if value > level.limit_us:
            state, code = "failed", Cause.LIMIT_EXCEEDED
        elif latency.lower_bounds:
            state, code = "undecided", Cause.RESULTS_OUTSTANDING
            sentence += f" or more: {latency.lower_bounds} {measured.missing}"
        return make_check(level.name, state, code, value, level.limit_us, "us", f"{sentence}{measured.remark}")

    return check


class _Measured(NamedTuple):
    """The latency that is compared with a limit, and the words for it."""

    latency: Latency | None
    of_what: str = ""
    remark: str = ""
    missing: str = "results had not arrived"


def _measured(level: ServiceLevelObjective, latencies: Latencies) -> _Measured:
    """The latency for a limit.

    Event time of an update is that of its newest event, which a longer batch makes no later. So a limit on it applies
    to the wait of every event until it was counted.
    """
    until_counted = latencies.until_counted_us
    if level.kind != "event_time" or until_counted is None:
        return _Measured(latencies.by_kind(level.kind))
    newest_us = getattr(latencies.event_time_us, level.statistic, None)
    remark = "" if newest_us is None else f" (newest event of each update: {format_us(newest_us)})"
    return _Measured(until_counted, "until every event is counted, ", remark, "events were in no committed batch")


def _check_without_value(of: str, level: ServiceLevelObjective, measured: _Measured) -> Check:
    """Undecided, unless a lower percentile is already above the limit."""
    latency = measured.latency
    if latency is None:
        kind = "latency until counted" if level.kind == "until_counted" else level.kind.replace("_", " ")
        sentence = f"{of}{level.text}: no result had a {kind}"
        return make_check(level.name, "undecided", Cause.NO_LATENCY, None, level.limit_us, "us", sentence)
    seen, q = latency.effective_count, PERCENTILES.get(level.statistic)
    lower = {name: getattr(latency, name) for name, share in PERCENTILES.items() if q is not None and share < q}
    above = [(name, value) for name, value in lower.items() if value is not None and value > level.limit_us]
    if above:
        name, value = above[-1]
        what = f"{measured.of_what}{name.replace('_', '.')}"
        sentence = f"{of}{level.text}: {what} is already {format_us(value)}{measured.remark}"
        return make_check(level.name, "failed", Cause.LIMIT_EXCEEDED, value, level.limit_us, "us", sentence)
    if not latency.count:
        sentence = f"{of}{level.text}: {measured.of_what}it is {latency.note}{measured.remark}"
        if not latency.note:
            sentence = f"{of}{level.text}: no result came in the span, so there is no latency"
        return make_check(level.name, "undecided", Cause.NO_LATENCY, None, level.limit_us, "us", sentence)
    needed = "" if q is None else f" (minimum {observations_needed(q)})"
    sentence = f"{of}{level.text}: {seen} independent results are too few{needed}"
    return make_check(level.name, "undecided", Cause.TOO_FEW_RESULTS, None, level.limit_us, "us", sentence)
