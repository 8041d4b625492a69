"""Searches over Kafka, to their end: rate, time, and the CPU of driver, broker and engine.

The program runs `streamgauge sustain ... --transport kafka --quick --tolerance 10%` for each of `CASES`, as a user
would. A row's value is the sustained rate, or 0 if the search ended without one. Its note has the minutes, the CPU of
each role in percent of one core, the rate per core of the machine and per CPU second of the engine, and the reference
work, because the machine's speed differs by a factor of two between days.

Run alone: `python -m bench.kafka.kafka_searches`, or with the names of cases. A case takes 4 to 12 minutes. The
table of programs takes `aggregation` only.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import run_search

JSON = ("--transport-option", "encoding=json")
TWO = ("--partitions", "2")
CONSUMER = "examples/external/python_consumer/program.toml"
CASES: dict[str, tuple[str, ...]] = {
    "aggregation": ("windowed_aggregation",),
    "aggregation, 2 partitions": ("windowed_aggregation", *TWO),
    "aggregation, json": ("windowed_aggregation", *JSON),
    "aggregation, json, 2 partitions": ("windowed_aggregation", *JSON, *TWO),
    "filter": ("filter",),
    "filter, json, 2 partitions": ("filter", *JSON, *TWO),
    "keyed process": ("spike_detection",),
    "user job, json, 2 partitions": ("examples/revenue.py", *JSON, *TWO),
    "real-time mode": ("identity", "--engine", "spark-rtm"),
    "program": (CONSUMER,),
    "aggregation, flink": ("windowed_aggregation", "--engine", "flink"),
    "aggregation, kafka-streams": ("windowed_aggregation", "--engine", "kafka-streams"),
    "aggregation, storm": ("windowed_aggregation", "--engine", "storm"),
    "aggregation, storm's windows": (
        "windowed_aggregation",
        "--engine",
        "storm",
        "--option",
        "windows=storm",
        "--duration",
        "60s",
        "--start-rate",
        "30k",
    ),  # progress moves once a slide; 12 s of tuples above 80 k/s are more than the option pending allows
}
IN_TABLE = ("aggregation",)
FLOORS = {
    "aggregation": (400e3, 700e3),
    "aggregation, json": (250e3, 350e3),
    "aggregation, flink": (400e3, 800e3),
    "aggregation, kafka-streams": (100e3, 200e3),
    "aggregation, storm": (100e3, 300e3),
    "aggregation, storm's windows": (30e3, None),
}
"""Floor and goal on 2 cores, driver and broker included."""


@dataclass(frozen=True)
class Shares:
    """CPU of each role, percent of one core."""

    driver: float
    broker: float
    engine: float


def shares_of(result: dict[str, Any]) -> Shares:
    """The CPU shares of the trial that a search shows."""

    def used(role: str) -> float:
        return sum(float(one["cpu_percent_mean"]) for one in result["processes"] if one["role"] == role)

    return Shares(used("driver"), used("broker"), used("sut"))


def note_of(result: dict[str, Any]) -> str:
    """Minutes, CPU, and the rate per core of the machine and per CPU second of the engine."""
    search, shares = result["search"], shares_of(result)
    rate, minutes = search["sustained_per_s"] or 0.0, search["seconds"] / 60
    per_core, per_cpu_s = rate / (os.cpu_count() or 1), rate / max(shares.engine / 100, 1e-9)
    return (
        f"{minutes:.1f} min, {len(search['trials'])} trials; CPU driver {shares.driver:.0f} %, broker "
        f"{shares.broker:.0f} %, engine {shares.engine:.0f} %; {per_core / 1e3:,.0f} k/s per core, "
        f"{per_cpu_s / 1e3:,.0f} k/s per CPU second of the engine; reference work "
        f"{(result['reference_work_us'] or 0.0) / 1e3:.1f} ms"
    )


def measured(name: str) -> Row:
    """One search to its end."""
    floor, goal = FLOORS.get(name, (None, None))
    with tempfile.TemporaryDirectory() as out:
        arguments = [*CASES[name], "--quick", "--tolerance", "10%"]
        kafka = () if name == "program" else ("--transport", "kafka")
        result = run_search(name, [*arguments, *kafka], Path(out))
    rate = (result["search"]["sustained_per_s"] or 0.0) if result else 0.0
    return row(f"kafka: search, {name}", [rate], "events/s", floor, goal, note_of(result) if result else "it failed")


def main(names: tuple[str, ...] = IN_TABLE) -> list[Row]:
    """The searches of these cases, one after the other."""
    return [measured(name) for name in names]


if __name__ == "__main__":
    for each in CASES if len(sys.argv) < 2 else sys.argv[1:]:
        print(measured(each), flush=True)
