"""From a trial's log to its tables and sums: the per-second series, rates, backlog, slip, processes, the engine's
batches.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.artifacts.tables import BATCHES
from streamgauge.core.batch_progress import BatchProgress
from streamgauge.core.clock import US
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.latency.event_latency import LatencyBySecond, carried_percentile
from streamgauge.metrics.latency.histogram import Histogram
from streamgauge.metrics.log.batch_frontiers import read_skew_us
from streamgauge.metrics.log.trial_log import Batch, Floats, Ints, TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.records import RUNNER, STILL_US_MIN, Usage
from streamgauge.results.run import Backlog, DriverResult, Input, Phase, ProcessUse, RatePiece, Rates, Slip
from streamgauge.system.machine import machine_percent
from streamgauge.transports.busy_time import BusyInterval

SLOWED_SAMPLES_MIN = 5
"""So many of the reference work in a third of the span, before the thirds are compared."""


def phases(spans: TrialSpans, deadline_us: int) -> tuple[Phase, ...]:
    """Warm-up, measured span, tail and drain by planned time, until the deadline; empty ones are left out.

    Of a trial that ended early, the spans are those of what was offered.
    """
    borders = (
        ("warm-up", spans.start_us, spans.measured_from_us),
        ("measured", spans.measured_from_us, spans.measured_to_us),
        ("tail", spans.measured_to_us, spans.end_us),
        ("drain", spans.end_us, max(spans.end_us, deadline_us)),
    )
    ended = ((name, low, min(high, deadline_us)) for name, low, high in borders)
    return tuple(Phase(name=name, start_us=low, end_us=high) for name, low, high in ended if high > low)


def offered_input(record: TrialRecord) -> Input:
    """The input as it was offered: what `trial.generate_input` makes again from it."""
    plan, spans = record.trial_log.plan, record.offered_spans
    pieces = tuple(
        RatePiece(start_s=piece.start_s, rate_per_s=piece.rate_per_s, slope_per_s2=piece.slope_per_s2)
        for piece in plan.profile.pieces
    )
    return Input(start_us=plan.start_us, end_us=spans.end_us, generators=plan.partitions, profile=pieces)


def rates(record: TrialRecord, ceiling_per_s: float | None, slip_us_max: int) -> Rates:
    """Events per second over the measured span; offered are those that were at most `slip_us_max` late."""
    trial_log, spans = record.trial_log, record.spans
    low, high = spans.measured_from_us, record.measured_until
    if high <= low:
        due_per_s = trial_log.plan.profile.rate_at((low - spans.start_us) / US)
        return Rates(
            offered_per_s=0.0, achieved_per_s=0.0, ingested_per_s=0.0, planned_per_s=due_per_s,
            generator_ceiling_per_s=ceiling_per_s,
        )  # fmt: skip
    seconds = (high - low) / US
    planned, kept = trial_log.kept_events(low, high, slip_us_max)
    return Rates(
        offered_per_s=float(kept.sum()) / seconds,
        planned_per_s=float(planned.sum()) / seconds,
        achieved_per_s=trial_log.running.committed_between(low, high) / seconds,
        ingested_per_s=trial_log.running.handed_out_between(low, high) / seconds,
        generator_ceiling_per_s=ceiling_per_s,
        shares={stream.name: stream.share for stream in trial_log.plan.streams},
    )


def backlog(record: TrialRecord) -> Backlog:
    """The backlog over the measured span: largest, at its end, and its slope through the samples of `backlog_peaks`.

    Of several queries each has a backlog of its own; each figure is that of the worst.
    """
    sampled = [within(part.backlog_peaks(), record.spans) for part in record.trial_log.by_query()]
    slope = max((_slope(times, events) for times, events in sampled if len(times) > 1), default=0.0)
    peak = max((int(events.max()) for _, events in sampled if len(events)), default=_unread(record))
    end = max(_unread(record), 0)
    return Backlog(max=max(peak, end), end=end, slope_per_s=slope, max_s=_longest_wait_s(record))


def _longest_wait_s(record: TrialRecord) -> float:
    """The most event time that waited in the measured span, for any query, in seconds."""
    parts = record.trial_log.by_query() or (record.trial_log,)
    when = min(record.spans.measured_to_us, record.deadline_us)
    sampled = [wait for part in parts for wait in within(part.backlog_waits(), record.spans)[1]]
    return float(max([*sampled, *(part.waiting_at(when + 1) for part in parts)]))


def _slope(times: Ints, events: Any) -> float:
    return float(np.polyfit((times - times[0]) / US, events, 1)[0])


def _unread(record: TrialRecord) -> int:
    """Events due and not handed out at the end of the measured span, to the slowest query of several."""
    when = min(record.spans.measured_to_us, record.deadline_us)
    due = record.trial_log.plan.planned_events(record.spans.start_us, when)
    return due - int(record.trial_log.running.taken_by(when + 1))


def busy_share(record: TrialRecord) -> float | None:
    """The share of the time that batches filled in the measured span, mean, of the query that is busiest.

    The mean, because batches in which windows close may be the only long ones.
    """
    found = (within(part.work_shares(), record.spans)[1] for part in record.trial_log.by_query())
    return max((float(shares.mean()) for shares in found if shares.size), default=None)


def within(samples: tuple[Ints, Any], spans: TrialSpans) -> tuple[Ints, Any]:
    """The samples of the measured span."""
    times, values = samples
    inside = (times >= spans.measured_from_us) & (times < spans.measured_to_us)
    return times[inside], values[inside]


def slip(record: TrialRecord) -> Slip:
    slips = record.trial_log.slips(record.spans.measured_from_us, record.spans.measured_to_us)
    return _slip_of(slips) if len(slips) else Slip(p50=0.0, p99=0.0, max=0.0)


def append_latency(latencies_us: Sequence[int]) -> Slip | None:
    """Of events whose way to the broker was looked at; None where none was."""
    return _slip_of(latencies_us) if latencies_us else None


def _slip_of(values_us: Sequence[int] | Floats) -> Slip:
    p50, p99, most = np.percentile(values_us, [50, 99, 100])
    return Slip(p50=float(p50), p99=float(p99), max=float(most))


def driver(record: TrialRecord) -> DriverResult:
    trial_log = record.trial_log
    totals = _by_second(trial_log.usages, "driver")
    return DriverResult(
        slip_us=slip(record),
        events_planned=trial_log.plan.planned_events(record.spans.start_us, record.spans.end_us),
        events_offered=trial_log.offered_events(),
        events_handed_out=int(trial_log.running.handed_out_by(FAR_FUTURE_US)),
        events_reread=trial_log.running.reread_events,
        events_shared=trial_log.running.shared_events.total(),
        events_committed=trial_log.committed_events(),
        cpu_percent=float(np.mean([cpu for cpu, _ in totals.values()])) if totals else None,
        memory_bytes_max=max((memory for _, memory in totals.values()), default=None),
        recorder_stood_still_us=stood_still_us(record),
        read_skew_us_max=read_skew_us(trial_log, record.spans.measured_from_us, record.spans.measured_to_us),
        hand_out_share=share_of_span(record, trial_log.handing_out),
        receive_share=share_of_span(record, trial_log.receiving),
        disk_share=share_of_span(record, trial_log.writing),
    )


def processes(record: TrialRecord) -> tuple[ProcessUse, ...]:
    """Use of every process over the measured span; the SUT's Python workers come and go, so they are summed.

    Where the SUT has processes of several kinds, each kind is a row too: a part of the SUT's, and in no sum again.
    """
    inside = [usage for usage in record.trial_log.usages if _measured(record, usage.time_us)]
    groups: dict[tuple[str, Any], list[Usage]] = defaultdict(list)
    for usage in inside:
        groups["sut" if usage.role == "sut" else usage.name, usage.role].append(usage)
    whole = [_process_use(name, role, usages) for (name, role), usages in sorted(groups.items())]
    return (*whole, *_parts([usage for usage in inside if usage.role == "sut"]))


def _parts(usages: list[Usage]) -> Iterator[ProcessUse]:
    """What each kind of the SUT's processes used; in a second in which there was none of a kind it used nothing."""
    kinds = sorted({usage.kind for usage in usages})
    for kind in kinds if len(kinds) > 1 else ():
        of_kind = [usage if usage.kind == kind else replace(usage, cpu_percent=0.0, memory_bytes=0) for usage in usages]
        yield _process_use(f"sut: {kind}", "sut", of_kind).model_copy(update={"role": "sut_part"})


def _process_use(name: str, role: Any, usages: list[Usage]) -> ProcessUse:
    totals = _by_second(usages, role)
    cpu = [one for one, _ in totals.values()]
    return ProcessUse(
        name=name, role=role, cpu_percent_mean=float(np.mean(cpu)), cpu_percent_max=float(np.max(cpu)),
        memory_bytes_max=max(memory for _, memory in totals.values()),
    )  # fmt: skip


def background_percent(record: TrialRecord) -> float | None:
    """CPU of all that is neither driver nor SUT, percent of one core: its mean over the measured span."""
    inside = _inside(record, record.trial_log.background)
    return float(np.mean(inside)) if inside else None


def background_share(record: TrialRecord) -> float:
    """The same as a share of the machine; of a trial that ended before its measured span, the mean since its start. 0
    where it is not known.
    """
    percent = background_percent(record)
    if percent is None and record.trial_log.background:
        percent = float(np.mean([cpu for _, cpu in record.trial_log.background]))
    return (percent or 0.0) / machine_percent()


def reference_work_us(record: TrialRecord) -> float | None:
    """CPU time of the reference work, its median over the measured span; None where it was not done."""
    inside = _inside(record, record.trial_log.reference_work)
    return float(np.median(inside)) if inside else None


def slowed_by(record: TrialRecord) -> float:
    """By what share the reference work took longer in the last third of the measured span than in its first."""
    inside = _inside(record, record.trial_log.reference_work)
    third = len(inside) // 3
    return float(np.median(inside[-third:]) / np.median(inside[:third])) - 1 if third >= SLOWED_SAMPLES_MIN else 0.0


def _inside(record: TrialRecord, samples: list[tuple[int, float]]) -> list[float]:
    return [value for when, value in samples if _measured(record, when)]


def _measured(record: TrialRecord, when_us: int) -> bool:
    """Whether a moment lies in the measured span."""
    return record.spans.measured_from_us <= when_us < record.spans.measured_to_us


def background_burst_share(record: TrialRecord, burst_s: float) -> float:
    """The most of the machine that they used for `burst_s` on end, in the same time; 0 where it was shorter.

    A sample speaks of the time since the one before it. Samples come a second apart, so half a one may be lacking.
    """
    known = [(when, (when - before) / US, cpu) for (before, _), (when, cpu) in pairwise(record.trial_log.background)]
    inside = [one for one in known if _measured(record, one[0])] or known
    bursts = (_first_seconds(inside[place:], burst_s - 0.5) for place in range(len(inside)))
    return max(bursts, default=0.0) / machine_percent()


def _first_seconds(samples: list[tuple[int, float, float]], least_s: float) -> float:
    """The mean percent of the first samples (when, seconds, percent) that last so long together; 0 where all do not."""
    lasted_s = used = 0.0
    for _, seconds, percent in samples:
        lasted_s, used = lasted_s + seconds, used + seconds * percent
        if lasted_s >= least_s:
            return used / lasted_s
    return 0.0


def core_wait_us(record: TrialRecord) -> float:
    """The mean wait for a core of the driver process that waited longest, over the measured span; NaN if not known.

    The runner's is no matter: no stamp is its.
    """
    waits: dict[str, list[float]] = defaultdict(list)
    for usage in record.trial_log.usages:
        stamps = usage.role == "driver" and usage.name != RUNNER
        if stamps and _measured(record, usage.time_us) and not math.isnan(usage.core_wait_us):
            waits[usage.name].append(usage.core_wait_us)
    return max((float(np.mean(waited)) for waited in waits.values()), default=math.nan)


def share_of_span(record: TrialRecord, spent: Iterable[BusyInterval]) -> float:
    """The share of the measured span that is covered at least once; of a trial that ended before that, of its warm-up.

    Once, though many may wait at a time: engines read some partitions together and some one after the other, and either
    way it is a moment in which somebody waited for the driver.
    """
    low, high = record.spans.measured_from_us, record.measured_until
    if high <= low:
        low, high = record.spans.start_us, record.offered_until()
    covered, reached = 0, low
    for since, until in sorted(spent):
        begin, end = max(since, reached), min(until, high)
        covered, reached = covered + max(0, end - begin), max(reached, end)
    return covered / (high - low) if high > low else 0.0


def stood_still_us(record: TrialRecord) -> int:
    """How long the recorder stood still while results of the measured span may have come, beyond what each time is
    allowed.

    From the span's begin to the deadline, which follows soon after the last of those results has come.
    """
    low, high = (
        record.spans.measured_from_us,
        record.deadline_us or FAR_FUTURE_US,
    )  # there is no deadline yet while it runs
    beyond = ((when - late + STILL_US_MIN, when) for when, late in record.trial_log.stood_still)
    return sum(max(0, min(until, high) - max(since, low)) for since, until in beyond)


def _by_second(usages: Iterable[Usage], role: str) -> dict[int, tuple[float, int]]:
    """Second to (CPU percent, resident bytes), summed over the processes of one side."""
    sums: dict[int, tuple[float, int]] = {}
    for usage in usages:
        if usage.role == role:
            cpu, memory = sums.get(usage.time_us // US, (0.0, 0))
            sums[usage.time_us // US] = (cpu + usage.cpu_percent, memory + usage.memory_bytes)
    return sums


def series(record: TrialRecord, latency: LatencyBySecond | None) -> pa.Table:
    """The per-second table of `artifacts.tables`, from the first planned second to the deadline."""
    spans, trial_log = record.spans, record.trial_log
    starts = np.arange(spans.start_us, max(record.deadline_us, spans.start_us + US), US)
    last_due = [min(int(start) + US, spans.end_us) for start in starts]
    planned = np.array([_planned(trial_log, int(low), high) for low, high in zip(starts, last_due, strict=True)])
    ends, running = np.append(starts[1:], FAR_FUTURE_US), trial_log.running
    committed = running.committed_by(ends)
    due = np.cumsum(planned)
    columns: dict[str, Any] = {
        "time_us": starts,
        "phase": [phase_at(spans, int(start)) for start in starts],
        "planned": planned,
        "offered": _offered(trial_log, starts),
        "handed_out": np.diff(running.handed_out_by(ends), prepend=0),
        "committed": np.diff(committed, prepend=0),
        "backlog_events": np.maximum(due - running.taken_by(ends), 0),
        "lag_events": np.maximum(due - committed, 0),
        "slip_us_max": _slip_max(trial_log, starts),
        "frontier_lag_us": _frontier_lag(trial_log, starts),
        **_usage_columns(trial_log, starts),
        "others_cpu_percent": _of_second(trial_log.background, starts),
        "reference_work_us": _of_second(trial_log.reference_work, starts),
        "loopback_bytes_per_s": _loopback(trial_log, starts),
        **(_latency_columns(latency, starts) if latency is not None else {}),
    }
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def _planned(trial_log: TrialLog, from_us: int, to_us: int) -> int:
    return trial_log.plan.planned_events(from_us, to_us) if to_us > from_us else 0


def phase_at(spans: TrialSpans, when_us: int) -> str:
    """The phase that a moment of planned time lies in."""
    if when_us < spans.start_us:
        return "start"
    found = [phase.name for phase in phases(spans, when_us + 1) if phase.start_us <= when_us < phase.end_us]
    return found[-1] if found else "drain"


def _offered(trial_log: TrialLog, starts: Ints) -> Ints:
    """Events by the second in which they became available, whatever second they were due in: a generator that stands
    still shows as a second of nothing and then one of more. A chunk becomes available whole, after its last event.
    """
    chunks = [chunk for log in trial_log.chunks for chunk in log]
    when = (np.array([chunk.published_us for chunk in chunks], np.int64) - starts[0]) // US
    events = np.array([chunk.events for chunk in chunks], float)
    return np.bincount(np.clip(when, 0, len(starts) - 1), events, len(starts)).astype(np.int64)


def _slip_max(trial_log: TrialLog, starts: Ints) -> Floats:
    worst = np.full(len(starts), np.nan)
    for log in trial_log.chunks:
        for chunk in log:
            second = min(int((chunk.from_us - starts[0]) // US), len(starts) - 1)
            worst[second] = np.fmax(worst[second], chunk.published_us - chunk.from_us)
    return worst


def _frontier_lag(trial_log: TrialLog, starts: Ints) -> Floats:
    """The lag at the last commit of each second; of several queries that of the one furthest behind."""
    worst = np.full(len(starts), np.nan)
    for part in trial_log.by_query():
        lag = np.full(len(starts), np.nan)
        for when, value in zip(*part.output_lags(), strict=True):
            lag[min(int((when - starts[0]) // US), len(starts) - 1)] = value * US
        worst = np.fmax(worst, lag)
    return worst


def _usage_columns(trial_log: TrialLog, starts: Ints) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for role in ("sut", "driver"):
        sums = _by_second(trial_log.usages, role)
        seconds = [sums.get(int(start) // US) for start in starts]
        columns[f"{role}_cpu_percent"] = [one[0] if one else None for one in seconds]
        columns[f"{role}_memory_bytes"] = [one[1] if one else None for one in seconds]
    return columns


def _of_second(samples: list[tuple[int, float]], starts: Ints) -> list[float | None]:
    by_second = {when // US: value for when, value in samples}
    return [by_second.get(int(start) // US) for start in starts]


def _loopback(trial_log: TrialLog, starts: Ints) -> list[float | None]:
    """Bytes a second over the loopback, of the seconds in which its counter was read."""
    rates: dict[int, float] = {}
    for (before_us, before), (when_us, total) in pairwise(trial_log.loopback):
        rates[when_us // US] = (total - before) * US / max(1, when_us - before_us)
    return [rates.get(int(start) // US) for start in starts]


def _latency_columns(latency: LatencyBySecond, starts: Ints) -> dict[str, list[float | None]]:
    def column(by_second: dict[int, Histogram], figure: Callable[[Histogram], float | None]) -> list[float | None]:
        return [figure(by_second[second]) if second in by_second else None for second in (starts // US).tolist()]

    figures = {
        f"{kind}_us_{name}": column(by_second, partial(_carried, q))
        for kind, by_second in (("event_time", latency.event_time), ("processing_time", latency.processing_time))
        for name, q in (("p50", 0.5), ("p99", 0.99))
    }
    return {"results": column(latency.event_time, attrgetter("count")), **figures}


def _carried(q: float, histogram: Histogram) -> float | None:
    """These describe the rows themselves, so a second's p99 needs a hundred of them."""
    return carried_percentile(histogram, q, histogram.count)


def batches(progress: Iterable[BatchProgress], since_us: int, trial_log: TrialLog, counted: bool = True) -> pa.Table:
    """The engine's own report as the table of its batches; those of earlier trials are left out.

    How many events a batch took is the driver's count: what an engine calls an input row may be a bundle of them. It is
    not known (`counted` is false) of an engine whose batches are not those by which results are taken.
    """
    events: dict[Batch, int] = defaultdict(int)
    for part in trial_log.all_hand_outs():
        events[part.query, part.batch] += part.events
    latest = {(one.query, one.batch): one for one in progress if one.start_us >= since_us}
    rows = [_batch_row(latest[key], events.get(key, 0) if counted else None) for key in sorted(latest)]
    return pa.Table.from_pylist(rows, schema=BATCHES)


def _batch_row(progress: BatchProgress, events: int | None) -> dict[str, Any]:
    """Steps that the engine does not report become null."""
    return {
        "batch_id": progress.batch,
        "query": progress.query,
        "start_us": progress.start_us,
        "end_us": progress.end_us,
        "rows": events,
        "trigger_ms": None if progress.end_us is None else (progress.end_us - progress.start_us) / 1000,
        **{f"{step}_ms": took_us / 1000 for step, took_us in progress.steps_us.items()},
    }
