"""Resources of the driver in a whole run, and duration of its verification: with few results, and with every event.

The program runs `streamgauge run ... --json` for 60 s, as a user would. windowed_aggregation at 2 M events/s has about
ten thousand windows as results; identity at 0.5 M/s has about fifty million events. The figures come from the results.
The verification includes regenerating the input, computing the answers, and comparing the spooled results. Its baseline
is the run itself, from the first planned event to the end of the drain.

`STREAMGAUGE_REPEATS` sets the number of repeats (default 3; a run takes two to three minutes). Run alone:
`python -m bench.studies.whole_run`.
"""

from __future__ import annotations

import os
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import RunCase, result

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
US = 1_000_000


FEW_RESULTS = RunCase("windowed_aggregation", "2M")
EVERY_EVENT = RunCase("identity", "500k")
"""Below the sustained rate, because the figure is about the verification."""


def span_s(found: dict[str, Any]) -> float:
    """Seconds from the first planned event to the end of the drain."""
    phases = found["phases"]
    return float(phases[-1]["end_us"] - phases[0]["start_us"]) / US


def rows_of(case: RunCase, runs: list[dict[str, Any]]) -> list[Row]:
    """The driver's memory, and the duration of each run divided by that of its verification."""
    what = f"{case.workload} at {case.rate}/s for {case.duration}"
    memory = [run["driver"]["memory_bytes_max"] / 1e9 for run in runs]
    faster = [span_s(run) / run["verification"]["seconds"] for run in runs]
    return [
        row(f"whole run: driver's memory, {what}", memory, "GB", 2.0, 0.7),
        row(f"whole run: the run / its verification, {what}", faster, "times", 1.0, 10.0),
    ]


def main() -> list[Row]:
    """Measures both in turn, so that background load affects both alike."""
    both = (FEW_RESULTS, EVERY_EVENT)
    pairs = [[result(case) for case in both] for _ in range(REPEATS)]
    return [
        each for case, runs in zip(both, zip(*pairs, strict=True), strict=True) for each in rows_of(case, list(runs))
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
