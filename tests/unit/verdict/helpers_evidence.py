"""Evidence made by rule, for the tests of what is judged from it: a trial at which nothing is wrong, and changes."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamgauge.config.limits import parse_limit
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import SinkResult, Verification
from streamgauge.results.verdict import Finding, Judgement
from streamgauge.verdict.evidence import Evidence, Samples

RATE = 100_000.0
SECONDS = np.arange(60.0)
LATENCY = Latency(min=1e5, mean=1e6, p50=1e6, p99=3e6, max=4e6, count=10_000, effective_count=10_000)
RIGHT = Verification(judged=True, independent=True, reference="duckdb", expected=10, matched=10)
LEVEL = parse_limit("p99 <= 2s")


def samples(time_s: Iterable[float], value: Iterable[float]) -> Samples:
    return Samples(np.fromiter(time_s, float), np.fromiter(value, float))


def ramp(share: float, noise_s: float = 0.05, seed: int = 1) -> Samples:
    """A backlog (events) that grows by `share` of the rate, with noise."""
    noise = np.random.default_rng(seed).normal(0, noise_s, SECONDS.size)
    return Samples(SECONDS, 2 + share * SECONDS + noise)


def lag(slope: float) -> Samples:
    """Output lag in seconds that grows by `slope` a second; the frontier moves at every sample."""
    return Samples(SECONDS, 1.5 + slope * SECONDS)


def evidence(**changes: Any) -> Evidence:
    """A trial at which nothing is wrong, with `changes`."""
    good = Evidence(
        planned_per_s=np.full(60, RATE),
        offered_per_s=np.full(60, RATE),
        schedule_delay_us_p99=60_000,
        core_wait_us=200.0,
        sut_alive=True,
        backlog=(ramp(0.0),),
        output_lag=(lag(0.0),),
        output_lag_at_commits=(ramp(0.0),),
        latency=(ramp(0.0),),
        backlog_max_s=2.4,
        bound_s=30.0,
        verification=RIGHT,
        batches=40,
        latencies=Latencies(event_time_us=LATENCY),
        windows_closed=14,
    )
    each = {name: (value,) if isinstance(value, Samples) else value for name, value in changes.items()}
    return dataclasses.replace(good, **each)


def check_of(verdict: Judgement, name: str) -> Finding:
    return next(check for check in verdict.checks if check.name == name)


def staircase(slope: float, windows: int, noise_s: float, seed: int = 1, until_s: float | None = None) -> Samples:
    """Lag every 10 ms, of windows of 4 s that close 1 s late, later by `slope` a second."""
    random = np.random.default_rng(seed)
    ends = 4.0 * np.arange(1, windows + 1)
    closed_at = ends + 1 + slope * ends + random.normal(0, noise_s, windows)
    time_s = np.arange(0, until_s or closed_at[-1] + 0.011, 0.01)
    frontier_s = np.concatenate([[0.0], ends])[np.searchsorted(closed_at, time_s, side="right")]
    return Samples(time_s, time_s - frontier_s)


def sink(name: str, p99: float = 1e6, **faults: int) -> SinkResult:
    """A sink of ten rows with that p99, all right except `faults`."""
    latency = LATENCY.model_copy(update={"p99": p99})
    return SinkResult(
        name=name, rows=10, latency=Latencies(event_time_us=latency), verification=RIGHT.model_copy(update=faults)
    )
