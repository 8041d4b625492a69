"""stats/percentile.py: which percentile may be printed.

How many differences must be above nothing: against the binomial distribution, counted out.

Some of many: evenly, and in step with nothing.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.stats.samples import carries, observations_needed, positives_needed, stratified_indices


@pytest.mark.parametrize(("q", "least"), [(0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1000)])
def test_a_percentile_needs_one_observation_beyond_it(q: float, least: int) -> None:
    """The border lies where exactly one observation is expected beyond the percentile."""
    assert carries(q, least)
    assert not carries(q, least - 1)
    assert observations_needed(q) == least


@given(q=st.floats(0, 0.9999), count=st.integers(0, 20_000))
def test_more_observations_never_carry_less(q: float, count: int) -> None:
    """Growing evidence keeps what it carried."""
    assert carries(q, count + 1) or not carries(q, count)


@pytest.mark.parametrize("q", [1.0, 99])
def test_a_percentile_is_a_share(q: float) -> None:
    """99 is no share: percent are never carried, instead of being read as certainty."""
    assert not carries(q, 10)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 20, 99, 100, 101])
def test_it_is_the_fewest_that_chance_does_not_give(n: int, confidence: float) -> None:
    """Both tails together are at most 1 - confidence from there on, and more just below."""

    def by_chance(least: int) -> float:
        return 2 * sum(math.comb(n, k) for k in range(least, n + 1)) / 2**n

    needed = positives_needed(n, confidence)
    assert by_chance(needed) <= 1 - confidence
    assert by_chance(needed - 1) > 1 - confidence


@given(st.integers(0, 5000), st.integers(1, 200))
def test_there_is_one_of_each_part(count: int, parts: int) -> None:
    """Whatever the parts' length; of few all."""
    indices = stratified_indices(count, parts)
    assert len(indices) == min(count, parts)
    assert (np.diff(indices) > 0).all()
    if count > parts:
        borders = np.arange(parts + 1) * count // parts
        assert (np.searchsorted(borders, indices, side="right") - 1).tolist() == list(range(parts))
    assert indices.tolist() == stratified_indices(count, parts).tolist()


def test_it_is_in_step_with_nothing() -> None:
    """Of chunks of a hundred as many first as last ones are met, though every chunk is one part."""
    assert 45 < (stratified_indices(100_000, 1000) % 100).mean() < 54
