"""Key distributions: frequencies against the exact probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, ks_1samp, norm

from streamgauge.loadgen.random.distributions import Distribution, Uniform, probabilities, sampler
from streamgauge.loadgen.random.philox import PhiloxBits

EVENTS = 1_000_000
LANES = PhiloxBits(3, 0, 0, 0).lanes(0, EVENTS)
CASES = [("uniform", 1000), ("normal", 1000), ("zipf", 1000), ("normal", 10), ("zipf", 50_000), ("normal", 50_000)]


def draw(distribution: Distribution, domain: int, exponent: float = 1.0) -> np.ndarray:
    out = np.empty(EVENTS, dtype=np.int32)
    sampler(distribution, domain, exponent).fill(LANES, out)
    return out


def cumulative(distribution: Distribution, domain: int) -> np.ndarray:
    return np.cumsum(probabilities(distribution, domain))


@pytest.mark.parametrize(("distribution", "domain"), CASES)
def test_frequencies_fit_the_distribution(distribution: Distribution, domain: int) -> None:
    """A chi-square test of a million events against the exact probabilities, rare keys pooled, finds nothing."""
    counts = np.bincount(draw(distribution, domain), minlength=domain)
    expected = probabilities(distribution, domain) * EVENTS
    pools = np.minimum(np.cumsum(expected) // 50, EVENTS // 50 - 1).astype(int)
    used = np.unique(pools)
    observed = np.bincount(pools, counts)[used]
    assert chisquare(observed, np.bincount(pools, expected)[used]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("distribution", "domain"), [("normal", 1_000_000), ("zipf", 1_000_000), ("uniform", 2**31 - 1)]
)
def test_large_domains_fit_the_distribution(distribution: Distribution, domain: int) -> None:
    """A Kolmogorov-Smirnov test at every key that came holds for domains far beyond the guide table's cells."""
    keys = np.sort(draw(distribution, domain))
    exact = (keys + 1.0) / domain if distribution == "uniform" else cumulative(distribution, domain)[keys]
    last_of_key = np.append(keys[1:] != keys[:-1], True)
    found = np.arange(1, EVENTS + 1)[last_of_key] / EVENTS
    assert np.abs(found - exact[last_of_key]).max() < 2.2 / np.sqrt(EVENTS)


def test_normal_keys_are_normal() -> None:
    """Mean in the middle, a sixth of the domain as standard deviation; the ends hold what is clipped."""
    keys = draw("normal", 100_000)
    inside = keys[(keys > 0) & (keys < 99_999)]
    model = norm(50_000, 100_000 / 6)
    low, high = model.cdf([1, 99_999])
    assert ks_1samp(inside + 0.5, lambda x: (model.cdf(x) - low) / (high - low)).pvalue > 1e-4
    assert (keys == 0).mean() == pytest.approx(norm.cdf(-3), rel=0.15)


@given(st.integers(2, 6000), st.sampled_from(["normal", "zipf"]), st.floats(0, 3))
def test_a_table_agrees_with_a_search_of_all_borders(domain: int, distribution: Distribution, exponent: float) -> None:
    """The guide table gives, for every lane, the key that the inverse of the distribution gives."""
    lanes = np.concatenate((LANES[:2000], np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32)))
    by = sampler.__wrapped__(distribution, domain, exponent)
    out = np.empty(len(lanes), dtype=np.int32)
    by.fill(lanes, out)
    borders = np.minimum(
        np.floor(np.cumsum(probabilities(distribution, domain, exponent))[:-1] * 2**32 + 0.5), 2**32 - 1
    )
    assert (out == np.searchsorted(borders, lanes, side="right")).all()


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_uniform_reaches_both_ends(one: int, other: int) -> None:
    """The lowest and the highest lane give the lowest and the highest value, and none leaves the range."""
    low, high = min(one, other), max(one, other)
    lanes = np.array([0, 2**32 - 1, 2**31, 12345], dtype=np.uint32)
    out = np.empty(4, dtype=np.int32)
    Uniform(high - low + 1, low).fill(lanes, out)
    assert out[:2].tolist() == [low, high]
    assert ((out >= low) & (out <= high)).all()


def test_single_is_one_key() -> None:
    """`single` gives key 0 alone, whatever the domain."""
    assert np.unique(draw("single", 1000)).tolist() == [0]


def test_zipf_weights() -> None:
    """With exponent 2 the second key comes a quarter as often as the first."""
    first, second, *_ = probabilities("zipf", 100, 2.0)
    assert second / first == pytest.approx(0.25)
