"""Collects the evidence of a verdict from a trial's record."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streamgauge.config.limits import BOUND_S_MIN
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics import interference, resources
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord, within
from streamgauge.preflight.resolved_experiment import ResolvedExperiment, longest_slide_us
from streamgauge.verdict.driver_check import SCHEDULE_DELAY_US_MAX
from streamgauge.verdict.evidence import Evidence, Samples, Work
from streamgauge.verification.sink_comparison import VerificationResult

DRAINING_FACTOR = 2.0
"""The span began too early if the backlog at its first deliveries is this many times that at its last ones."""
DRAINING_FLOOR_S = 1.0
INTERVALS_MIN = 4
"""Batch intervals before the ingested share says anything."""
LATE_INTERVALS = 1.1
"""A batch that covers more intervals than this came late. Chunks are up to a twentieth of an interval."""
Pair = tuple[Any, Any]


def collect_evidence(
    resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float, verified: VerificationResult | None = None
) -> Evidence:
    """The evidence of a trial. Without `verified` the answers are not judged, and no limit on latencies is."""
    evidence = _of_record(resolved, record, rate_per_s)
    return evidence if verified is None else _with_answers(evidence, resolved, record, verified)


def _of_record(resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float) -> Evidence:
    """The evidence without the answers."""
    trial_log, from_us, until_us = record.trial_log, record.spans.measured_from_us, record.measured_until
    planned, offered = _offered_in_time(record)
    backlogs = backlogs_of(record)
    bound_s, cut = resolved.bound_s(rate_per_s)
    user_job, steady = not resolved.workload.operators_known, resolved.experiment.load.profile == "constant"
    return Evidence(
        planned_per_s=planned.astype(float),
        offered_per_s=offered.astype(float),
        schedule_delay_us_p99=resources.schedule_delay(record).p99,
        driver_reason=record.driver_failed,
        driver_silent=record.driver_silent,
        driver_disk_full=record.disk_full,
        limit_reached=record.limit_reached,
        core_wait_us=resources.core_wait_us(record),
        sut_alive=not record.engine_failed,
        sut_reason=record.engine_failed,
        sut_disk_full=record.engine_disk_full,
        sut_rejected=record.engine_rejected,
        sut_unobserved=record.engine_unobserved,
        backlog=backlogs,
        output_lag=_output_lags(record),
        # Where the rate varies, more load makes longer batches, and their length is part of the lag.
        output_lag_at_commits=tuple(
            samples_of(within(part.output_lags(), record.spans), about)
            for part, about in _queries(record)
            if steady and part.sinks and part.output_lags_at_reads() is not None
        ),
        work=_work(record, resolved),
        steady=steady,
        interval_s=resolved.interval_s,
        output_delay_s=min((float(np.median(lags)) for _, lags in _at_commits(record) if lags.size), default=0.0),
        backlog_max_s=max(float(each.value.max(initial=0.0)) for each in backlogs),
        overflowed=trial_log.overflowed,
        memory_full_s=None if trial_log.memory_full_us is None else trial_log.memory_full_us / US,
        span_began=record.offered_until() > from_us or not trial_log.overflowed,
        bound_s=bound_s,
        bound_cut_by_memory=cut and bound_s < BOUND_S_MIN,
        verification=None,
        batches=batches_between(trial_log, from_us, record.spans.measured_to_us),
        ingested_share=ingested_share(record, max(resolved.interval_s, resolved.unseen_s)),
        batches_ever=batches_between(trial_log, record.spans.start_us, FAR_FUTURE_US),
        # A user job may end a read early, for example by `limit`. After the span an engine may be stopped.
        aborted_reads=0 if user_job else sum(from_us <= when < until_us for when in trial_log.aborted_us),
        retried_tasks=trial_log.retried_tasks(from_us, until_us, as_a_rule=user_job),
        draining_at_start=draining_at_start(record),
        interrupted=record.interrupted,
        user_job=user_job,
        delivery_share=resources.share_of_span(record, trial_log.delivering),
        receive_share=resources.share_of_span(record, trial_log.receiving),
        disk_share=resources.share_of_span(record, trial_log.writing),
        recorder_stall_s=resources.stood_still_us(record) / US,
        span_s=max(0, until_us - from_us) / US,
        background_share=interference.background_share(record),
        background_burst_share=interference.background_burst_share(record),
    )


def _with_answers(
    evidence: Evidence, resolved: ResolvedExperiment, record: TrialRecord, verified: VerificationResult
) -> Evidence:
    """The evidence with what the verification of the answers shows."""
    of_sinks = (sink.latencies.seconds for sink in verified.sinks)
    # Whether every result carries the delivery time of its last event.
    from_delivery = all(_count(seconds.processing_time) >= _count(seconds.event_time) for seconds in of_sinks)
    return replace(
        evidence,
        verification=verified.verification,
        windows_closed=verified.windows_closed,
        window_gap_s=verified.window_gap_us / US,
        sinks=verified.results,
        negative_latencies=verified.negatives,
        latency=_latencies(verified, record, from_delivery) if evidence.steady else (),
        latency_drift_s=0.0 if from_delivery else _commit_gap_s(record),
        silent_sinks=() if resolved.engine.has_batch_ids else _silent_sinks(record, verified),
        latencies=verified.slowest.latencies.latencies,
        levels=resolved.limits,
    )


def ingested_share(record: TrialRecord, interval_s: float) -> float:
    """Events delivered to every reader over offered events.

    1 while the system had too little time: a fresh engine in its warm-up, and any engine for a few batch intervals, or
    a few times as long as a read may be unseen. `interval_s`: the longer of both.
    """
    trial_log, until = record.trial_log, record.offered_until()
    starting = until <= record.spans.measured_from_us and not record.earlier_trials
    offered = trial_log.running.offered_events
    if starting or not offered or until - record.spans.start_us < INTERVALS_MIN * interval_s * US:
        return 1.0
    return trial_log.running.taken_events() / offered


def backlogs_of(record: TrialRecord) -> tuple[Samples, ...]:
    """The backlog of every query, in seconds of event time: each reads at its own pace."""
    backlogs = [samples_of(_with_open_backlog(part, record), about) for part, about in _queries(record)]
    return tuple(backlogs) or (Samples(np.zeros(0), np.zeros(0)),)


def _queries(record: TrialRecord) -> list[tuple[TrialLog, str]]:
    """The log of every query, and the names of its sinks if there are several queries."""
    parts = record.trial_log.by_query()
    return [(part, ", ".join(part.sinks) if len(parts) > 1 else "") for part in parts]


def _with_open_backlog(trial_log: TrialLog, record: TrialRecord) -> Pair:
    """The samples of the measured span.

    An engine that stopped reading leaves no sample. So if more waits at the end than at any delivery, the end is one
    more sample: the next delivery would have found at least as much.
    """
    times, waits = within(trial_log.backlog_waits(), record.spans)
    end_us = _seen_until(record)
    waiting = trial_log.waiting_at(end_us)
    if times.size and waiting > waits.max():
        return np.append(times, end_us), np.append(waits, waiting)
    return times, waits


def _with_open_lag(trial_log: TrialLog, record: TrialRecord) -> Pair:
    """The samples of the measured span and the lag at its end; `trend_checks.steps` decides whether the end counts.

    At reads the end is added only if it is the largest lag, as for the backlog.
    """
    end_us, at_reads = _seen_until(record), trial_log.output_lags_at_reads()
    times, lags = within(trial_log.output_lags() if at_reads is None else at_reads, record.spans)
    if not times.size or times[-1] >= end_us:
        return times, lags
    behind = trial_log.lag_at(end_us)
    if at_reads is not None and behind <= lags.max():
        return times, lags
    return np.append(times, end_us), np.append(lags, behind)


def _seen_until(record: TrialRecord) -> int:
    """The end of the measurement so far: events that were not offered yet cannot wait."""
    return min(record.measured_until, record.offered_until())


def _output_lags(record: TrialRecord) -> tuple[Samples, ...]:
    """The output lag of every query. A sink without results gets one without samples, which stays undecided."""
    parts = _queries(record)
    served = {sink for part, _ in parts for sink in part.sinks}
    silent = [sink for sink in record.trial_log.sinks if sink not in served]
    several = len(record.trial_log.sinks) > 1
    lags = [samples_of(_with_open_lag(part, record), about if several else "") for part, about in parts if part.sinks]
    return tuple(lags) + tuple(Samples(np.zeros(0), np.zeros(0), sink if several else "") for sink in silent)


def _work(record: TrialRecord, resolved: ResolvedExperiment) -> tuple[Work, ...]:
    """The batches of every query that reads on only after a commit."""
    return tuple(
        _work_of(part, record, resolved, about)
        for part, about in _queries(record)
        if part.output_lags_at_reads() is not None
    )


def busy_share(resolved: ResolvedExperiment, record: TrialRecord) -> float | None:
    """The share of the time that batches need, of the busiest query.

    None without batches or their interval (batches back to back fill the time at any rate), or if the engine reads on
    before it commits, or if results belong to no batches.
    """
    works = _work(record, resolved) if resolved.engine.has_batch_ids and resolved.interval_s else ()
    return max((share for one in works if (share := one.estimated_share) is not None), default=None)


def _work_of(trial_log: TrialLog, record: TrialRecord, resolved: ResolvedExperiment, about: str) -> Work:
    """The batches that end in the span.

    A batch covers the event time since the end of the one before. It is busy from its end in event time to its commit,
    which the driver sees without the engine's help. So the time before its first read counts, and so does the age of
    events that the batch left waiting. A batch without reads is busy since the commit before it, and covers nothing.

    An engine that stopped commits no batch. So if more event time is uncommitted at the end than just before any
    commit, that time counts as the last batch's. An engine that does not wait for its interval may go on working after
    a commit. So the time until the next batch counts as busy if that batch came late.
    """
    slide_us, running = longest_slide_us(resolved.flow) or 0, trial_log.running
    committed = sorted((key, batch) for key, batch in running.batches.items() if batch.committed_us)
    rows, end_us, last_us = [], trial_log.plan.start_us, trial_log.plan.start_us
    for key, batch in committed:
        before_us, end_us = end_us, max(end_us, running.reached_by(key)) if batch.read_us else end_us
        since_us = end_us if batch.read_us else last_us
        rows.append((end_us, batch.committed_us - since_us, end_us - before_us, batch.committed_us))
        last_us = batch.committed_us
    batch_ends, busy, covered, commits = np.array(rows, np.int64).reshape(-1, 4).T
    results_until = np.array([trial_log.plan.start_us, *(batch.results_until_us for _, batch in committed)])
    slides = np.diff(np.maximum.accumulate(results_until) // slide_us) if slide_us else np.zeros(commits.size)
    late = np.append(covered[1:] > LATE_INTERVALS * resolved.interval_s * US, False)[: covered.size]
    until_next = np.maximum(0, np.append(batch_ends[1:], commits[-1:]) - commits)
    figures = np.array([(busy + late * until_next) / US, covered / US, slides])
    ends, (busy_s, covered_s, closed) = within((batch_ends, figures), record.spans)
    open_s = (_seen_until(record) - ends[-1]) / US if ends.size else 0.0
    if open_s > (covered_s + busy_s).max(initial=0.0):
        busy_s[-1] += open_s
    return Work(busy_s, covered_s, closed, slide_us / US, about)


def _commit_gap_s(record: TrialRecord) -> float:
    """Median seconds between commits in the span, of the query with the longest; the whole span without two commits."""
    whole = record.spans.measured_to_us - record.spans.measured_from_us
    gaps = (float(np.median(np.diff(times))) if times.size > 1 else whole for times, _ in _at_commits(record))
    return max(gaps, default=whole) / US


def _at_commits(record: TrialRecord) -> Iterator[Pair]:
    """The output lag in the measured span of every query that serves a sink."""
    return (within(part.output_lags(), record.spans) for part in record.trial_log.by_query() if part.sinks)


def _count(histograms: dict[int, Histogram]) -> int:
    return sum(each.count for each in histograms.values())


def _latencies(verified: VerificationResult, record: TrialRecord, from_delivery: bool) -> tuple[Samples, ...]:
    """The mean latency of every sink by second of event time, without seconds with few results.

    It counts from the delivery if that is known. Counted from the event it drifts: windows of 4 s and batches of 1.4 s
    shift by 0.2 s per window, so latency grows by 4.5 % of the time until it drops by a batch.
    """
    samples = []
    for sink in verified.sinks:
        seconds = sink.latencies.seconds
        histograms = seconds.processing_time if from_delivery else seconds.event_time
        by_second = {second: each for second, each in histograms.items() if each.count}
        least = max((each.count for each in by_second.values()), default=0) / 2
        full = {second: each.mean for second, each in by_second.items() if each.count >= least}
        times = np.array(sorted(full), float) - record.spans.measured_from_us / US
        means = np.array([full[second] for second in sorted(full)], float) / US
        samples.append(Samples(times, means, sink.name if len(verified.sinks) > 1 else ""))
    return tuple(samples)


def _offered_in_time(record: TrialRecord) -> tuple[np.ndarray, np.ndarray]:
    """(planned, offered in time) by second of the measured span, up to the end of the driver's duty.

    The last chunk of a trial that ended early or still runs is not due yet. Generators that stop at a full queue are
    not late either: the SUT is the cause.
    """
    trial_log, low, end = record.trial_log, record.spans.measured_from_us, record.spans.measured_to_us
    until = record.offered_until()
    if not trial_log.overflowed:
        due = (record.deadline_us or end) - SCHEDULE_DELAY_US_MAX - trial_log.running.chunk_us_max
        until = max(until, due)
    if min(until, end) <= low:
        return np.zeros(0), np.zeros(0)
    return trial_log.events_in_time(low, min(until, end), SCHEDULE_DELAY_US_MAX)


def _silent_sinks(record: TrialRecord, verified: VerificationResult) -> tuple[str, ...]:
    """Sinks of updates without a value in the span. Without batches only last values are compared, which may come late.

    So an engine could keep its values until the load ends, and no latency would show it.
    """
    low_us, high_us = record.spans.measured_from_us, record.measured_until
    heard = {
        commit.sink for commit in record.trial_log.commits if commit.rows and low_us <= commit.committed_us < high_us
    }
    return tuple(sink.name for sink in verified.sinks if sink.kind == "update" and sink.name not in heard)


def samples_of(pair: tuple[np.ndarray, np.ndarray], about: str = "") -> Samples:
    times, values = pair
    start = times[0] if len(times) else 0
    return Samples((times - start) / US, values.astype(float), about)


def batches_between(trial_log: TrialLog, from_us: int, to_us: int) -> int:
    """Batches committed from `from_us` to `to_us`, of the sink with the fewest."""
    counts = Counter(commit.sink for commit in trial_log.commits if from_us <= commit.committed_us < to_us)
    return min(counts[sink] for sink in trial_log.sinks)


def draining_at_start(record: TrialRecord) -> bool:
    """Whether the span began while the start-up backlog of a query was still draining."""
    return any(_draining(each) for each in backlogs_of(record))


def _draining(backlog: Samples) -> bool:
    third = len(backlog.value) // 3
    if third < 2:
        return False
    first, last = float(np.median(backlog.value[:third])), float(np.median(backlog.value[-third:]))
    return first > DRAINING_FACTOR * last and first - last > DRAINING_FLOOR_S
