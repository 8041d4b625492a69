"""How many differences must be above nothing: against the binomial distribution, counted out."""

from __future__ import annotations

import math

import pytest

from streamgauge.stats.sign_test import positives_needed


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 20, 99, 100, 101])
def test_it_is_the_fewest_that_chance_does_not_give(n: int, confidence: float) -> None:
    """Both tails together are at most 1 - confidence from there on, and more just below."""

    def by_chance(least: int) -> float:
        return 2 * sum(math.comb(n, k) for k in range(least, n + 1)) / 2**n

    needed = positives_needed(n, confidence)
    assert by_chance(needed) <= 1 - confidence
    assert by_chance(needed - 1) > 1 - confidence
