"""Counting latencies into HdrHistogram slots, one core, against `numpy.histogram` and the hdrhistogram package.

Run: python -m bench.histogram
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from streamgauge.measure.histogram import DIGITS, HIGHEST_US, LOWEST_US, counts_of

REPEATS = 5
VALUES = 20_000_000
BASELINE_VALUES = 2_000_000
RECORD_VALUES = 100_000
FLOOR_PER_S, GOAL_PER_S = 50e6, 200e6


def main() -> list[dict[str, Any]]:
    """Rates in values per second, and our rate as a multiple of each baseline in the same run."""
    values = np.random.default_rng(1).lognormal(13, 1.2, VALUES).astype(np.int64)
    ours = _rates(lambda: counts_of(values), VALUES)
    edges = np.geomspace(LOWEST_US, HIGHEST_US, 2000)
    numpy_ = _rates(lambda: np.histogram(values[:BASELINE_VALUES], bins=edges), BASELINE_VALUES)
    few = values[:RECORD_VALUES].tolist()
    record = _rates(lambda: _record_all(few), RECORD_VALUES)
    return [
        _row("histogram: counts_of", "values/s", ours, FLOOR_PER_S, GOAL_PER_S),
        _row("histogram: numpy.histogram, 2000 bins (baseline)", "values/s", numpy_),
        _row("histogram: hdrhistogram record_value (baseline)", "values/s", record),
        _row("histogram: counts_of / numpy.histogram", "times", [a / b for a, b in zip(ours, numpy_, strict=True)]),
        _row("histogram: counts_of / record_value", "times", [a / b for a, b in zip(ours, record, strict=True)]),
    ]


def _rates(work: Callable[[], object], values: int) -> list[float]:
    """Values per second of each repeat, after one that is not counted."""
    work()
    rates = []
    for _ in range(REPEATS):
        start_s = time.perf_counter()
        work()
        rates.append(values / (time.perf_counter() - start_s))
    return rates


def _record_all(values: list[int]) -> None:
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for value in values:
        histogram.record_value(value)


def _row(
    what: str, unit: str, observed: list[float], floor: float | None = None, goal: float | None = None
) -> dict[str, Any]:
    """`value` is the median; `spread` is half the range of the repeats as a share of it."""
    middle = median(observed)
    return {
        "what": what,
        "value": middle,
        "unit": unit,
        "floor": floor,
        "goal": goal,
        "median": middle,
        "spread": (max(observed) - min(observed)) / 2 / middle,
    }


if __name__ == "__main__":
    for row in main():
        bounds = f"floor {row['floor']:.3g}  goal {row['goal']:.3g}" if row["floor"] else ""
        print(f"{row['what']:52} {row['value']:12.4g} {row['unit']:9} ±{row['spread']:.1%}  {bounds}")
