"""The laws fitted to capacities, and their intervals."""

import math
from typing import Any

import numpy as np
import pytest

from streamgauge.results.scalability import Capacity
from streamgauge.studies.scalability.scaling_laws import fit_line, fit_universal_law

LEVELS = (1, 2, 4, 8, 16)


def law(n: float, rate: float = 1e5, contention: float = 0.0, coherency: float = 0.0) -> float:
    return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def capacity(resources: int, low: float, high: float | None) -> Capacity:
    return Capacity(resources=resources, load=low, refused=high, measured=True, decided=True)


def capacities(width: float = 1.001, noise: float = 0.0, seed: int = 0, **parameters: float) -> list[Capacity]:
    draw = np.random.default_rng(seed)
    middles = [law(n, **parameters) * math.exp(noise * draw.normal()) for n in LEVELS]
    # Where the true capacity lies in its bracket is chance.
    triples = zip(LEVELS, middles, draw.random(len(LEVELS)), strict=True)
    return [capacity(n, middle * width**-start, middle * width ** (1 - start)) for n, middle, start in triples]


def universal(measured: list[Capacity]) -> Any:
    """The law of capacities; `Any`, because its peak may be None."""
    return fit_universal_law(measured, LEVELS)


@pytest.mark.parametrize(
    ("contention", "coherency"), [(0.0, 0.0), (0.1, 0.0), (0.05, 0.005)], ids=["linear", "contended", "coherent"]
)
def test_the_universal_law_is_found(contention: float, coherency: float) -> None:
    """Of exact capacities within their brackets' width."""
    fit = universal(capacities(contention=contention, coherency=coherency))
    assert fit.parameters["rate"].value == pytest.approx(1e5, rel=0.01)
    assert fit.parameters["contention"].value == pytest.approx(contention, abs=0.005)
    assert fit.parameters["coherency"].value == pytest.approx(coherency, abs=5e-4)
    assert fit.r_squared > 0.999


def test_the_peak_of_a_coherent_system_is_found() -> None:
    """Beyond it more resources cost capacity; a contended system has none in sight."""
    peak = universal(capacities(contention=0.05, coherency=0.01)).peak
    assert peak.low <= math.sqrt(0.95 / 0.01) <= peak.high
    assert universal(capacities(contention=0.1)).peak is None


def test_a_straight_line_is_found() -> None:
    """With the capacity that it expects beyond the levels."""
    fit = fit_line(capacities(), LEVELS)
    assert fit.parameters["slope"].value == pytest.approx(1e5, rel=0.01)
    assert (fit.curve[-1].resources, fit.curve[-1].value) == (32, pytest.approx(32e5, rel=0.01))


@pytest.mark.long
@pytest.mark.parametrize("width", [1.05, 1.3])
def test_intervals_hold_the_true_parameters(width: float) -> None:
    """95 % intervals of 40 simulated studies each; a wide bracket widens them."""
    inside = 0
    for seed in range(40):
        point = universal(capacities(width, 0.02, seed, contention=0.1, coherency=0.002)).curve[23]
        inside += point.low <= law(point.resources, contention=0.1, coherency=0.002) <= point.high
    assert inside >= 34


def test_an_interval_widens_beyond_the_measured_levels() -> None:
    """An extrapolation is worth its interval."""
    curve = universal(capacities(1.1, 0.03, 3, contention=0.05, coherency=0.002)).curve
    near, far = ((point.high - point.low) / point.value for point in (curve[20], curve[-1]))
    assert far > 1.5 * near


@pytest.mark.usefixtures("quick_fits")
def test_too_few_levels_to_fit_and_to_leave_residuals_are_reported() -> None:
    """With as many parameters as levels a law goes through every capacity, whatever they are."""
    fits = [universal(capacities()[:levels]) for levels in (2, 3, 4)]
    assert fits[0].reason == "needs at least 3 levels whose capacity a load exceeded, and has 2"
    assert ["measure one more level" in fit.note for fit in fits] == [False, True, False]
    assert "has 2" in universal([*capacities()[:2], capacity(16, 1e6, None)]).reason


def test_residuals_are_enlarged_for_the_parameters_that_the_fit_spent() -> None:
    """Of four capacities a line leaves two degrees of freedom: the residuals alone would give 0.7 of the error."""
    levels, loads = np.array([1.0, 2.0, 3.0, 4.0]), np.array([11e4, 19e4, 31e4, 39e4])
    fit: Any = fit_line([capacity(int(n), one, one) for n, one in zip(levels, loads, strict=True)], (1, 4))
    slope, intercept = np.polyfit(levels, loads, 1)
    squares = float(np.sum((loads - intercept - slope * levels) ** 2))
    error = math.sqrt(squares / 2 / float(np.sum((levels - levels.mean()) ** 2)))
    interval = fit.parameters["slope"]
    assert (interval.high - interval.low) / 2 / 1.96 == pytest.approx(error, rel=0.1)
