"""The figures that Prometheus reads, made from a trial's record and result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.rates_and_backlog import backlog_events, due_events, lags
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.latency import LATENCY_KINDS, PERCENTILES, Latencies

PLACES = ("stream", "partition")
ROLES = ("sut", "driver")
"""The roles that every trial has. A broker is shown where there is one."""
BATCH_QUANTILES = {"0.5": "latency_us_p50", "0.9": "latency_us_p90", "0.99": "latency_us_p99"}
"""Field of a commit by quantile."""

Labels = tuple[str, ...]
Values = Mapping[Labels, float]


@dataclass(frozen=True)
class LoadFigures:
    """One trial so far, its events in total.

    - `lag`: by stream and partition, the consumer lag.
    - `batch_latency_s`: by sink and quantile, of the sink's last batch with results.
    - `cpu_cores`, `memory_bytes`: by role, in the last sampled second.
    """

    due: int
    offered: int
    ingested: int
    committed: int
    backlog: int
    lag: Values = field(default_factory=dict)
    batch_latency_s: Values = field(default_factory=dict)
    cpu_cores: Values = field(default_factory=dict)
    memory_bytes: Values = field(default_factory=dict)


def load_figures(record: TrialRecord, now_us: int) -> LoadFigures:
    """The figures now. Their definitions are those of the series of a result."""
    trial_log = record.trial_log
    cpu_cores, memory_bytes = _usage(trial_log)
    return LoadFigures(
        due=int(due_events(record, now_us)),
        offered=trial_log.offered_events(),
        ingested=int(trial_log.running.delivered_by(FAR_FUTURE_US)),
        committed=trial_log.committed_events(),
        backlog=int(backlog_events(record, now_us)),
        lag=_lag_by_partition(record, now_us),
        batch_latency_s=_batch_latencies(trial_log),
        cpu_cores=cpu_cores,
        memory_bytes=memory_bytes,
    )


def latency_figures(latencies: Latencies) -> Values:
    """Seconds of every known percentile, by kind of latency and quantile."""
    known = {kind: latencies.by_kind(kind) for kind in LATENCY_KINDS}
    return {
        (kind, f"{share:g}"): value / US
        for kind, latency in known.items()
        for name, share in PERCENTILES.items()
        if latency is not None and (value := getattr(latency, name)) is not None
    }


def _lag_by_partition(record: TrialRecord, now_us: int) -> Values:
    of_place = lags(record.trial_log, np.array([now_us], np.int64), record.spans.end_us)
    return {(stream, str(partition)): float(lag[0]) for (stream, partition), lag in of_place.items()}


def _batch_latencies(trial_log: TrialLog) -> Values:
    latest: dict[Labels, float] = {}
    for sink in trial_log.sinks:
        commits = (one for one in reversed(trial_log.commits) if one.sink == sink and one.latency_us_p50 is not None)
        if (commit := next(commits, None)) is not None:
            values = {quantile: getattr(commit, name) for quantile, name in BATCH_QUANTILES.items()}
            latest |= {(sink, quantile): value / US for quantile, value in values.items() if value is not None}
    return latest


def _usage(trial_log: TrialLog) -> tuple[Values, Values]:
    """CPU in cores and resident bytes of each role, in the last sampled second; empty before the first."""
    if not trial_log.usages:
        return {}, {}
    last_us = trial_log.usages[-1].time_us
    cpu: dict[str, float] = dict.fromkeys(ROLES, 0.0)
    memory: dict[str, int] = dict.fromkeys(ROLES, 0)
    for usage in reversed(trial_log.usages):
        if usage.time_us != last_us:
            break
        cpu[usage.role] = cpu.get(usage.role, 0.0) + usage.cpu_percent / 100
        memory[usage.role] = memory.get(usage.role, 0) + usage.memory_bytes
    return {(role,): cores for role, cores in cpu.items()}, {(role,): float(bytes_) for role, bytes_ in memory.items()}
