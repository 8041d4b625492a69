"""A trial over time: the table of each second, the tables of the engine's batches and of its own series, and the log
of latencies.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.artifacts.tables import ENGINE_SERIES, batches_schema
from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress, SeriesSample
from streamgauge.core.trial import TrialSpans
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.event_latency import LatencyBySecond, SinkLatencies, carried_percentile
from streamgauge.metrics.histogram import Histogram, log_line, log_lines
from streamgauge.metrics.rates_and_backlog import backlog_events, due_events, lags
from streamgauge.metrics.records import ROLES
from streamgauge.metrics.resources import usage_by_second
from streamgauge.metrics.trial_log import Batch, TrialLog
from streamgauge.metrics.trial_record import TrialRecord, phase_at


def series_table(record: TrialRecord, latency: LatencyBySecond | None) -> pa.Table:
    """The per-second table of `artifacts.tables`, from the first planned second to the deadline."""
    spans, trial_log = record.spans, record.trial_log
    starts = np.arange(spans.start_us, max(record.deadline_us, spans.start_us + US), US)
    ends, running = np.append(starts[1:], FAR_FUTURE_US), trial_log.running
    committed = running.committed_by(ends)
    due = due_events(record, starts + US)
    columns: dict[str, Any] = {
        "time_us": starts,
        "phase": [phase_at(spans, int(start)) for start in starts],
        "planned": np.diff(due, prepend=0),
        "offered": _offered(trial_log, starts),
        "handed_out": np.diff(running.delivered_by(ends), prepend=0),
        "committed": np.diff(committed, prepend=0),
        "backlog_events": backlog_events(record, starts + US, ends),
        "lag_events": np.maximum(due - committed, 0),
        **_lag_columns(trial_log, ends, spans.end_us),
        "lag_at_commit_mean": _lag_at_commits(trial_log, starts, spans.end_us),
        "slip_us_max": _schedule_delay_max(trial_log, starts),
        "frontier_lag_us": _frontier_lag(trial_log, starts),
        **_usage_columns(trial_log, starts),
        "others_cpu_percent": _of_second(trial_log.background, starts),
        "reference_work_us": _of_second(trial_log.reference_work, starts),
        "loopback_bytes_per_s": _loopback(trial_log, starts),
        **(_latency_columns(latency, starts) if latency is not None else {}),
    }
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def _offered(trial_log: TrialLog, starts: Int64s) -> Int64s:
    """Events by the second in which they became available, whatever second they were due in.

    A generator that stands still shows as a second without events, and a fuller one after it. A chunk becomes available
    whole, after its last event.
    """
    chunks = [chunk for log in trial_log.chunks for chunk in log]
    when = (np.array([chunk.published_us for chunk in chunks], np.int64) - starts[0]) // US
    events = np.array([chunk.events for chunk in chunks], float)
    return np.bincount(np.clip(when, 0, len(starts) - 1), events, len(starts)).astype(np.int64)


def _schedule_delay_max(trial_log: TrialLog, starts: Int64s) -> Floats:
    worst = np.full(len(starts), np.nan)
    for log in trial_log.chunks:
        for chunk in log:
            second = min(int((chunk.from_us - starts[0]) // US), len(starts) - 1)
            worst[second] = np.fmax(worst[second], chunk.published_us - chunk.from_us)
    return worst


def _frontier_lag(trial_log: TrialLog, starts: Int64s) -> Floats:
    """The lag at the last commit of each second; with several queries, that of the slowest."""
    worst = np.full(len(starts), np.nan)
    for part in trial_log.by_query():
        lag = np.full(len(starts), np.nan)
        for when, value in zip(*part.output_lags(), strict=True):
            lag[min(int((when - starts[0]) // US), len(starts) - 1)] = value * US
        worst = np.fmax(worst, lag)
    return worst


def _lag_columns(trial_log: TrialLog, ends: Int64s, end_us: int) -> dict[str, Any]:
    by_partition = np.stack(list(lags(trial_log, ends, end_us).values()), axis=1)
    return {"lag_events_mean": by_partition.mean(axis=1), "lag_by_partition": by_partition.tolist()}


def _lag_at_commits(trial_log: TrialLog, starts: Int64s, end_us: int) -> Floats:
    """The lag right after the last commit of each second, of one query: commits of several have no common phase."""
    by_query: dict[str, list[int]] = defaultdict(list)
    for (query, _), batch in trial_log.running.batches.items():
        if starts[0] <= batch.committed_us < starts[-1] + US:
            by_query[query].append(batch.committed_us)
    last: dict[int, int] = {}
    fewest = min(by_query.values(), key=lambda moments: len(moments), default=[])
    for when in sorted(fewest):
        last[int((when - starts[0]) // US)] = when + 1
    found = np.full(len(starts), np.nan)
    if last:
        by_partition = lags(trial_log, np.array([*last.values()], np.int64), end_us).values()
        found[[*last]] = np.mean([*by_partition], axis=0)
    return found


def _usage_columns(trial_log: TrialLog, starts: Int64s) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for role in ROLES:
        sums = usage_by_second(trial_log.usages, role)
        seconds = [sums.get(int(start) // US) for start in starts]
        columns[f"{role}_cpu_percent"] = [one[0] if one else None for one in seconds]
        columns[f"{role}_memory_bytes"] = [one[1] if one else None for one in seconds]
    return columns


def _of_second(samples: list[tuple[int, float]], starts: Int64s) -> list[float | None]:
    by_second = {when // US: value for when, value in samples}
    return [by_second.get(int(start) // US) for start in starts]


def _loopback(trial_log: TrialLog, starts: Int64s) -> list[float | None]:
    """Bytes per second over the loopback, for seconds in which its counter was read."""
    rates: dict[int, float] = {}
    for (before_us, before), (when_us, total) in pairwise(trial_log.loopback):
        rates[when_us // US] = (total - before) * US / max(1, when_us - before_us)
    return [rates.get(int(start) // US) for start in starts]


def _latency_columns(latency: LatencyBySecond, starts: Int64s) -> dict[str, list[float | None]]:
    def column(by_second: dict[int, Histogram], figure: Callable[[Histogram], float | None]) -> list[float | None]:
        return [figure(by_second[second]) if second in by_second else None for second in (starts // US).tolist()]

    figures = {
        f"{kind}_us_{name}": column(by_second, partial(_carried, q))
        for kind, by_second in (("event_time", latency.event_time), ("processing_time", latency.processing_time))
        for name, q in (("p50", 0.5), ("p99", 0.99))
    }
    return {"results": column(latency.event_time, attrgetter("count")), **figures}


def _carried(q: float, histogram: Histogram) -> float | None:
    """A percentile of the rows themselves, so a second's p99 needs a hundred of them."""
    return carried_percentile(histogram, q, histogram.count)


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
    rows = [_batch_row(latest[key], events.get(key, 0) if counted else None) for key in sorted(latest)]
    reported = {step: "" for one in latest.values() for step in one.steps_us if step not in steps}
    return pa.Table.from_pylist(rows, schema=batches_schema({**steps, **reported}))


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


def engine_series_table(samples: Iterable[SeriesSample], since_us: int) -> pa.Table:
    """The table of the engine's own series by time, without samples of earlier trials and values that are no number."""
    rows = sorted(one for one in samples if one.time_us >= since_us and math.isfinite(one.value))
    return pa.Table.from_pylist([one._asdict() for one in rows], schema=ENGINE_SERIES)


def hlog_text(sinks: Mapping[str, SinkLatencies], spans: TrialSpans) -> str:
    """One histogram a second if seconds are known, else one of the whole measured span. `sinks`: latencies by sink
    name.
    """
    several = len(sinks) > 1
    return "".join(
        line for name, latencies in sinks.items() for line in _of_sink(latencies, f"/{name}" if several else "", spans)
    )


def _of_sink(latencies: SinkLatencies, tag: str, spans: TrialSpans) -> Iterator[str]:
    of = latencies.seconds
    by_second = {
        "event_time": of.event_time, "processing_time": of.processing_time, "closing_delay": of.closing_delay,
    }  # fmt: skip
    for kind, seconds in by_second.items():
        yield log_lines(seconds, f"{kind}{tag}")
    for kind, histogram in latencies.histograms.items():
        reported = latencies.latencies.by_kind(kind)
        if kind not in by_second and reported is not None and reported.max is not None:
            yield log_line(histogram, f"{kind}{tag}", spans.measured_from_us / US, spans.measured_to_us / US)
