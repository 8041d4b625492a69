"""Intervals for the slope of values that follow each other in time, by block bootstrap [method 3].

Seconds of a run are autocorrelated, so an interval that takes them as independent is too narrow. Here the residuals are
resampled in circular blocks (`arch`), which keeps what neighbours have in common. Three things keep the interval honest
for the short series that trials give; all were chosen by simulation, which tests/unit/stats/test_bootstrap.py repeats:

- Blocks are twice as long as the rule of Politis and White says, because the residuals of a fitted line look less
  correlated than the noise was; at most a quarter of the series, so that four blocks or more are drawn from.
- The spread of the replicates is multiplied by Student's t with (number of blocks - fitted parameters) degrees of
  freedom instead of by the normal quantile: few blocks are few observations.
- It is never narrower than the textbook interval for independent residuals, and just that where the blocks spread no
  more than independent residuals would: where they spread more, Student's t of few blocks only adds to it.

Coverage of the 95 % slope interval under AR(1) noise, 3000 simulations each (`python -m tests.stats.slope_coverage`):
no correlation 95 % (10 to 300 points); correlation 0.5 between neighbours 88 % at 20 points, 91 % at 60, 92 % at 100,
93 % at 300; correlation 0.8, which no short series can show, 81 % at 20, 86 % at 40, 91 % at 100, 92 % at 300. Ten
points are taken as independent, since nothing else can be told from them: 79 % and 61 % under correlations of 0.5 and
0.8.
"""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_BLOCK_FACTOR = 2.0
_BLOCKS_MIN = 4
_PARAMETERS = 2
"""Of a line: where it begins, and its slope."""
_ESTIMATED_BLOCK_FROM = 16
"""Below this many points a block length cannot be estimated, and four blocks would be three points each: estimating
them would cost more certainty than it gives, so the textbook interval is all there is."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval; infinite ends where `n` observations say nothing about it."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@functools.cache
def prepare() -> None:
    """Import what an interval needs, and make one: four seconds of a core that must not fall into a measured span."""
    times_s = np.arange(4.0 * _ESTIMATED_BLOCK_FROM)
    slope_interval(times_s, np.sin(times_s))


def slope_interval(
    times_s: ArrayLike,
    values: ArrayLike,
    confidence: float = 0.95,
    block: int | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Interval:
    """Least-squares slope of `values` (n,) over `times_s` (n,), in value units per second, by block bootstrap.

    `block` is in samples; None lets the data choose. ValueError where shapes differ or a value is not finite.
    """
    fit = _fit_line(times_s, values)
    if fit is None:
        return _nothing(np.size(np.asarray(values)), confidence)
    estimate, residuals, weights = fit
    half = _half_width(residuals, weights, confidence, block, replicates, seed)
    return Interval(estimate, estimate - half, estimate + half, confidence, residuals.size)


def independent_slope_interval(times_s: ArrayLike, values: ArrayLike, confidence: float = 0.95) -> Interval:
    """The textbook interval of the slope, which takes residuals as independent: microseconds of work, no resampling.

    For looks during a measured span, where the driver must not take the processor from the system under test.
    """
    fit = _fit_line(times_s, values)
    if fit is None:
        return _nothing(np.size(np.asarray(values)), confidence)
    estimate, residuals, weights = fit
    half = _independent_half_width(residuals, weights, confidence)
    return Interval(estimate, estimate - half, estimate + half, confidence, residuals.size)


def block_length(residuals: Floats) -> int:
    """Samples per block: twice the length of Politis and White, at least 1, at most a quarter of the series."""
    if residuals.size < _ESTIMATED_BLOCK_FROM or np.ptp(residuals) <= 1e-12 * np.abs(residuals).max(initial=1.0):
        return 1
    # Imported here because it brings pandas and statsmodels: two seconds that only a judgement may cost.
    from arch.bootstrap import optimal_block_length

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimal = float(optimal_block_length(residuals)["circular"].iloc[0])
    wanted = _BLOCK_FACTOR * optimal if math.isfinite(optimal) else 1.0
    return int(np.clip(math.ceil(wanted), 1, max(1, residuals.size // _BLOCKS_MIN)))


def _fit_line(times_s: ArrayLike, values: ArrayLike) -> tuple[float, Floats, Floats] | None:
    """(slope, residuals, weights) with slope = weights @ values; None where three distinct points are not there."""
    times, observed = _finite(times_s, "times_s"), _finite(values, "values")
    if times.shape != observed.shape:
        raise ValueError(f"times_s and values must have one shape, got {times.shape} and {observed.shape}")
    if times.size < 3 or np.ptp(times) == 0:
        return None
    centred = times - times.mean()
    weights = centred / (centred @ centred)
    slope = float(weights @ observed)
    return slope, observed - observed.mean() - slope * centred, weights


def _finite(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be one-dimensional and finite")
    return array


def _nothing(n: int, confidence: float) -> Interval:
    return Interval(0.0, -math.inf, math.inf, confidence, n)


def _half_width(
    residuals: Floats,
    weights: Floats,
    confidence: float,
    block: int | None,
    replicates: int,
    seed: int,
) -> float:
    """Half the interval of `weights @ values`: the wider of block bootstrap and independence."""
    independent = _independent_half_width(residuals, weights, confidence)
    length = block_length(residuals) if block is None else min(max(1, block), residuals.size)
    # Blocks of one are the independent bootstrap, whose exact counterpart is at hand.
    if length == 1:
        return independent
    lost = residuals.size / max(1, residuals.size - _PARAMETERS)
    spread = float(_replicates(residuals, weights, length, replicates, seed).std()) * math.sqrt(lost)
    # Neighbours that differ (long and short batches in turns) make a slope more certain than independent ones would:
    # there is nothing to widen for, and few blocks are no reason to.
    if spread <= _independent_error(residuals, weights):
        return independent
    return student(residuals.size / length - _PARAMETERS, confidence) * spread


def _replicates(residuals: Floats, weights: Floats, length: int, replicates: int, seed: int) -> Floats:
    """`weights @ resampled residuals` (replicates,) with circular blocks of `length` samples."""
    from arch.bootstrap import CircularBlockBootstrap

    bootstrap = CircularBlockBootstrap(length, residuals, seed=np.random.default_rng(seed))
    return np.asarray(bootstrap.apply(lambda resampled: weights @ resampled, replicates), dtype=np.float64)[:, 0]


def _independent_half_width(residuals: Floats, weights: Floats, confidence: float) -> float:
    return student(residuals.size - _PARAMETERS, confidence) * _independent_error(residuals, weights)


def _independent_error(residuals: Floats, weights: Floats) -> float:
    freedom = residuals.size - _PARAMETERS
    return math.sqrt(float(residuals @ residuals) / freedom * float(weights @ weights))


def student(freedom: float, confidence: float) -> float:
    """The two-sided quantile of Student's t; at least one degree of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, freedom), (1 + confidence) / 2))
