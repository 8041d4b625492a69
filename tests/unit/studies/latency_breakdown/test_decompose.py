"""A trial taken apart, in any mode: what is doubted, and what stands of one that could not be."""

from __future__ import annotations

import pytest

from streamgauge.results.breakdown import Decomposition, TrialLatency
from streamgauge.studies.latency_breakdown.decompose import doubts


@pytest.mark.parametrize(
    ("remainder_share", "contradicted_share", "expected"),
    [(-0.03, 0.001, "the sum of the stages differs"), (0.001, 0.03, "contradict each other")],
)
def test_what_does_not_agree_is_doubted(remainder_share: float, contradicted_share: float, expected: str) -> None:
    """And nothing else is."""
    assert list(doubts(decomposition(0.001, 0.001))) == []
    (doubt,) = doubts(decomposition(remainder_share, contradicted_share))
    assert expected in doubt


def decomposition(remainder_share: float, contradicted_share: float) -> Decomposition:
    latency = TrialLatency(mean_us=1.0, results=1, contradicted_share=contradicted_share)
    return Decomposition(latency=latency, remainder_share=remainder_share)
