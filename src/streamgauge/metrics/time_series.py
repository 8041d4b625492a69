"""A trial over time: the table of each second, the tables of the engine's batches and of its own series, and the log
of latencies.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.artifacts import hlog
from streamgauge.artifacts.series_files import ENGINE_SERIES, batches_schema
from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress, SeriesSample
from streamgauge.core.trial import TrialSpans
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.event_latency import LatencyBySecond, SinkLatencies, carried_percentile
from streamgauge.metrics.histogram import log_lines
from streamgauge.metrics.rates_and_backlog import backlog_events, due_events, lags
from streamgauge.metrics.records import ROLES
from streamgauge.metrics.resources import usage_by_second
from streamgauge.metrics.trial_log import Batch, TrialLog
from streamgauge.metrics.trial_record import TrialRecord, phase_at


def series_table(record: TrialRecord, latency: LatencyBySecond | None) -> pa.Table:
    """The per-second table of `artifacts.series_files`, from the first planned second to the deadline."""
    spans, trial_log = record.spans, record.trial_log
    starts = np.arange(spans.start_us, max(record.deadline_us, spans.start_us + US), US)
    ends, running = np.append(starts[1:], FAR_FUTURE_US), trial_log.running
    committed = running.committed_by(ends)
    due = due_events(record, starts + US)
    lag = np.stack([*lags(trial_log, starts + US, ends, spans.end_us).values()], axis=1)
    columns: dict[str, Any] = {
        "time_us": starts,
        "phase": [phase_at(spans, int(start)) for start in starts],
        "planned": np.diff(due, prepend=0),
        "handed_out": np.diff(running.delivered_by(ends), prepend=0),
        "committed": np.diff(committed, prepend=0),
        "backlog_events": backlog_events(record, starts + US, ends),
        "lag_events": np.maximum(due - committed, 0),
        "lag_events_mean": lag.mean(axis=1),
        "lag_by_partition": lag.tolist(),
        "lag_at_commit_mean": _lag_at_commits(trial_log, starts, spans.end_us),
        **_chunk_columns(trial_log, starts),
        "frontier_lag_us": _frontier_lag(trial_log, starts),
        **_usage_columns(trial_log, starts),
        "others_cpu_percent": _samples(trial_log.background, starts),
        "reference_work_us": _samples(trial_log.reference_work, starts),
        "loopback_bytes_per_s": _samples(
            (
                (when_us, (total - before) * US / max(1, when_us - before_us))
                for (before_us, before), (when_us, total) in pairwise(trial_log.loopback)
            ),
            starts,
        ),
        **(_latency_columns(latency, starts) if latency is not None else {}),
    }
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def _chunk_columns(trial_log: TrialLog, starts: Int64s) -> dict[str, Any]:
    """Events by the second in which they became available, and the greatest schedule delay of those due in a second.

    A generator that stands still shows as a second without events, and a fuller one after it. A chunk becomes available
    whole, after its last event.
    """
    chunks = [(chunk.from_us, chunk.published_us, chunk.events) for log in trial_log.chunks for chunk in log]
    from_us, published_us, events = np.array(chunks, np.int64).reshape(-1, 3).T
    last, delay_us = len(starts) - 1, np.full(len(starts), np.nan)
    np.fmax.at(delay_us, np.minimum((from_us - starts[0]) // US, last), published_us - from_us)
    offered = np.bincount(np.clip((published_us - starts[0]) // US, 0, last), events, len(starts))
    return {"offered": offered.astype(np.int64), "slip_us_max": delay_us}


def _frontier_lag(trial_log: TrialLog, starts: Int64s) -> Floats:
    """The lag at the last commit of each second; with several queries, that of the slowest."""
    worst = np.full(len(starts), np.nan)
    for part in trial_log.by_query():
        lag = np.full(len(starts), np.nan)
        for when, value in zip(*part.output_lags(), strict=True):
            lag[min(int((when - starts[0]) // US), len(starts) - 1)] = value * US
        worst = np.fmax(worst, lag)
    return worst


def _lag_at_commits(trial_log: TrialLog, starts: Int64s, end_us: int) -> Floats:
    """The lag right after the last commit of each second, of one query: commits of several have no common phase."""
    commits = [
        (query, batch.committed_us)
        for (query, _), batch in trial_log.running.batches.items()
        if starts[0] <= batch.committed_us < starts[-1] + US
    ]
    counts = Counter(query for query, _ in commits)
    fewest = min(counts, key=lambda query: counts[query], default="")
    of_fewest = sorted(when for query, when in commits if query == fewest)
    last = {int((when - starts[0]) // US): when + 1 for when in of_fewest}
    found = np.full(len(starts), np.nan)
    if last:
        moments = np.array([*last.values()], np.int64)
        found[[*last]] = np.mean([*lags(trial_log, moments, moments, end_us).values()], axis=0)
    return found


def _usage_columns(trial_log: TrialLog, starts: Int64s) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for role in ROLES:
        sums = usage_by_second(trial_log.usages, role)
        columns[f"{role}_cpu_percent"] = _column({second: cpu for second, (cpu, _) in sums.items()}, starts)
        columns[f"{role}_memory_bytes"] = _column({second: memory for second, (_, memory) in sums.items()}, starts)
    return columns


def _samples(samples: Iterable[tuple[int, float]], starts: Int64s) -> list[float | None]:
    return _column({when // US: value for when, value in samples}, starts)


def _latency_columns(latency: LatencyBySecond, starts: Int64s) -> dict[str, list[float | None]]:
    """A percentile is of the rows themselves, so a second's p99 needs a hundred of them."""
    columns = {"results": _column({second: each.count for second, each in latency.event_time.items()}, starts)}
    for kind, by_second in (("event_time", latency.event_time), ("processing_time", latency.processing_time)):
        for name, q in (("p50", 0.5), ("p99", 0.99)):
            figures = {second: carried_percentile(each, q, each.count) for second, each in by_second.items()}
            columns[f"{kind}_us_{name}"] = _column(figures, starts)
    return columns


def _column(by_second: Mapping[int, float | None], starts: Int64s) -> list[float | None]:
    return [by_second.get(second) for second in (starts // US).tolist()]


def batches_table(
    progress: Iterable[BatchProgress],
    since_us: int,
    trial_log: TrialLog,
    steps: Mapping[str, str],
    counted: bool = True,
) -> pa.Table:
    """The table of the engine's batches from its own report, without those of earlier trials.

    `steps`: those that the engine declares, with their labels. A step that only its report names has no label.
    The driver counts the events of a batch, because an engine's input row may be a bundle of them. The count is unknown
    (`counted` is false) if the engine's batches are not those that the recorder commits.
    """
    events: dict[Batch, int] = defaultdict(int)
    for part in trial_log.all_deliveries():
        events[part.query, part.batch] += part.events
    latest = {(one.query, one.batch): one for one in progress if one.start_us >= since_us}
    rows = [
        {
            "batch_id": one.batch,
            "query": one.query,
            "start_us": one.start_us,
            "end_us": one.end_us,
            "rows": events.get(key, 0) if counted else None,
            "trigger_ms": None if one.end_us is None else (one.end_us - one.start_us) / 1000,
            "scheduling_delay_us": one.waited_us,
            # Steps that the engine does not report become null.
            **{f"{step}_ms": took_us / 1000 for step, took_us in one.steps_us.items()},
        }
        for key, one in sorted(latest.items())
    ]
    reported = {step: "" for one in latest.values() for step in one.steps_us if step not in steps}
    return pa.Table.from_pylist(rows, schema=batches_schema({**steps, **reported}))


def scheduling_delay_us_max(progress: Iterable[BatchProgress], spans: TrialSpans) -> int | None:
    """The longest wait of a batch that started in the measured span; None if the engine reports none."""
    inside = (one for one in progress if spans.measured_from_us <= one.start_us < spans.measured_to_us)
    return max((one.waited_us for one in inside if one.waited_us is not None), default=None)


def engine_series_table(samples: Iterable[SeriesSample], since_us: int) -> pa.Table:
    """The table of the engine's own series by time, without samples of earlier trials and values that are no number."""
    rows = sorted(one for one in samples if one.time_us >= since_us and math.isfinite(one.value))
    return pa.Table.from_pylist([one._asdict() for one in rows], schema=ENGINE_SERIES)


def hlog_text(sinks: Mapping[str, SinkLatencies], spans: TrialSpans) -> str:
    """One histogram a second if seconds are known, else one of the whole measured span. `sinks`: latencies by sink
    name.
    """
    lines, span_s = [], (spans.measured_from_us / US, spans.measured_to_us / US)
    for name, latencies in sinks.items():
        tag, by_second = f"/{name}" if len(sinks) > 1 else "", vars(latencies.seconds)
        lines += [log_lines(seconds, f"{kind}{tag}") for kind, seconds in by_second.items()]
        for kind, histogram in latencies.histograms.items():
            reported = latencies.latencies.by_kind(kind)
            if kind not in by_second and reported is not None and reported.max is not None:
                lines.append(hlog.write({span_s: histogram.counts}, f"{kind}{tag}"))
    return "".join(lines)
