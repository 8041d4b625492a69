"""The sustained rates of the issue's table, by the command a user would type: `streamgauge sustain ... --json`.

Everything runs: recording, verification, monitors. A search that ends with another verdict than sustained counts as 0,
and the end of what it said on stderr is printed. The aggregation is searched whole (its rate is confirmed on a fresh
engine) and with `--quick`, the others with `--quick`. `STREAMGAUGE_REPEATS` says how often (default 3; a search takes
five to ten minutes).

Baseline, in turn with the searches: Spark's own `rate-micro-batch` source with the aggregation as it is written by hand
(`groupBy(window)`), its results dropped, nothing recorded or verified. Spark is started as ours is: our settings, our
heap from the start, a fresh JVM each time. Gem packs are normally distributed as in the workload; events are as dense
in time, and batches as large, as our interval of batches makes them at `DENSITY_PER_S`. They follow each other without
a pause, since a drain has none. Run alone: `python -m bench.sustained`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bench._drain import ready_for
from bench._row import Row, row
from streamgauge.engines.spark.session import end_session, open_session
from streamgauge.engines.spark.settings import WINDOWED_INTERVAL, defaults, split
from streamgauge.events import US
from streamgauge.load.keys import probabilities
from streamgauge.run.ready import Ready
from streamgauge.system.machine import cpus
from streamgauge.workloads.purchases import PRICE_MAX

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
STDERR_LINES = 15
BASELINE = "drain of Spark's rate source, groupBy(window) by hand, our settings and heap, normal keys"
LANES = 2**16
"""Many enough that the rarest gem pack has one."""
START_US = 1_700_000_000 * US
DENSITY_PER_S = 3_000_000
"""Events a second of event time: about the rate that the aggregation sustains."""
ROWS_PER_BATCH = DENSITY_PER_S * int(WINDOWED_INTERVAL.removesuffix(" milliseconds")) // 1000


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
        return sustained_per_s(asked, done), (time.monotonic() - began) / 60


def sustained_per_s(asked: Asked, done: subprocess.CompletedProcess[str]) -> float:
    """What a search found; 0 where nothing was, and why is printed then: its exit code and the end of its stderr."""
    found = json.loads(done.stdout) if done.stdout.strip() else {}
    verdict = found.get("verdict", {}).get("value")
    if verdict == "sustained":
        return float(found["search"]["sustained_per_s"])
    said = done.stderr.strip().splitlines()[-STDERR_LINES:]
    head = f"{asked.name}: {verdict or 'no result'}, exit code {done.returncode}; it said last:"
    print("\n  ".join([head, *said]), file=sys.stderr, flush=True)
    return 0.0


def configuration(ready: Ready) -> dict[str, str]:
    """What a run of this experiment would start Spark with."""
    ours, users = split(ready.experiment.options)
    conf = defaults(max(2, ready.generators), local_checkpoint=True)
    return {**conf, "spark.driver.memory": ours["driver_memory"], **users}


def packs_by_lane(ready: Ready) -> list[int]:
    """The workload's distribution of gem packs: the pack of each of `LANES` equally likely lanes."""
    share = probabilities(ready.parameters.distribution, ready.parameters.packs).cumsum()
    middles = (np.arange(LANES) + 0.5) / LANES
    return np.minimum(np.searchsorted(share, middles), ready.parameters.packs - 1).tolist()


def columns(ready: Ready) -> tuple[str, ...]:
    """Purchases from the rate source's running number, as Spark's SQL."""
    packs = ",".join(str(pack) for pack in packs_by_lane(ready))
    return (
        f"CAST(split('{packs}', ',') AS ARRAY<INT>)[pmod(hash(value), {LANES})] AS gem_pack_id",
        f"CAST(value % {PRICE_MAX} + 1 AS INT) AS price",
        f"timestamp_micros({START_US} + value div {DENSITY_PER_S // US}) AS t",
    )


def rate_source(seconds: float = 60.0) -> float:
    """Rows a second of Spark's own `rate-micro-batch` source through the same query, its results dropped.

    Needs a process of its own: a JVM that has run before is warm.
    """
    from pyspark.sql import functions as F

    ready = ready_for(AGGREGATION.workload)
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as name:
        folder = Path(name)
        spark = open_session(f"local[{len(cpus())}]", configuration(ready), folder)
        try:
            source = spark.readStream.format("rate-micro-batch").option("numPartitions", ready.generators)
            rows = source.option("rowsPerBatch", ROWS_PER_BATCH).load()
            events = rows.selectExpr(*columns(ready)).withWatermark("t", "0 seconds")
            sums = events.groupBy(F.window("t", "8 seconds", "4 seconds"), "gem_pack_id").agg(F.sum("price"))
            writer = sums.writeStream.outputMode("append").format("noop")
            query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
            query.awaitTermination(seconds)  # raises where the query failed
            progress = query.recentProgress[-8:]
        finally:
            end_session()
    return statistics.median(p.numInputRows / (p.durationMs["triggerExecution"] / 1000) for p in progress)


def alone(drain: Callable[[], float]) -> float:
    """Its answer from a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(drain).result()


def rows_of(asked: Asked, found: list[tuple[float, float]]) -> list[Row]:
    rates, minutes = [rate for rate, _ in found], [time_min for _, time_min in found]
    return [
        row(f"sustained: {asked.name}", rates, "events/s", asked.floor_per_s, asked.goal_per_s),
        row(f"sustained: time of {asked.name}", minutes, "min", asked.floor_min, asked.goal_min),
    ]


def main() -> list[Row]:
    drained: list[float] = []
    found: dict[Asked, list[tuple[float, float]]] = {asked: [] for asked in SEARCHES}
    for _ in range(REPEATS):
        drained.append(alone(rate_source))
        for asked in SEARCHES:
            found[asked].append(search(asked))
    ratios = [rate / baseline for (rate, _), baseline in zip(found[AGGREGATION], drained, strict=True)]
    return [
        row(f"sustained: {BASELINE} (baseline)", drained, "events/s"),
        row(f"sustained: {AGGREGATION.name} / {BASELINE}", ratios, "times", 1.0, 1.0),
        *(line for asked in SEARCHES for line in rows_of(asked, found[asked])),
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
