"""The checks of a number against its limit: `connected`, `queue_bound`, `answers`, `evidence`, and users' limits."""

from typing import Any

from streamgauge.config.limits import BATCHES_MIN, BOUND_S_MIN, WINDOWS_MIN, ServiceLevelObjective
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.latency import PERCENTILES, Latencies
from streamgauge.results.verdict import CheckState, Finding, Remark
from streamgauge.stats.samples import observations_needed
from streamgauge.verdict.check_spec import CheckFunction, Condition, combine, worst
from streamgauge.verdict.evidence import Evidence
from streamgauge.verdict.trend_checks import TREND_POINTS_MIN


def check_connected(evidence: Evidence) -> Finding:
    reason, rejected = {"reason": evidence.sut_reason}, "rejected programs"
    if evidence.sut_unobserved:
        return Condition(False, Cause.PROGRESS_UNKNOWN, 1, 0, rejected, reason).finding("connected", "invalid")
    died = Cause.DISK_FULL if evidence.sut_disk_full else Cause.SUT_DIED
    parts = [
        Condition(evidence.sut_alive, Cause.NO_RESULTS, 1, 0, rejected, reason)
        if evidence.sut_rejected
        else Condition(evidence.sut_alive, died, 1, 0, "deaths", reason, Cause.SUT_DIED),
        Condition(evidence.aborted_reads == 0, Cause.READS_ABORTED, evidence.aborted_reads, 0, "aborted reads"),
        Condition(evidence.retried_tasks == 0, Cause.TASKS_RETRIED, evidence.retried_tasks, 0, "retried tasks"),
    ]
    if all(part.holds for part in parts):
        return Finding("connected", "ok", Cause.OK, 0, 0, "faults", (Remark(Detail.NO_FAULTS),))
    return combine("connected", parts, "failed", shown=1)


def check_queue_bound(evidence: Evidence) -> Finding:
    reached, bound, memory_s = evidence.backlog_max_s, evidence.bound_s, evidence.memory_full_s
    full_s = bound if memory_s is None else memory_s
    facts = {"by_memory": memory_s is not None, "steady": evidence.steady}

    def found(
        state: CheckState, code: Cause, value: float | None, limit: float = full_s, says: Detail | None = None
    ) -> Finding:
        return Condition(False, code, value, limit, "s", facts, says).finding("queue_bound", state)

    if evidence.bound_cut_by_memory:
        return found("invalid", Cause.QUEUE_CUT_BY_MEMORY, bound, BOUND_S_MIN)
    if memory_s is not None and memory_s < min(bound, BOUND_S_MIN):
        # Events in flight or retained for redelivery filled the queue, rather than waiting events.
        return found("invalid", Cause.DRIVER_MEMORY_FULL, memory_s, min(bound, BOUND_S_MIN))
    if not evidence.span_began and evidence.batches_ever < TREND_POINTS_MIN:
        return found("undecided", Cause.QUEUE_FULL_AT_START, None)
    if evidence.overflowed:
        return found("failed", Cause.QUEUE_FULL, max(reached, full_s))
    return found("ok" if reached < bound else "failed", Cause.QUEUE_FULL, reached, bound, Detail.BACKLOG_REACHED)


def check_answers(evidence: Evidence) -> Finding:
    verification = evidence.verification
    if verification is None or not verification.judged:
        reason = verification.sentence if verification is not None else ""
        says = Cause.ANSWERS_NOT_COMPARED if reason else Cause.NO_REFERENCE
        code = Cause.DISK_FULL if evidence.answers_disk_full else says
        return Condition(False, code, None, 0, "rows", {"reason": reason}, says).finding("answers", "not_judged")
    if verification.expected == 0 and verification.right:
        came = not evidence.sinks or any(sink.rows for sink in evidence.sinks)
        return Condition(False, Cause.NO_RESULT_DUE, 0, 0, "rows", {"came": came}).finding("answers", "undecided")
    facts = {
        "expected": verification.expected,
        "faults": {kind: count for kind, count in verification.faults.items() if count},
        "allowed": verification.allowed,
        "wrong_columns": verification.wrong_columns,
        **_wrong_sinks(evidence),
    }
    counted = Condition(False, Cause.WRONG_ANSWERS, verification.fault_count, 0, "rows", facts)
    return counted.finding("answers", "ok" if verification.right else "failed")


def _wrong_sinks(evidence: Evidence) -> dict[str, Any]:
    """The sinks with faults, and those of them that are silent, if there are several sinks."""
    sinks = evidence.sinks if len(evidence.sinks) > 1 else ()
    judged = [(sink, sink.verification) for sink in sinks if sink.verification is not None]
    wrong = [sink for sink, verified in judged if verified.judged and not verified.right]
    return {
        "wrong": tuple(sink.name for sink in wrong),
        "silent": tuple(sink.name for sink in wrong if not sink.rows),
        "right": len(sinks) - len(wrong),
        "sinks": len(sinks),
    }


def check_evidence(evidence: Evidence) -> Finding:
    batches, closed, silent = evidence.batches, evidence.windows_closed, evidence.silent_sinks
    parts = [
        Condition(batches >= BATCHES_MIN, Cause.TOO_FEW_BATCHES, batches, BATCHES_MIN, "batches"),
        Condition(not evidence.draining_at_start, Cause.START_BACKLOG, 1, 0, ""),
        Condition(not silent, Cause.NO_LATENCY, len(silent), 0, "sinks", {"sinks": silent}, Detail.SILENT_SINKS),
    ]
    if closed is not None:
        short = span_too_short(evidence)
        code = Cause.SPAN_TOO_SHORT if short else Cause.TOO_FEW_WINDOWS
        facts = {"gap_s": evidence.window_gap_s, "needed_s": span_needed_s(evidence)}
        windows = Condition(closed >= WINDOWS_MIN, code, closed, WINDOWS_MIN, "windows closed", facts)
        parts.insert(0 if short else 1, windows)
    return combine("evidence", parts, "undecided", shown=0)


def span_needed_s(evidence: Evidence) -> float:
    """Seconds of span in which enough windows end, by the distance of windows in the results."""
    return WINDOWS_MIN * evidence.window_gap_s


def span_too_short(evidence: Evidence) -> bool:
    """Whether the span itself is too short for enough windows, on any machine and system.

    Not if batches are too few as well: then the system was slow, and a longer span may not help.
    """
    too_few = evidence.windows_closed is not None and evidence.windows_closed < WINDOWS_MIN
    return too_few and evidence.batches >= BATCHES_MIN and 0 < evidence.span_s < span_needed_s(evidence)


def slo_check(level: ServiceLevelObjective) -> CheckFunction:
    """The check of a limit on every sink that has such a latency: a sink without windows has no closing delay."""

    def check(evidence: Evidence) -> Finding:
        several = len(evidence.sinks) > 1
        by_sink = {sink.name: sink.latency for sink in evidence.sinks} if several else {"": evidence.latencies}
        checks = [_level_check(level, sink, latencies) for sink, latencies in by_sink.items()]
        with_latency = [one for one in checks if one.remarks[0].code != Detail.NO_SUCH_LATENCY]
        # A limit that no sink has such a latency for is about none of them.
        return worst(with_latency or [_level_check(level, "", Latencies())])

    return check


def _level_check(level: ServiceLevelObjective, sink: str, latencies: Latencies) -> Finding:
    """The check of a limit on one sink. Without a value undecided, unless a lower percentile is already above it.

    Event time of an update is that of its newest event, which a longer batch makes no later. So a limit on it applies
    to the wait of every event until it was counted.
    """
    counted = latencies.until_counted_us if level.kind == "event_time" else None
    newest_us = getattr(latencies.event_time_us, level.statistic, None) if counted is not None else None
    latency = counted if counted is not None else latencies.by_kind(level.kind)
    facts = {"sink": sink, "level": level.text, "counted": counted is not None, "newest_us": newest_us}

    def found(state: CheckState, code: Cause, value: float | None, says: Detail | None = None, **more: Any) -> Finding:
        return Condition(False, code, value, level.limit_us, "us", facts | more, says).finding(level.name, state)

    if latency is None:
        return found("undecided", Cause.NO_LATENCY, None, Detail.NO_SUCH_LATENCY, kind=level.kind.replace("_", " "))
    value: float | None = getattr(latency, level.statistic)
    if value is not None and latency.lower_bounds and value <= level.limit_us:
        return found("undecided", Cause.RESULTS_OUTSTANDING, value, outstanding=latency.lower_bounds)
    if value is not None:
        return found("failed" if value > level.limit_us else "ok", Cause.LIMIT_EXCEEDED, value)
    q = PERCENTILES.get(level.statistic)
    lower = {name: getattr(latency, name) for name, share in PERCENTILES.items() if q is not None and share < q}
    above = [(name, value) for name, value in lower.items() if value is not None and value > level.limit_us]
    if above:
        name, value = above[-1]
        return found("failed", Cause.LIMIT_EXCEEDED, value, Detail.LOWER_PERCENTILE, lower=name.replace("_", "."))
    if not latency.count:
        says = Detail.LATENCY_UNKNOWN if latency.note else Detail.NO_RESULT_IN_SPAN
        return found("undecided", Cause.NO_LATENCY, None, says, note=latency.note)
    least = None if q is None else observations_needed(q)
    return found("undecided", Cause.TOO_FEW_RESULTS, None, n=latency.effective_count, least=least)
