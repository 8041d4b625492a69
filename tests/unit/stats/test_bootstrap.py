"""stats/bootstrap.py: what an interval says, and how often it is right."""

import math
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamgauge.stats import bootstrap
from streamgauge.stats.bootstrap import (
    Interval,
    block_length,
    fitted_interval,
    independent_slope_interval,
    ratio_interval,
    slope_interval,
)
from tests.helpers_quick_draws import replicates
from tests.statistics.slope_coverage import autocorrelated, coverage


def residuals(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What a straight line leaves of the values (n,)."""
    slope, level = np.polyfit(times, values, 1)
    return np.asarray(values - level - slope * times)


@pytest.mark.usefixtures("quick_draws")
@pytest.mark.parametrize(
    ("n", "correlation", "least"),
    [
        (10, 0.0, 0.93), (60, 0.0, 0.93), (20, 0.5, 0.85), (60, 0.5, 0.87), (300, 0.5, 0.91), (20, 0.8, 0.8),
        (100, 0.8, 0.89),
    ],
)  # fmt: skip
def test_the_interval_covers_the_true_slope_about_as_often_as_it_says(n: int, correlation: float, least: float) -> None:
    """The 95 % interval, by 400 simulations each: at most two of their errors below what its docstring says."""
    assert coverage(n, correlation, slope=0.3) >= least


@pytest.mark.parametrize(
    ("n", "correlation", "seed", "length", "half_width"),
    [(20, 0.8, 2, 4, 0.0863044746), (60, 0.5, 5, 7, 0.0222783274), (200, 0.8, 3, 25, 0.00586636733)],
)
def test_the_interval_of_a_fixed_series_stays_what_it_is(
    n: int, correlation: float, seed: int, length: int, half_width: float
) -> None:
    """To the digit: coverage alone is too coarse to hold block length, degrees of freedom and the residuals' loss."""
    times, values = np.arange(float(n)), autocorrelated(n, correlation, np.random.default_rng(seed))
    assert block_length(residuals(times, values)) == length
    assert slope_interval(times, values).half_width == pytest.approx(half_width, rel=1e-6)


@pytest.mark.parametrize(("period", "n"), [([1.0, -1.0], 40), ([1.0, 1.0, -1.0, -1.0], 24)])
def test_neighbours_that_differ_leave_the_textbook_interval(period: list[float], n: int) -> None:
    """Blocks spread less than independent residuals: that a quarter of the series is one block widens nothing."""
    times, values = np.arange(float(n)), np.resize(period, n)
    assert block_length(residuals(times, values)) == n // 4
    assert slope_interval(times, values) == independent_slope_interval(times, values)


@pytest.mark.parametrize(("n", "length"), [(15, 1), (16, 4)])
def test_blocks_begin_at_sixteen_points(n: int, length: int) -> None:
    """With fewer they would be three points each, and too few to estimate anything from."""
    times = np.arange(float(n))
    values = np.where(times % 8 < 4, 1.0, -1.0)
    assert block_length(residuals(times, values)) == length
    same = slope_interval(times, values) == independent_slope_interval(times, values)
    assert same is (length == 1)


@given(seed=st.integers(0, 10_000), n=st.integers(16, 60), correlation=st.floats(-0.9, 0.9), block=st.integers(2, 20))
def test_the_interval_is_never_narrower_than_the_textbook_one(
    seed: int, n: int, correlation: float, block: int
) -> None:
    """Whatever the series and its blocks."""
    times, values = np.arange(float(n)), autocorrelated(n, correlation, np.random.default_rng(seed))
    textbook = independent_slope_interval(times, values).half_width
    with patch.object(bootstrap, "REPLICATES", 50):
        assert slope_interval(times, values, block=block).half_width >= textbook


@pytest.mark.parametrize(("n", "length"), [(16, 4), (17, 4), (60, 2), (60, 15), (61, 7), (200, 31), (30, 30)])
@pytest.mark.parametrize("seed", [0, 4])
def test_the_quick_draws_of_tests_are_those_of_the_library(n: int, length: int, seed: int) -> None:
    """Replicate by replicate; so what simulations with them say is said of the intervals that users get."""
    residuals, weights = np.random.default_rng([n, seed]).normal(size=(2, n))
    library = bootstrap._replicates(residuals, weights, length)
    assert library.std() > 0
    assert replicates(residuals, weights, length) == pytest.approx(library, rel=1e-9, abs=1e-12)


def test_without_blocks_the_interval_is_the_textbook_one() -> None:
    """Too few points for blocks give Student's interval as scipy computes it."""
    times, values = np.arange(6.0), np.array([1.0, 2.5, 2.0, 4.5, 4.0, 7.0])
    fit = stats.linregress(times, values)
    half = stats.t.ppf(0.975, 4) * fit.stderr
    interval = slope_interval(times, values)
    assert (interval.low, interval.high) == pytest.approx((fit.slope - half, fit.slope + half))


@given(slope=st.floats(-1e3, 1e3), level=st.floats(-1e6, 1e6), n=st.integers(3, 40))
def test_a_line_without_noise_is_known_exactly(slope: float, level: float, n: int) -> None:
    """Whatever the line, the estimate is its slope and the interval holds it."""
    times = np.arange(n, dtype=float)
    interval = slope_interval(times, level + slope * times)
    slack = 1e-9 * (1 + abs(level) + abs(slope))
    assert abs(interval.estimate - slope) <= slack
    assert interval.half_width <= slack


@given(scale=st.floats(0.01, 1e4), shift=st.floats(-1e3, 1e3))
def test_the_interval_follows_a_change_of_units(scale: float, shift: float) -> None:
    """Other units of the value scale estimate and interval alike; another zero of time changes nothing."""
    times, values = np.arange(40.0), autocorrelated(40, 0.4, np.random.default_rng(9))
    base, changed = slope_interval(times, values), slope_interval(times + shift, scale * values)
    assert changed.estimate == pytest.approx(scale * base.estimate, rel=1e-6, abs=1e-9)
    assert changed.half_width == pytest.approx(scale * base.half_width, rel=1e-6)


@pytest.mark.parametrize(
    ("times", "values"), [([], []), ([1.0], [2.0]), ([1.0, 2.0], [3.0, 4.0]), ([1, 1, 1], [1, 2, 3])]
)
def test_too_few_points_say_nothing(times: list[float], values: list[float]) -> None:
    """No slope can be told from two points or from one moment: the interval is infinite."""
    interval = slope_interval(times, values)
    assert (interval.low, interval.high) == (-math.inf, math.inf)


def test_values_that_are_not_finite_are_refused() -> None:
    """A NaN must not turn into an interval that passes."""
    with pytest.raises(ValueError, match="values must be"):
        slope_interval([0, 1, 2], [1.0, math.nan, 2.0])
    with pytest.raises(ValueError, match="mismatch"):
        slope_interval([0, 1, 2], [1.0, 2.0])


def fitted(random: np.random.Generator) -> Interval:
    """Around 0.1 + 0.4 + 1.3 / 4 = 0.825."""
    design = np.stack([np.ones(15), random.uniform(0.5, 2.0, 15), random.integers(0, 2, 15)], axis=1)
    return fitted_interval(design, design @ [0.1, 0.4, 1.3] + random.normal(0, 0.2, 15), [1.0, 1.0, 0.25])


def of_sums(random: np.random.Generator) -> Interval:
    below = random.uniform(0.5, 2.0, 12)
    return ratio_interval(0.7 * below + random.normal(0, 0.2, 12), below)


@pytest.mark.parametrize(("interval_of", "truth", "most"), [(fitted, 0.825, 0.98), (of_sums, 0.7, 1)])
def test_an_interval_covers_the_truth_about_as_often_as_it_says(
    interval_of: Callable[[np.random.Generator], Interval], truth: float, most: float
) -> None:
    random = np.random.default_rng(7)
    intervals = [interval_of(random) for _ in range(300)]
    assert 0.92 * 300 <= sum(each.low <= truth <= each.high for each in intervals) <= most * 300


def test_columns_that_depend_on_each_other_are_one() -> None:
    """Batches that each cover two slides: the cost of a slide and of its time are inseparable, and need not be."""
    design = np.stack([np.ones(12), np.resize([2.0, 4.0], 12), np.resize([1.0, 2.0], 12)], axis=1)
    interval = fitted_interval(design, design @ [0.1, 0.3, 0.4], [0.5, 1.0, 0.5])
    assert interval.estimate == pytest.approx(0.05 + 0.3 + 0.2)
    assert interval.half_width < 1e-9


def test_an_estimate_of_too_little_is_unknown() -> None:
    """As many values as columns are fitted by anything."""
    assert math.isinf(fitted_interval(np.eye(3), [1.0, 2.0, 3.0], [1.0, 0.0, 0.0]).high)
    for above, below in (([1.0, 2.0], [1.0, 1.0]), ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])):
        assert math.isinf(ratio_interval(above, below).high)
    with pytest.raises(ValueError, match="must not be negative"):
        ratio_interval([1.0, 1.0, 1.0], [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="broadcast"):
        ratio_interval([1.0, 1.0, 1.0], [1.0, 1.0])
