"""How many events a second Spark aggregates from a broker, everything on this machine: generators, broker, Spark.

`streamgauge run windowed_aggregation --transport kafka --generators 2 --json`, as a user would type it: two generators,
so two partitions. The highest of `RATES` that is sustained counts, with every answer right. Baseline, in turn with it:
the same rate over Flight, and what a processor does in a second of it, driver and broker included.
`STREAMGAUGE_REPEATS` says how often (default 3; a run takes a minute and a half). Run alone:
`python -m bench.kafka.kafka_spark`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import Asked, if_sustained

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
RATES = {"500k": 0.5e6, "250k": 0.25e6}
"""The goal, then the floor."""
FLIGHT = Asked("windowed_aggregation", "500k", "20s", ("--generators", "2"))
KAFKA = replace(FLIGHT, more=("--transport", "kafka", *FLIGHT.more))


@dataclass(frozen=True)
class Found:
    """A rate that was sustained, and the events a second of one processor, of all that streamgauge and Spark used."""

    rate_per_s: float
    per_processor: float


def sustained(asked: Asked) -> Found | None:
    """The highest rate that is; nothing where none is, which is told of with its reason."""
    for rate, per_s in RATES.items():
        if found := if_sustained(replace(asked, rate=rate)):
            return Found(per_s, per_processor(found))
    return None


def per_processor(found: dict[str, Any]) -> float:
    """Events for each second that a processor worked for the driver or the system."""
    used = sum(one["cpu_percent_mean"] for one in found["processes"] if one["role"] in ("driver", "sut"))
    return float(found["rate"]["ingested_per_s"]) / (used / 100)


def rows_of(kafka: list[Found | None], flight: list[Found | None]) -> list[Row]:
    """The rate, 0 where none was sustained; and the ratio, of the repeats in which both sides sustained one."""
    floor, goal = min(RATES.values()), max(RATES.values())
    rates = [found.rate_per_s if found else 0.0 for found in kafka]
    note = f"generators, broker and Spark on {os.cpu_count()} processors"
    rows = [row("kafka: windowed_aggregation from 2 partitions, sustained", rates, "events/s", floor, goal, note)]
    ratios = [a.per_processor / b.per_processor for a, b in zip(kafka, flight, strict=True) if a and b]
    what = "kafka: events a second of one processor, over a broker / over Flight"
    return [*rows, row(what, ratios, "times")] if ratios else rows


def main() -> list[Row]:
    """Both in turn."""
    pairs = [(sustained(KAFKA), sustained(FLIGHT)) for _ in range(REPEATS)]
    return rows_of([kafka for kafka, _ in pairs], [flight for _, flight in pairs])


if __name__ == "__main__":
    for each in main():
        print(each)
