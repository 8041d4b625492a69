"""The sustained rates of the issue's table, by the command a user would type: `streamgauge sustain ... --quick --json`.

Everything runs: recording, verification, monitors. Baseline in the same run: Spark's own rate source on the same
windowed aggregation, drained without any of that. `STREAMGAUGE_REPEATS` says how often (default 3; a search takes
five to eight minutes). Run alone: `python -m bench.sustained`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench._row import Row, row

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
SEARCHES = (
    ("windowed_aggregation", (), 2.5e6, 4e6),
    ("windowed_join", ("--option", "lowering.join=packed"), 0.4e6, 0.8e6),
    ("identity", (), 0.8e6, 1.5e6),
)


def search(workload: str, arguments: tuple[str, ...]) -> tuple[float, float]:
    """(sustained events per second, seconds that the search took)."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "streamgauge", "sustain", workload, "--quick", "--json", "--out", out]
        began = time.monotonic()
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)["search"]["sustained_per_s"] if done.stdout else None
        return found or 0.0, time.monotonic() - began


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


def rows_of(workload: str, arguments: tuple[str, ...], floor: float, goal: float) -> list[Row]:
    found = [search(workload, arguments) for _ in range(REPEATS)]
    rates, minutes = [rate for rate, _ in found], [seconds / 60 for _, seconds in found]
    return [
        row(f"{workload} sustained {' '.join(arguments[1:])}", rates, "events/s", floor, goal),
        row(f"{workload}: sustain --quick", minutes, "min", 5.0, 3.0),
    ]


def main() -> list[Row]:
    drained = [rate_source() for _ in range(REPEATS)]
    baseline = row("baseline: Spark's rate source, same query", drained, "events/s", None, None)
    return [baseline, *(row for asked in SEARCHES for row in rows_of(*asked))]


if __name__ == "__main__":
    for each in main():
        print(each)
