"""Events per second that Spark aggregates from a broker, with generators, broker and Spark on this machine.

The program runs `streamgauge run windowed_aggregation --transport kafka --generators 2 --json`, as a user would: two
generators, so two partitions. The figure is the highest of `RATES` that is sustained with every answer right.
Baseline, in turn with it: the same rate over Flight, and the events per CPU second of driver, broker and Spark.

`STREAMGAUGE_REPEATS` sets the number of repeats (default 3; a run takes a minute and a half). Run alone:
`python -m bench.kafka.kafka_spark`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import RunCase, if_sustained

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
RATES = {"500k": 0.5e6, "250k": 0.25e6}
"""The goal and the floor."""
FLIGHT = RunCase("windowed_aggregation", "500k", "20s", ("--generators", "2"))
KAFKA = replace(FLIGHT, more=("--transport", "kafka", *FLIGHT.more))


@dataclass(frozen=True)
class Found:
    """A sustained rate, and its events per CPU second of streamgauge and Spark."""

    rate_per_s: float
    per_processor: float


def sustained(case: RunCase) -> Found | None:
    """The highest sustained rate; None without one, after printing the reason."""
    for rate, per_s in RATES.items():
        if found := if_sustained(replace(case, rate=rate)):
            return Found(per_s, per_processor(found))
    return None


def per_processor(found: dict[str, Any]) -> float:
    """Events per CPU second of driver, broker and system under test."""
    used = sum(one["cpu_percent_mean"] for one in found["processes"] if one["role"] in ("driver", "broker", "sut"))
    return float(found["rate"]["ingested_per_s"]) / (used / 100)


def rows_of(kafka: list[Found | None], flight: list[Found | None]) -> list[Row]:
    """The rate (0 if none was sustained), and the ratio of the repeats in which both sides sustained a rate."""
    floor, goal = min(RATES.values()), max(RATES.values())
    rates = [found.rate_per_s if found else 0.0 for found in kafka]
    note = f"generators, broker and Spark on {os.cpu_count()} CPUs"
    rows = [row("kafka: windowed_aggregation from 2 partitions, sustained", rates, "events/s", floor, goal, note)]
    ratios = [a.per_processor / b.per_processor for a, b in zip(kafka, flight, strict=True) if a and b]
    what = "kafka: events per CPU second, over a broker / over Flight"
    return [*rows, row(what, ratios, "times")] if ratios else rows


def main() -> list[Row]:
    """Measures both in turn."""
    pairs = [(sustained(KAFKA), sustained(FLIGHT)) for _ in range(REPEATS)]
    return rows_of([kafka for kafka, _ in pairs], [flight for _, flight in pairs])


if __name__ == "__main__":
    for each in main():
        print(each)
