"""stats/percentile.py: which percentile may be printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.stats.percentile import carries, observations_needed


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


@pytest.mark.parametrize("q", [-0.1, 1.0, 99])
def test_a_percentile_is_a_share(q: float) -> None:
    """99 is no share: percent are refused instead of being read as certainty."""
    with pytest.raises(ValueError, match="q must be"):
        carries(q, 10)
