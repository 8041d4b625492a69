"""What a whole run takes of the driver, and how long its answers take to verify: few results, and every event back.

`streamgauge run ... --json` for 60 s, as a user would type it: windowed_aggregation at 2 M events/s, whose results are
some ten thousand windows, and identity at 0.5 M/s, whose results are all of some fifty million events. Figures are
those of the results. The verification is the whole of it: the input made again, the answers computed, and the results
compared where the recorder has spooled them. Its baseline is the run itself, from the first planned event to the end of
the drain. `STREAMGAUGE_REPEATS` says how often (default 3; a run takes two to three minutes). Run alone:
`python -m bench.studies.whole_run`.
"""

from __future__ import annotations

import os
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import Asked, result

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
US = 1_000_000


FEW_RESULTS = Asked("windowed_aggregation", "2M")
EVERY_EVENT = Asked("identity", "500k")
"""Below what it sustains: what is measured is the verification."""


def span_s(found: dict[str, Any]) -> float:
    """From the first planned event to the end of the drain, seconds."""
    phases = found["phases"]
    return float(phases[-1]["end_us"] - phases[0]["start_us"]) / US


def rows_of(asked: Asked, runs: list[dict[str, Any]]) -> list[Row]:
    """The driver's memory, and how many times as long as its verification each run was."""
    what = f"{asked.workload} at {asked.rate}/s for {asked.duration}"
    memory = [run["driver"]["memory_bytes_max"] / 1e9 for run in runs]
    faster = [span_s(run) / run["verification"]["seconds"] for run in runs]
    return [
        row(f"whole run: driver's memory, {what}", memory, "GB", 2.0, 0.7),
        row(f"whole run: the run / its verification, {what}", faster, "times", 1.0, 10.0),
    ]


def main() -> list[Row]:
    """Both in turn, so that what else the machine does meets them alike."""
    both = (FEW_RESULTS, EVERY_EVENT)
    pairs = [[result(asked) for asked in both] for _ in range(REPEATS)]
    return [
        each for asked, runs in zip(both, zip(*pairs, strict=True), strict=True) for each in rows_of(asked, list(runs))
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
