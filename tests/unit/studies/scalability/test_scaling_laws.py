"""The laws fitted to capacities, and their intervals."""

import math
from typing import Any

import numpy as np
import pytest

from streamgauge.studies.scalability.scaling_laws import MeasuredCapacity, ScalingLaw, fit_line, fit_universal_law

LEVELS = (1, 2, 4, 8, 16)


def law(n: float, rate: float = 1e5, contention: float = 0.0, coherency: float = 0.0) -> float:
    return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def brackets(width: float = 1.001, noise: float = 0.0, seed: int = 0, **parameters: float) -> list[MeasuredCapacity]:
    draw = np.random.default_rng(seed)
    middles = [law(n, **parameters) * math.exp(noise * draw.normal()) for n in LEVELS]
    # Where the true capacity lies in its bracket is chance.
    pairs = zip(LEVELS, middles, draw.random(len(LEVELS)), strict=True)
    return [MeasuredCapacity(n, middle * width**-start, middle * width ** (1 - start)) for n, middle, start in pairs]


def fitted(law: ScalingLaw | str) -> Any:
    """A law, not the reason for none; its peak may be None."""
    assert isinstance(law, ScalingLaw), law
    return law


@pytest.mark.parametrize(
    ("contention", "coherency"), [(0.0, 0.0), (0.1, 0.0), (0.05, 0.005)], ids=["linear", "contended", "coherent"]
)
def test_the_universal_law_is_found(contention: float, coherency: float) -> None:
    """Of exact capacities within their brackets' width."""
    fit = fitted(fit_universal_law(brackets(contention=contention, coherency=coherency)))
    assert fit.parameters["rate"].value == pytest.approx(1e5, rel=0.01)
    assert fit.parameters["contention"].value == pytest.approx(contention, abs=0.005)
    assert fit.parameters["coherency"].value == pytest.approx(coherency, abs=5e-4)
    assert fit.r_squared > 0.999


def test_the_peak_of_a_coherent_system_is_found() -> None:
    """Beyond it more resources cost capacity; a contended system has none in sight."""
    peak = fitted(fit_universal_law(brackets(contention=0.05, coherency=0.01))).peak
    assert peak.low <= math.sqrt(0.95 / 0.01) <= peak.high
    contended = fitted(fit_universal_law(brackets(contention=0.1))).peak
    assert contended is None or contended.high is None or contended.high > 50


def test_a_straight_line_is_found() -> None:
    """With the capacity that it expects elsewhere."""
    fit = fitted(fit_line(brackets()))
    assert fit.parameters["slope"].value == pytest.approx(1e5, rel=0.01)
    assert fit.at(32).value == pytest.approx(32e5, rel=0.01)
    assert fit.peak is None


@pytest.mark.long
@pytest.mark.parametrize("width", [1.05, 1.3])
def test_intervals_hold_the_true_parameters(width: float) -> None:
    """95 % intervals of 40 simulated studies each; a wide bracket widens them."""
    inside = 0
    for seed in range(40):
        fit = fitted(fit_universal_law(brackets(width, 0.02, seed, contention=0.1, coherency=0.002)))
        estimate = fit.at(12)
        inside += estimate.low <= law(12, contention=0.1, coherency=0.002) <= estimate.high
    assert inside >= 34


def test_an_interval_widens_beyond_the_measured_levels() -> None:
    """An extrapolation is worth its interval."""
    fit = fitted(fit_universal_law(brackets(1.1, 0.03, 3, contention=0.05, coherency=0.002)))
    near, far = (fit.at(n) for n in (8, 64))
    assert (far.high - far.low) / far.value > 2 * (near.high - near.low) / near.value


@pytest.mark.usefixtures("quick_fits")
def test_a_law_with_as_many_parameters_as_levels_has_no_residuals() -> None:
    """It goes through every capacity, whatever they are; its interval holds their brackets only."""
    laws = [fitted(fit_universal_law(brackets()[:levels])) for levels in (3, 4, 5)]
    assert [law.has_residuals for law in laws] == [False, True, True]
    assert [fitted(fit_line(brackets()[:levels])).has_residuals for levels in (2, 3)] == [False, True]


def test_too_little_to_fit_is_reported() -> None:
    """Not even an interval could be given."""
    two = brackets()[:2]
    assert fit_universal_law(two) == "needs at least 3 levels whose capacity a load exceeded, and has 2"
    assert isinstance(fit_line(two), ScalingLaw)
    assert fit_line(two[:1]) == "needs at least 2 levels whose capacity a load exceeded, and has 1"
    open_ended = [*brackets()[:4], MeasuredCapacity(16, 1e6, math.inf)]
    assert fit_universal_law(open_ended) == "needs capacities above zero that a load exceeded"


def test_residuals_are_enlarged_for_the_parameters_that_the_fit_spent() -> None:
    """Of four capacities a line leaves two degrees of freedom: the residuals alone would give 0.7 of the error."""
    levels, capacities = np.array([1.0, 2.0, 3.0, 4.0]), np.array([11e4, 19e4, 31e4, 39e4])
    fit = fitted(fit_line([MeasuredCapacity(n, one, one) for n, one in zip(levels, capacities, strict=True)]))
    slope, intercept = np.polyfit(levels, capacities, 1)
    squares = float(np.sum((capacities - intercept - slope * levels) ** 2))
    error = math.sqrt(squares / 2 / float(np.sum((levels - levels.mean()) ** 2)))
    assert fit._replicates[:, 1].std() == pytest.approx(error, rel=0.1)
