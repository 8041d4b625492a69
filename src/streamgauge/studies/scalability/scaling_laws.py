"""Laws fitted to capacities over resources: a straight line, and the Universal Scalability Law, with intervals.

The line is that of Ehrenstein 2020, figure 5. The law is Gunther's: capacity(n) = rate n / (1 + contention (n - 1) +
coherency n (n - 1)), fitted to logarithms, because the error of a capacity is a share of it.

Intervals are by bootstrap. Each replicate adds to the fitted values residuals drawn from those of the fit, enlarged for
the parameters that the fit spent, and moves each capacity within its bracket: the true one lies between the load that
held and the next one that did not. With as many capacities as parameters no residuals are left.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from streamgauge.core.arrays import Floats
from streamgauge.results.scalability import Figure

REPLICATES = 400
CONFIDENCE = 0.95
ROUNDING = 1e-9
"""A parameter below this share of the capacities is 0: the rest is rounding, which differs between processors."""
_COHERENCY_MAX = 10.0


@dataclass(frozen=True)
class MeasuredCapacity:
    """A measured capacity: `low` held and `high` did not. Repetitions are brackets of the same resources."""

    resources: float
    low: float
    high: float

    @property
    def middle(self) -> float:
        return math.sqrt(self.low * self.high)


@dataclass(frozen=True)
class ScalingLaw:
    """A fitted law: its parameters by name, and one set of parameters for each replicate.

    `has_residuals`: whether it had more capacities than parameters. Else it goes through all of them, and intervals
    hold only the brackets of the capacities.
    """

    parameters: dict[str, Figure]
    r_squared: float | None
    has_residuals: bool
    _values: Floats
    _replicates: Floats
    _law: Callable[[Floats, Floats], Floats]

    def at(self, resources: float) -> Figure:
        """The capacity that the law expects. Beyond the measured levels the interval is all that is known."""
        where = np.array([float(resources)])
        return _estimate(
            float(self._law(self._values, where)[0]),
            np.array([self._law(values, where)[0] for values in self._replicates]),
        )

    @property
    def peak(self) -> Figure | None:
        """The resources beyond which capacity falls, by the Universal Scalability Law; None if it never falls."""
        if "coherency" not in self.parameters or not self.parameters["coherency"].value > 0:
            return None
        return _estimate(_peak(self._values), np.array([_peak(values) for values in self._replicates]))


def fit_line(brackets: Sequence[MeasuredCapacity]) -> ScalingLaw | str:
    """capacity = intercept + slope * resources; or why it cannot be fitted."""
    return _fit(("intercept", "slope"), brackets, _line, _solve_line, multiplicative=False)


def fit_universal_law(brackets: Sequence[MeasuredCapacity]) -> ScalingLaw | str:
    """The Universal Scalability Law; or why it cannot be fitted."""
    return _fit(("rate", "contention", "coherency"), brackets, _universal, _solve_universal, multiplicative=True)


def _fit(
    names: Sequence[str],
    brackets: Sequence[MeasuredCapacity],
    law: Callable[[Floats, Floats], Floats],
    solve: Callable[[Floats, Floats], Floats],
    multiplicative: bool,
) -> ScalingLaw | str:
    levels = {bracket.resources for bracket in brackets}
    if len(levels) < len(names):
        return f"needs at least {len(names)} levels whose capacity a load exceeded, and has {len(levels)}"
    if any(not 0 < bracket.low <= bracket.high < math.inf for bracket in brackets):
        return "needs capacities above zero that a load exceeded"
    forward, backward = (np.log, np.exp) if multiplicative else (np.asarray, np.asarray)
    x = np.array([float(bracket.resources) for bracket in brackets])
    y = np.array([bracket.middle for bracket in brackets])
    values = solve(x, y)
    residuals = forward(y) - forward(law(values, x))
    spare = len(y) - len(names)
    enlarged = residuals * math.sqrt(len(y) / spare) if spare else residuals
    draw = np.random.default_rng(1)
    lows, highs = (np.array([getattr(bracket, end) for bracket in brackets]) for end in ("low", "high"))
    replicates = []
    for _ in range(REPLICATES):
        moved = forward(lows * (highs / lows) ** draw.random(len(y))) - forward(y)
        again = backward(forward(law(values, x)) + draw.choice(enlarged, len(y)) + moved)
        replicates.append(solve(x, np.maximum(again, 1e-12)))
    drawn = np.array(replicates)
    total = float(np.sum((forward(y) - forward(y).mean()) ** 2))
    return ScalingLaw(
        parameters={one: _estimate(float(values[n]), drawn[:, n]) for n, one in enumerate(names)},
        r_squared=1 - float(np.sum(residuals**2)) / total if total else None,
        has_residuals=spare > 0,
        _values=values,
        _replicates=drawn,
        _law=law,
    )


def _estimate(value: float, replicates: Floats) -> Figure:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(replicates, (tail, 1 - tail))
    return Figure(
        value=value, low=min(float(low), value), high=max(float(high), value) if math.isfinite(high) else None
    )


def _line(values: Floats, n: Floats) -> Floats:
    return values[0] + values[1] * n


def _solve_line(x: Floats, y: Floats) -> Floats:
    line: Floats = np.polyfit(x, y, 1)[::-1]
    return np.where(np.abs(line) < ROUNDING * np.abs(y).max(), 0.0, line)


def _universal(values: Floats, n: Floats) -> Floats:
    rate, contention, coherency = values
    return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def _solve_universal(x: Floats, y: Floats) -> Floats:
    def residuals(values: Floats) -> Floats:
        return np.log(_universal(np.array([math.exp(values[0]), *values[1:]]), x)) - np.log(y)

    bounds = ([-math.inf, 0.0, 0.0], [math.inf, 1.0, _COHERENCY_MAX])
    start = [math.log(float(np.median(y / x))), 0.05, 0.001]
    found = least_squares(residuals, start, bounds=bounds, x_scale=[1.0, 0.1, 0.01]).x
    return np.array([math.exp(found[0]), *found[1:]])


def _peak(values: Floats) -> float:
    _, contention, coherency = values
    return math.sqrt((1 - contention) / coherency) if coherency > 0 else math.inf
