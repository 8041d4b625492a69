"""Decomposes one trial's latency into stages, for any execution mode.

The stages of a result follow each other, so their sum is its latency by construction. That does not prove where one
ends and the next begins. So each mode checks its evidence against the driver's timestamps and reports contradictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamgauge.engines.latency_probe import DOUBT_SHARE, Breakdown, StageTimes, Times
from streamgauge.results.breakdown import Decomposition, LatencyFigures, StageFigures, TrialLatency
from streamgauge.stats.samples import carries
from streamgauge.studies.latency_breakdown.timestamps import TrialEvidence, read_results

if TYPE_CHECKING:
    from streamgauge.trial.trial_result import TrialResult


CDF_POINTS = 101


def decompose(judged: TrialResult, folder: Path, evidence: TrialEvidence) -> Decomposition:
    """The stages of a trial's results, or the reason why they are unknown."""
    spans = judged.record.offered_spans
    results = read_results(folder, spans.measured_from_us, spans.measured_to_us)
    if results is None or not len(results.event_us):
        return Decomposition(reason="no result came")
    breakdown = evidence.break_down(judged, folder, results)
    return Decomposition(reason=breakdown) if isinstance(breakdown, str) else _report(judged, breakdown)


def _report(judged: TrialResult, breakdown: Breakdown) -> Decomposition:
    whole = latency_figures(breakdown.latencies_us, breakdown.independent)
    contradicted = contradicted_share(breakdown.stage_times)
    decomposition = Decomposition(
        latency=TrialLatency(**dict(whole), contradicted_share=contradicted) if whole is not None else None,
        first_of_batch=latency_figures(breakdown.firsts_us, breakdown.independent),
        stages=stage_figures(breakdown.stage_times, breakdown.independent),
        sampled=len(breakdown.stage_times.spent_us),
        remainder_share=_unexplained_share(judged, breakdown),
        cdf_us=_spread(breakdown.latencies_us, breakdown.independent),
        batches=breakdown.batches,
        left_out=breakdown.left_out,
        **breakdown.extra_fields,
    )
    return decomposition.model_copy(update={"doubts": (*doubts(decomposition), *breakdown.doubts)})


def doubts(decomposition: Decomposition) -> Iterator[str]:
    """Why stages may be wrong, if their evidence does not agree, in any mode."""
    unexplained_share, latency = decomposition.remainder_share, decomposition.latency
    if unexplained_share is not None and abs(unexplained_share) > DOUBT_SHARE:
        yield "the sum of the stages differs from the trial's mean latency"
    if latency is not None and latency.contradicted_share > DOUBT_SHARE:
        yield "timestamps of results contradict each other"


def _unexplained_share(judged: TrialResult, breakdown: Breakdown) -> float | None:
    """Difference between the stages' sum and the trial's own mean latency, as a share of it.

    The trial's mean includes missing results. The stages lack these, results that are left out, and those outside a
    sample.
    """
    measured = judged.result.latency.event_time_us
    if measured is None or not measured.mean:
        return None
    return float(measured.mean - breakdown.stage_times.latencies_us.mean()) / measured.mean


def _spread(latencies_us: Times, independent: int) -> tuple[float | None, ...]:
    """Quantiles from 0 to 1; None for those that too few observations carry."""
    shares = np.linspace(0, 1, CDF_POINTS).tolist()
    quantiles = np.quantile(latencies_us, shares).tolist()
    return tuple(us if q < 1 and carries(q, independent) else None for q, us in zip(shares, quantiles, strict=True))


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def stage_figures(times: StageTimes, independent: int) -> tuple[StageFigures, ...]:
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
    return {"mean_us": float(values_us.mean())} | {
        f"{name}_us": float(np.quantile(values_us, q)) if carries(q, independent) else None
        for name, q in PERCENTILES.items()
    }


def latency_figures(latencies_us: Times, independent: int) -> LatencyFigures | None:
    """The same figures of whole latencies, and how many there are; None without any."""
    if not len(latencies_us):
        return None
    return LatencyFigures(**_figures(latencies_us, independent), results=len(latencies_us))


def contradicted_share(times: StageTimes) -> float:
    """How far the timestamps of results contradict each other, as a share of their latency."""
    return float(times.contradicted_us.mean() / max(times.latencies_us.mean(), 1.0))
