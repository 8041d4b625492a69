"""Laws fitted to capacities over resources: a straight line, and the Universal Scalability Law, with intervals.

The line is that of Ehrenstein 2020, figure 5. The law is Gunther's: capacity(n) = rate n / (1 + contention (n - 1) +
coherency n (n - 1)), fitted to logarithms, because the error of a capacity is a share of it.

Intervals are by bootstrap. Each replicate adds to the fitted values residuals drawn from those of the fit, enlarged for
the parameters that the fit spent, and moves each capacity within its bracket: the true one lies between the load that
held and the next one that did not. With as many capacities as parameters no residuals are left.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import least_squares

from streamgauge.core.arrays import Floats
from streamgauge.results.scalability import Capacity, Figure, Fit, FittedPoint

REPLICATES = 400
CONFIDENCE = 0.95
ROUNDING = 1e-9
"""A parameter below this share of the capacities is 0: the rest is rounding, which differs between processors."""
_COHERENCY_MAX = 10.0
CURVE_POINTS = 33
EXTRAPOLATED = 2.0
"""How far a fitted curve goes, as a multiple of the greatest level."""
PEAK_MAX = 10.0
"""A peak further beyond the greatest level, as a multiple of it, is out of sight."""
NO_RESIDUALS = (
    "with as many levels as parameters it fits any capacities, so the intervals hold only their brackets, and nothing "
    "of how well the law fits; measure one more level"
)


def fit_line(capacities: Sequence[Capacity], levels: Sequence[int]) -> Fit:
    """capacity = intercept + slope * resources. `levels`: those of the study, also of capacities that are unknown."""
    return _fit("linear", ("intercept", "slope"), capacities, levels, _line, _solve_line)


def fit_universal_law(capacities: Sequence[Capacity], levels: Sequence[int]) -> Fit:
    """The Universal Scalability Law, with the resources beyond which capacity falls."""
    names = ("rate", "contention", "coherency")
    return _fit("universal", names, capacities, levels, _universal, _solve_universal, (np.log, np.exp), _peak)


def _fit(
    name: str,
    parameters: Sequence[str],
    capacities: Sequence[Capacity],
    levels: Sequence[int],
    law: Callable[[Floats, Floats], Floats],
    solve: Callable[[Floats, Floats], Floats],
    scale: tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]] = (np.asarray, np.asarray),
    peak_of: Callable[[Floats], float] | None = None,
) -> Fit:
    """The fitted law, or why it cannot be fitted. `scale`: to what residuals belong, and back."""
    ends = [
        (one.resources, one.load, one.refused)
        for one in capacities
        if one.load is not None and one.refused is not None and one.decided
    ]
    if len(ends) < len(parameters):
        reason = f"needs at least {len(parameters)} levels whose capacity a load exceeded, and has {len(ends)}"
        return Fit(law=name, reason=reason)
    forward, backward = scale
    x, lows, highs = np.array(ends, float).T
    y = np.sqrt(lows * highs)
    values = solve(x, y)
    residuals = forward(y) - forward(law(values, x))
    spare = len(y) - len(parameters)
    enlarged = residuals * math.sqrt(len(y) / spare) if spare else residuals
    draw = np.random.default_rng(1)
    replicates = []
    for _ in range(REPLICATES):
        moved = forward(lows * (highs / lows) ** draw.random(len(y))) - forward(y)
        again = backward(forward(law(values, x)) + draw.choice(enlarged, len(y)) + moved)
        replicates.append(solve(x, np.maximum(again, 1e-12)))
    total = float(np.sum((forward(y) - forward(y).mean()) ** 2))
    where = np.geomspace(levels[0], EXTRAPOLATED * levels[-1], CURVE_POINTS)
    points = zip(where, law(values, where), np.array([law(each, where) for each in replicates]).T, strict=True)
    peak = None
    if peak_of is not None and peak_of(values) <= PEAK_MAX * levels[-1]:
        peak = _figure(peak_of(values), np.array([peak_of(each) for each in replicates]))
    return Fit(
        law=name,
        parameters={
            one: _figure(value, drawn)
            for one, value, drawn in zip(parameters, values, np.array(replicates).T, strict=True)
        },
        r_squared=1 - float(np.sum(residuals**2)) / total if total else None,
        note="" if spare else NO_RESIDUALS,
        peak=peak,
        curve=tuple(FittedPoint(resources=n, **dict(_figure(value, drawn))) for n, value, drawn in points),
    )


def _figure(value: float, replicates: Floats) -> Figure:
    """A figure with its interval. Beyond the measured levels the interval is all that is known."""
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(end) for end in np.quantile(replicates, (tail, 1 - tail)))
    value = float(value)
    return Figure(value=value, low=min(low, value), high=max(high, value) if math.isfinite(high) else None)


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
