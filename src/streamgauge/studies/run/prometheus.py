"""An HTTP endpoint on loopback from which Prometheus reads the figures of a run while it lasts.

It observes the events of trials and changes nothing. The figures are made in the thread of the trial, at most once a
second, and a scrape only reads the last ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from streamgauge.config.experiment import Experiment
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.rates_and_backlog import backlog_events, due_events, lags
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.latency import LATENCY_KINDS, PERCENTILES, Latencies
from streamgauge.results.verdict import VerdictValue
from streamgauge.system.child_processes import wait_until
from streamgauge.trial.events import (
    Observer,
    PhaseBegan,
    Progress,
    StepProgress,
    TrialEvent,
    VerdictReached,
    to_each,
)
from streamgauge.trial.progress import every_second

if TYPE_CHECKING:
    from prometheus_client import Metric


PLACES = ("stream", "partition")
ROLES = ("sut", "driver")
"""The roles that every trial has. A broker is shown where there is one."""
BATCH_QUANTILES = {"0.5": "latency_us_p50", "0.9": "latency_us_p90", "0.99": "latency_us_p99"}
"""Field of a commit by quantile."""

Labels = tuple[str, ...]
Values = Mapping[Labels, float]


def load_figures(record: TrialRecord, now_us: int) -> dict[str, Values]:
    """One trial so far, by the name of the metric. The definitions are those of the series of a result.

    Batch latencies are those of each sink's last batch with results; use is that of the last sampled second.
    """
    trial_log = record.trial_log
    cpu_cores, memory_bytes = _usage(trial_log)
    now = np.array([now_us], np.int64)
    of_place = lags(trial_log, now, now, record.spans.end_us)
    return {
        "due_events": {(): int(due_events(record, now_us))},
        "offered_events": {(): trial_log.running.offered_events},
        "ingested_events": {(): int(trial_log.running.delivered_by(FAR_FUTURE_US))},
        "committed_events": {(): trial_log.committed_events()},
        "backlog_events": {(): int(backlog_events(record, now_us))},
        "lag_events": {(stream, str(partition)): float(lag[0]) for (stream, partition), lag in of_place.items()},
        "batch_latency_seconds": _batch_latencies(trial_log),
        "cpu_cores": cpu_cores,
        "memory_bytes": memory_bytes,
    }


def latency_figures(latencies: Latencies) -> Values:
    """Seconds of every known percentile, by kind of latency and quantile."""
    return {
        (kind, f"{share:g}"): value / US
        for kind in LATENCY_KINDS
        for name, share in PERCENTILES.items()
        if (value := getattr(latencies.by_kind(kind), name, None)) is not None
    }


def _batch_latencies(trial_log: TrialLog) -> Values:
    latest: dict[Labels, float] = {}
    for sink in trial_log.sinks:
        commits = (one for one in reversed(trial_log.commits) if one.sink == sink and one.latency_us_p50 is not None)
        if (commit := next(commits, None)) is not None:
            latest |= {
                (sink, quantile): value / US
                for quantile, name in BATCH_QUANTILES.items()
                if (value := getattr(commit, name)) is not None
            }
    return latest


def _usage(trial_log: TrialLog) -> tuple[Values, Values]:
    """CPU in cores and resident bytes of each role, in the last sampled second; empty before the first."""
    if not trial_log.usages:
        return {}, {}
    last_us = trial_log.usages[-1].time_us
    latest = list(takewhile(lambda usage: usage.time_us == last_us, reversed(trial_log.usages)))
    by_role = {
        role: [usage for usage in latest if usage.role == role] for role in (*ROLES, *(one.role for one in latest))
    }
    cpu: Values = {(role,): sum(usage.cpu_percent for usage in used) / 100 for role, used in by_role.items()}
    return cpu, {(role,): float(sum(usage.memory_bytes for usage in used)) for role, used in by_role.items()}


LOOPBACK = "127.0.0.1"
PHASES = ("start", "warm-up", "measured", "tail", "drain", "verification", "judged")
NO_VERDICT = "none"
VERDICTS: tuple[str, ...] = (NO_VERDICT, *get_args(VerdictValue))
NEXT_SCRAPE, NEXT_SCRAPE_S_MAX = 1.5, 90.0
"""How long to wait for the scrape after the verdict: this many of the last interval between scrapes, and at most so
many seconds. Prometheus scrapes once a minute by default."""
SENDING_S = 0.2
"""A scrape counts when its figures are collected, and its answer is sent after that."""
WAITING = "waiting for Prometheus to read the verdict"


RUN_LABELS = ("workload", "engine", "transport", "isolation")


@dataclass(frozen=True)
class MetricInfo:
    """A metric; the samples of a counter have the suffix `_total`."""

    name: str
    kind: Literal["gauge", "counter"]
    text: str
    labels: tuple[str, ...] = ()


METRICS = (
    MetricInfo("run", "gauge", "1; its labels say what runs.", RUN_LABELS),
    MetricInfo("trials", "counter", "Trials begun in this run."),
    MetricInfo("phase", "gauge", "1 for the current phase, 0 for the others.", ("phase",)),
    MetricInfo("verdict", "gauge", "1 for the verdict on the current trial, 0 for the others.", ("verdict",)),
    MetricInfo("due_events", "counter", "Events of the current trial that are due by the plan."),
    MetricInfo("offered_events", "counter", "Events of the current trial that the generators have offered."),
    MetricInfo("ingested_events", "counter", "Events of the current trial that were delivered to the SUT."),
    MetricInfo("committed_events", "counter", "Events of the current trial that the SUT has committed."),
    MetricInfo("backlog_events", "gauge", "Events due and not delivered."),
    MetricInfo("lag_events", "gauge", "Events due and not committed.", PLACES),
    MetricInfo(
        "batch_latency_seconds", "gauge", "Event-time latency in a sink's last batch, from a sample.",
        ("sink", "quantile"),
    ),
    MetricInfo("latency_seconds", "gauge", "Latency of the last trial with a verdict.", ("kind", "quantile")),
    MetricInfo("cpu_cores", "gauge", "Processor cores in use.", ("role",)),
    MetricInfo("memory_bytes", "gauge", "Resident memory.", ("role",)),
)  # fmt: skip


@contextmanager
def exported(experiment: Experiment, observe: Observer) -> Iterator[Observer]:
    """An observer that also feeds the experiment's metrics endpoint; `observe` itself without a port.

    At the end it waits for one more scrape, so that Prometheus has the verdict. Not after a failure or Ctrl-C, nor if
    nothing has ever scraped.

    Raises:
        InputError: the port is in use.
    """
    if experiment.prometheus is None:
        yield observe
        return
    from prometheus_client import CollectorRegistry, start_http_server

    exporter, registry = Exporter(experiment), CollectorRegistry()
    registry.register(exporter)
    try:
        server, thread = start_http_server(experiment.prometheus, LOOPBACK, registry)
    except OSError as error:
        rule, way_out = f"must be free on {LOOPBACK} ({error.strerror})", "--prometheus with another port"
        raise InputError(Problem("prometheus", rule, experiment.prometheus, way_out)) from None
    try:
        yield to_each(observe, exporter.observe)
        if exporter.awaits_scrape:
            with (
                suppress(KeyboardInterrupt),
                every_second(lambda elapsed_s: observe(StepProgress("verification", elapsed_s, WAITING))),
            ):
                exporter.await_scrape()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Exporter:
    """The figures of the current trial, as a collector of Prometheus' client library."""

    def __init__(self, experiment: Experiment, now_s: Callable[[], float] = time.monotonic) -> None:
        self._run = {name: str(getattr(experiment, name)) for name in RUN_LABELS}
        self._now_s = now_s
        self._phase, self._verdict, self._trials = PHASES[0], NO_VERDICT, 0
        self._load: Mapping[str, Values] = {info.name: {} if info.labels else {(): 0} for info in METRICS}
        self._load_due_us = 0
        self._latency: Values = {}
        self._scrapes_s: list[float] = []
        """Times of the last two scrapes."""
        self._reported_verdict = NO_VERDICT
        """The verdict at the last scrape."""

    def observe(self, event: TrialEvent) -> None:
        match event:
            case StepProgress() | PhaseBegan():
                if event.phase == "warm-up":
                    self._trials, self._verdict, self._load_due_us = self._trials + 1, NO_VERDICT, 0
                self._phase = event.phase
            case Progress() if event.now_us >= self._load_due_us:
                self._load, self._load_due_us = load_figures(event.record, event.now_us), event.now_us + US
            case VerdictReached():
                result = event.trial.result
                self._latency, self._phase, self._verdict = (
                    latency_figures(result.latency),
                    "judged",
                    result.verdict.value,
                )

    @property
    def awaits_scrape(self) -> bool:
        """Whether a scraper exists that has not read the last verdict."""
        new = self._verdict not in (self._reported_verdict, NO_VERDICT, "interrupted")
        return new and len(self._scrapes_s) == 2

    def await_scrape(self) -> None:
        """Waits for the next scrape, which should come after one interval."""
        before, last = self._scrapes_s
        wait_s = min(NEXT_SCRAPE * (last - before), NEXT_SCRAPE_S_MAX) - (self._now_s() - last)
        if wait_until(lambda: not self.awaits_scrape, wait_s):
            time.sleep(SENDING_S)

    def collect(self) -> Iterator[Metric]:
        """The metrics, for one scrape. It runs in the endpoint's thread."""
        verdict = self._verdict
        values: dict[str, Values] = {
            **self._load,
            "run": {tuple(self._run.values()): 1},
            "trials": {(): self._trials},
            "phase": _one_of(PHASES, self._phase),
            "verdict": _one_of(VERDICTS, verdict),
            "latency_seconds": self._latency,
        }
        yield from (_family(info, values[info.name]) for info in METRICS)
        self._scrapes_s = [*self._scrapes_s[-1:], self._now_s()]
        self._reported_verdict = verdict


def _family(info: MetricInfo, values: Values) -> Metric:
    from prometheus_client import metrics_core

    made = {"gauge": metrics_core.GaugeMetricFamily, "counter": metrics_core.CounterMetricFamily}
    family = made[info.kind](f"streamgauge_{info.name}", info.text, labels=info.labels)
    for labelled, value in values.items():
        family.add_metric(labelled, value)
    return family


def _one_of(names: tuple[str, ...], current: str) -> Values:
    return {(name,): float(name == current) for name in names}
