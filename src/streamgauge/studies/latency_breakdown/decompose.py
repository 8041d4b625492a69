"""Decomposes one trial's latency into stages, for any execution mode.

The stages of a result follow each other, so their sum is its latency by construction. That does not prove where one
ends and the next begins. So each mode checks its evidence against the driver's timestamps and reports contradictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamgauge.engines.latency_probe import DOUBT_SHARE, Breakdown, Times
from streamgauge.results.breakdown import Decomposition, TrialLatency
from streamgauge.stats.samples import carries
from streamgauge.studies.latency_breakdown import saved_results, stages
from streamgauge.studies.latency_breakdown.trial_evidence import TrialEvidence

if TYPE_CHECKING:
    from streamgauge.trial.trial_result import TrialResult

CDF_POINTS = 101


def decompose(judged: TrialResult, folder: Path, evidence: TrialEvidence) -> Decomposition:
    """The stages of a trial's results, or the reason why they are unknown."""
    spans = judged.record.offered_spans
    results = saved_results.read(folder, spans.measured_from_us, spans.measured_to_us)
    if results is None or not len(results.event_us):
        return Decomposition(reason="no result came")
    breakdown = evidence.break_down(judged, folder, results)
    return Decomposition(reason=breakdown) if isinstance(breakdown, str) else _report(judged, breakdown)


def _report(judged: TrialResult, breakdown: Breakdown) -> Decomposition:
    whole = stages.latency(breakdown.latencies_us, breakdown.independent)
    contradicted_share = stages.contradicted_share(breakdown.stage_times)
    decomposition = Decomposition(
        latency=TrialLatency(**dict(whole), contradicted_share=contradicted_share) if whole is not None else None,
        first_of_batch=stages.latency(breakdown.firsts_us, breakdown.independent),
        stages=stages.summary(breakdown.stage_times, breakdown.independent),
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
