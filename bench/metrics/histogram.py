"""Rate of counting latencies into HdrHistogram slots on one core.

Baselines: `numpy.histogram` and the hdrhistogram package.

Run: python -m bench.metrics.histogram
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.support.row import Row, row
from streamgauge.artifacts.hlog import DIGITS, HIGHEST_US, LOWEST_US
from streamgauge.metrics.histogram import counts_of

REPEATS = 5
VALUES = 20_000_000
BASELINE_VALUES = 2_000_000
RECORD_VALUES = 100_000
FLOOR_PER_S, GOAL_PER_S = 50e6, 200e6


def main() -> list[Row]:
    """Rates in values per second, and our rate as a multiple of each baseline in the same run."""
    values = np.random.default_rng(1).lognormal(13, 1.2, VALUES).astype(np.int64)
    edges = np.geomspace(LOWEST_US, HIGHEST_US, 2000)
    few = values[:RECORD_VALUES].tolist()
    ours, numpy_, record = _rates(
        (lambda: counts_of(values), VALUES),
        (lambda: np.histogram(values[:BASELINE_VALUES], bins=edges), BASELINE_VALUES),
        (lambda: _record_all(few), RECORD_VALUES),
    )
    return [
        row("histogram: counts_of", ours, "values/s", FLOOR_PER_S, GOAL_PER_S),
        row("histogram: numpy.histogram, 2000 bins (baseline)", numpy_, "values/s"),
        row("histogram: hdrhistogram record_value (baseline)", record, "values/s"),
        row("histogram: counts_of / numpy.histogram", [a / b for a, b in zip(ours, numpy_, strict=True)], "times"),
        row("histogram: counts_of / record_value", [a / b for a, b in zip(ours, record, strict=True)], "times"),
    ]


def _rates(*works: tuple[Callable[[], object], int]) -> list[list[float]]:
    """Values per second of each repeat of each function, in turn, after one warm-up repeat."""
    rates: list[list[float]] = [[] for _ in works]
    for repeat in range(REPEATS + 1):
        for observed, (work, values) in zip(rates, works, strict=True):
            start_s = time.perf_counter()
            work()
            if repeat:
                observed.append(values / (time.perf_counter() - start_s))
    return rates


def _record_all(values: list[int]) -> None:
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for value in values:
        histogram.record_value(value)


if __name__ == "__main__":
    for line in main():
        bounds = f"floor {line['floor']:.3g}  goal {line['goal']:.3g}" if line["floor"] else ""
        print(f"{line['what']:52} {line['value']:12.4g} {line['unit']:9} ±{line['spread']:.1%}  {bounds}")
