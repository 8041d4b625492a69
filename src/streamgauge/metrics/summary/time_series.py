"""The per-second table of a trial."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.latency.event_latency import LatencyBySecond, carried_percentile
from streamgauge.metrics.latency.histogram import Histogram
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary.backlog import backlog_events, due_events
from streamgauge.metrics.summary.lag import lags
from streamgauge.metrics.summary.resources import usage_by_second
from streamgauge.metrics.summary.spans import phase_at


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
    for role in ("sut", "driver"):
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
