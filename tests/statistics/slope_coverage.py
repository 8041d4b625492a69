"""How often the 95 % interval of a slope covers the true slope, where neighbours resemble each other.

    python -m tests.statistics.slope_coverage [SIMULATIONS]     the figures of stats/bootstrap.py and of the documents

The noise is AR(1); an interval has 300 replicates.
"""

import math
import sys
from unittest.mock import patch

import numpy as np

from streamgauge.stats import bootstrap
from streamgauge.stats.bootstrap import slope_interval
from tests.helpers_quick_draws import replicates

STATED = {0.0: (10, 20, 60, 100, 300), 0.5: (10, 20, 60, 100, 300), 0.8: (10, 20, 40, 60, 100, 300)}
"""Correlation of neighbours to the numbers of points."""


def autocorrelated(n: int, correlation: float, random: np.random.Generator) -> np.ndarray:
    """AR(1) noise of standard deviation 1 (n,), stationary from the first value."""
    noise = random.normal(size=n)
    values = np.empty(n)
    values[0] = noise[0]
    for i in range(1, n):
        values[i] = correlation * values[i - 1] + math.sqrt(1 - correlation**2) * noise[i]
    return values


def coverage(n: int, correlation: float, slope: float, runs: int = 400) -> float:
    """The share of so many series whose interval holds the slope that they were made with."""
    random = np.random.default_rng(n)
    times = np.arange(n, dtype=float)
    inside = 0
    with patch.object(bootstrap, "REPLICATES", 300):
        for _ in range(runs):
            interval = slope_interval(times, slope * times + autocorrelated(n, correlation, random))
            inside += interval.low <= slope <= interval.high
    return inside / runs


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    bootstrap._replicates = replicates  # the same intervals as the library's, drawn together
    for correlation, points in STATED.items():
        for n in points:
            print(f"correlation {correlation:g}, {n} points: {coverage(n, correlation, 0.3, runs):.1%}", flush=True)


if __name__ == "__main__":
    main()
