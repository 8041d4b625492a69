"""stats/ratio.py: what the interval of a ratio says, and how often it is right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamgauge.stats import ratio as under_test
from streamgauge.stats.ratio import Estimate, Resampled, draws, like, mean_over, over_runs, ratio

SLOTS = np.geomspace(50, 50_000, 400)


def seconds(n: int, rng: np.random.Generator, factor: float = 1.0, correlation: float = 0.0) -> np.ndarray:
    """Histograms (n, slots) of synthetic latencies around 1000 `factor`, whose seconds resemble their neighbours."""
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] = correlation * noise[i - 1] + math.sqrt(1 - correlation**2) * noise[i]
    values = 1000 * factor * np.exp(0.2 * noise[:, None] + 0.3 * rng.normal(size=(n, 100)))
    slots = np.clip(np.searchsorted(SLOTS, values), 0, SLOTS.size - 1)
    return np.stack([np.bincount(row, minlength=SLOTS.size) for row in slots])


def quantile(counts: np.ndarray, q: float) -> float:
    upto = counts.sum(axis=0).cumsum()
    return float(SLOTS[np.searchsorted(upto, math.floor(q * upto[-1] + 0.5))])


def covered_by_seconds(n: int, correlation: float, q: float, times: int = 80) -> float:
    """How often the interval of two single runs holds the true ratio, 1.1."""
    rng, inside = np.random.default_rng(n), 0
    for _ in range(times):
        a, b = seconds(n, rng, 1.0, correlation), seconds(n, rng, 1.1, correlation)
        estimates = (Resampled(counts, SLOTS).quantile(quantile(counts, q), q) for counts in (a, b))
        interval = ratio(*estimates)
        inside += interval.low <= 1.1 <= interval.high
    return inside / times


def covered_by_runs(n_a: int, n_b: int, spread: float, times: int = 2000) -> float:
    rng, inside = np.random.default_rng(n_a), 0
    for _ in range(times):
        a, b = rng.normal(1, spread, n_a), 1.1 * rng.normal(1, spread, n_b)
        one, other = over_runs(a), over_runs(b)
        interval = ratio(like(a[0], other, n_b) if n_a == 1 else one, other)
        inside += interval.low <= 1.1 <= interval.high
    return inside / times


@pytest.mark.parametrize(
    ("n", "correlation", "q", "least"),
    [(20, 0.0, 0.5, 0.88), pytest.param(60, 0.5, 0.99, 0.84, marks=pytest.mark.long)],
)
def test_two_runs_intervals_hold_the_truth(
    n: int, correlation: float, q: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By simulation over seeds: near 95 % where seconds are independent, and not far below where they are not."""
    monkeypatch.setattr(under_test, "REPLICATES", 150)
    assert covered_by_seconds(n, correlation, q) >= least


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 2), (3, 3), (3, 6), (1, 4)])
@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_repeated_runs_intervals_hold_the_truth(n_a: int, n_b: int, spread: float) -> None:
    """Three runs a side are enough for an interval that is right as often as it says."""
    assert covered_by_runs(n_a, n_b, spread) >= 0.93


def test_fieller_of_a_known_start_is_students_interval() -> None:
    """Where A is known exactly, the interval is that of B's mean, divided by A."""
    runs = [10.0, 11.0, 12.5]
    interval = ratio(Estimate(5.0, 0.0, 2.0), over_runs(runs))
    half = stats.t.ppf(0.975, 2) * stats.sem(runs)
    middle = float(np.mean(runs))
    assert (interval.low, interval.high) == pytest.approx(((middle - half) / 5, (middle + half) / 5))


positive = st.floats(0.1, 1e6)
errors = st.floats(0, 1)


@given(a=positive, b=positive, share_a=errors, share_b=errors, scale=st.floats(0.01, 1e3))
def test_units_do_not_matter(a: float, b: float, share_a: float, share_b: float, scale: float) -> None:
    """The interval holds its estimate, and the same figures in another unit give the same ratio."""

    def of(unit: float):  # type: ignore[no-untyped-def]
        return ratio(Estimate(a * unit, a * share_a * unit, 2.0), Estimate(b * unit, b * share_b * unit, 2.0))

    one, other = of(1.0), of(scale)
    assert one.low <= one.estimate <= one.high
    assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=1e-3, abs=1e-6)


def test_one_run_says_nothing_about_the_next() -> None:
    """Without a spread the ends are not known; an uncertain start leaves them open too."""
    assert ratio(over_runs([3.0]), over_runs([3.0, 3.1])).high == math.inf
    assert ratio(Estimate(1.0, 0.9, 2.0), Estimate(1.0, 0.1, 2.0)).high == math.inf
    with pytest.raises(ValueError, match="above 0"):
        ratio(Estimate(0.0, 0.1, 2.0), Estimate(1.0, 0.1, 2.0))


def test_nothing_at_all_on_the_other_side_is_known_exactly() -> None:
    """An engine that took in nothing, three times, is 100 % lower for certain."""
    interval = ratio(over_runs([9.0, 10.0, 11.0]), over_runs([0.0, 0.0, 0.0]))
    assert (interval.low, interval.estimate, interval.high) == (0, 0, 0)


def test_a_search_is_no_surer_than_its_bracket() -> None:
    """Three searches that end at the same rate still do not know what lies inside the bracket."""
    assert over_runs([100.0] * 3).error == 0
    assert over_runs([100.0] * 3, resolution=6.0).error == pytest.approx(6 / math.sqrt(12))


def test_a_sawtooth_is_surer_than_its_seconds() -> None:
    """Deliveries every fourth second add up to a steady rate; taken as independent they would not."""
    handed = np.tile([0.0, 0.0, 0.0, 400.0], 15)
    assert mean_over(handed, sawtooth=True).error < 0.5 * mean_over(handed).error


def test_draws_keep_the_number_of_units_and_their_neighbours() -> None:
    """Each replicate draws n units; in one block all of them, once."""
    assert (draws(12, 3, replicates=50).sum(axis=1) == 12).all()
    assert (draws(12, 12, replicates=5) == 1).all()


def test_percentiles_are_of_merged_histograms() -> None:
    """One slow second of many results: the percentile's error is of the whole, not the mean of the seconds' own."""
    counts = np.zeros((4, 3), dtype=np.int64)
    counts[:3, 0], counts[3, 2] = 1, 997
    slots = Resampled(counts, np.array([1.0, 2.0, 3.0]))
    merged = slots._upto[slots._upto[:, 2] > 4]
    assert (merged[:, 0] < 0.5 * merged[:, 2]).all()
    assert slots.quantile(3.0, 0.5).value == 3.0
