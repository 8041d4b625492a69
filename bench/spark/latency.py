"""Latency of results at rates far below the sustained ones, in each of Spark's execution modes.

The program runs `streamgauge run ... --json` for a minute, as a user would. `identity` runs in micro-batches from
memory (the baseline), in micro-batches over a broker, and in real-time mode; aggregates run in real-time mode. The
figure is the event-time latency, from an event's planned time to the recorder. The time until the broker has the event
is the driver's own (`append_latency`), and is shown beside it.

`STREAMGAUGE_REPEATS` sets the number of repeats (default 3; a run takes two minutes). Run alone:
`python -m bench.spark.latency`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import RunCase, if_sustained

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
MS = 1000.0
KAFKA = ("--transport", "kafka")
REAL_TIME = ("--engine", "spark-rtm", *KAFKA)


@dataclass(frozen=True)
class Way:
    """A run, its name, and floor and goal of its p50 and p99, in milliseconds."""

    name: str
    case: RunCase
    p50_ms: tuple[float, float]
    p99_ms: tuple[float, float] | tuple[None, None] = (None, None)


WAYS = (
    Way("identity at 20 k/s, micro-batches from memory", RunCase("identity", "20k"), (150.0, 100.0)),
    Way("identity at 20 k/s, micro-batches over a broker", RunCase("identity", "20k", more=KAFKA), (150.0, 100.0)),
    Way("identity at 20 k/s, real-time mode", RunCase("identity", "20k", more=REAL_TIME), (10.0, 5.0), (25.0, 15.0)),
    Way("running count at 5 k/s, real-time mode", RunCase("count", "5k", more=REAL_TIME), (40.0, 20.0)),
    Way("windows so far at 5 k/s, real-time mode", RunCase("windowed_aggregation", "5k", more=REAL_TIME), (40.0, 20.0)),
)


def rows_of(way: Way, runs: list[dict[str, Any]]) -> Iterator[Row]:
    latencies = [run["latency"]["event_time_us"] for run in runs]
    note = f"{len(runs)} of {REPEATS} runs were sustained"
    yield row(f"latency: {way.name}, p50", [each["p50"] / MS for each in latencies], "ms", *way.p50_ms, note)
    if all(each["p99"] is not None for each in latencies):
        yield row(f"latency: {way.name}, p99", [each["p99"] / MS for each in latencies], "ms", *way.p99_ms)
    if appended := [run["driver"]["append_latency_us"] for run in runs if run["driver"]["append_latency_us"]]:
        yield row(f"latency: {way.name}, until the broker had it, p50", [each["p50"] / MS for each in appended], "ms")


def main() -> list[Row]:
    """Measures all of them in turn, so that background load affects them alike."""
    rounds = [[if_sustained(way.case) for way in WAYS] for _ in range(REPEATS)]
    each_way = [(way, [run for run in runs if run]) for way, runs in zip(WAYS, zip(*rounds, strict=True), strict=True)]
    return [line for way, runs in each_way if runs for line in rows_of(way, runs)]


if __name__ == "__main__":
    for each in main():
        print(each)
