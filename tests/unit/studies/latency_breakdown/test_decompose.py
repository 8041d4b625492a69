"""A trial taken apart, in any mode: what is doubted, and what stands of one that could not be."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.studies.latency_breakdown.decompose import doubts, undecomposed
from streamgauge.studies.latency_breakdown.probe_api import EXTRA_FIELDS


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"remainder_share": -0.03}, "the stages' sum is not"),
        ({"latency": {"contradicted_share": 0.03}}, "do not follow each other"),
    ],
)
def test_what_does_not_agree_is_doubted(changed: dict[str, Any], expected: str) -> None:
    """And nothing else is."""
    sound = {"remainder_share": 0.001, "latency": {"contradicted_share": 0.001}}
    assert list(doubts(sound)) == []
    (doubt,) = doubts({**sound, **changed})
    assert expected in doubt


def test_what_was_not_taken_apart_has_every_key() -> None:
    """With nothing in it."""
    assert undecomposed("why") == {
        "reason": "why", "latency": {}, "first_of_batch": {}, "stages": [], "cdf_us": [], "doubts": [],
        "sampled": None, "remainder_share": None, "batches": None, "left_out": None, **dict.fromkeys(EXTRA_FIELDS),
    }  # fmt: skip
