"""The sustained rates of the issue's table, by the command a user would type: `streamgauge sustain ... --json`.

Everything runs: recording, verification, monitors. A search that ends with another verdict than sustained counts as 0.
The aggregation is searched whole (its rate is confirmed on a fresh engine) and with `--quick`, the others with
`--quick`. Baseline in the same run: Spark's own rate source with the aggregation as it is written by hand (`window`),
drained without any of that. `STREAMGAUGE_REPEATS` says how often (default 3; a search takes five to ten minutes).
Run alone: `python -m bench.sustained`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from bench._row import Row, row

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))


@dataclass(frozen=True)
class Asked:
    """A search, and what it must and should find and take."""

    workload: str
    arguments: tuple[str, ...]
    floor_per_s: float
    goal_per_s: float
    floor_min: float = 5.0
    goal_min: float = 3.0

    @property
    def name(self) -> str:
        return " ".join((self.workload, *self.arguments))


AGGREGATION = Asked("windowed_aggregation", (), 2.5e6, 4e6, 9.0, 6.0)
SEARCHES = (
    AGGREGATION,
    Asked("windowed_aggregation", ("--quick",), 2.5e6, 4e6),
    Asked("windowed_join", ("--option", "lowering.join=packed", "--quick"), 0.4e6, 0.8e6),
    Asked("identity", ("--quick",), 0.8e6, 1.5e6),
)


def search(asked: Asked) -> tuple[float, float]:
    """(sustained events per second, 0 where nothing was; minutes that the search took)."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "streamgauge", "sustain", asked.workload, "--json", "--out", out]
        began = time.monotonic()
        done = subprocess.run([*command, *asked.arguments], capture_output=True, text=True, check=False)
        found = json.loads(done.stdout) if done.stdout else {}
        held = found.get("verdict", {}).get("value") == "sustained"
        return found["search"]["sustained_per_s"] if held else 0.0, (time.monotonic() - began) / 60


def rate_source(seconds: float = 60.0) -> float:
    """Rows a second of Spark's own `rate-micro-batch` source through the same query, its results dropped."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    source = spark.readStream.format("rate-micro-batch").option("numPartitions", 2)
    rows = source.option("rowsPerBatch", 4_000_000).load()
    events = rows.select(
        (F.col("value") % 1000).alias("gem_pack_id"), (F.col("value") % 100).alias("price"),
        F.timestamp_micros(F.lit(1_700_000_000_000_000) + F.col("value")).alias("t"),
    ).withWatermark("t", "0 seconds")  # fmt: skip
    sums = events.groupBy(F.window("t", "8 seconds", "4 seconds"), "gem_pack_id").agg(F.sum("price"))
    query = sums.writeStream.outputMode("append").format("noop").start()
    time.sleep(seconds)
    progress = query.recentProgress[-8:]
    query.stop()
    spark.stop()
    return statistics.median(p.numInputRows / (p.durationMs["triggerExecution"] / 1000) for p in progress)


def rows_of(asked: Asked, found: list[tuple[float, float]]) -> list[Row]:
    rates, minutes = [rate for rate, _ in found], [time_min for _, time_min in found]
    return [
        row(f"sustained: {asked.name}", rates, "events/s", asked.floor_per_s, asked.goal_per_s),
        row(f"sustained: time of {asked.name}", minutes, "min", asked.floor_min, asked.goal_min),
    ]


def main() -> list[Row]:
    drained = [rate_source() for _ in range(REPEATS)]
    found = {asked: [search(asked) for _ in range(REPEATS)] for asked in SEARCHES}
    ratios = [rate / baseline for (rate, _), baseline in zip(found[AGGREGATION], drained, strict=True)]
    return [
        row("sustained: Spark's rate source, aggregation by hand (baseline)", drained, "events/s"),
        row(f"sustained: {AGGREGATION.name} / Spark's rate source", ratios, "times", 1.0, 1.0),
        *(line for asked in SEARCHES for line in rows_of(asked, found[asked])),
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
