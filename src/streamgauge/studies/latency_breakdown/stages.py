"""Summarises the stages of a trial's results."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgauge.engines.latency_probe import StageTimes, Times
from streamgauge.results.breakdown import LatencyFigures, StageFigures
from streamgauge.stats.samples import carries

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def summary(times: StageTimes, independent: int) -> tuple[StageFigures, ...]:
    """Each stage: mean, percentiles of its own (where `independent` observations carry them), and its share of the
    mean latency.
    """
    if not len(times.spent_us):
        return ()
    whole_us = float(times.latencies_us.mean())
    return tuple(
        StageFigures(
            name=name,
            share=float(column.mean()) / whole_us if whole_us else 0.0,
            **_figures(column, independent),
        )
        for name, column in zip(times.names, times.spent_us.T, strict=True)
    )


def _figures(values_us: Times, independent: int) -> dict[str, Any]:
    percentiles = {
        f"{name}_us": float(np.quantile(values_us, q)) if carries(q, independent) else None
        for name, q in PERCENTILES.items()
    }
    return {"mean_us": float(values_us.mean()), **percentiles}


def latency(latencies_us: Times, independent: int) -> LatencyFigures | None:
    """The same figures of whole latencies, and how many there are; None without any."""
    if not len(latencies_us):
        return None
    return LatencyFigures(**_figures(latencies_us, independent), results=len(latencies_us))


def contradicted_share(times: StageTimes) -> float:
    """How far the timestamps of results contradict each other, as a share of their latency."""
    return float(times.contradicted_us.mean() / max(times.latencies_us.mean(), 1.0))
