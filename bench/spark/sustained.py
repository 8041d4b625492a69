"""The sustained rates, by the command that a user would type: `streamgauge sustain ... --json`.

Recording, verification and monitors are on. A search that ends with another verdict than sustained counts as 0, and the
program prints the end of its stderr. The aggregation has a full search (with its rate confirmed on a fresh engine) and
one with `--quick`; the others run with `--quick`. `STREAMGAUGE_REPEATS` sets the number of repeats (default 3; a search
takes five to ten minutes).

Baselines, in turn with the searches: Spark's own `rate-micro-batch` source, with discarded results, without recording
or verification. One runs our own lowering of the aggregation (by panes, the same query as in the searches). The other
runs the aggregation written by hand (`groupBy(window)`, another query).

Spark starts as in a search: our settings, our heap, our JVM options, a fresh JVM each time, and the warm-up of a fresh
engine. Gem packs are normally distributed as in the workload. Events are as dense in time, and batches as large, as our
batch interval makes them at `DENSITY_PER_S`. Batches follow each other without a pause, since a drain has none.

Each figure comes with the reference work (`harness.machine_speed`). If it differs by more than 15 %, the machine
changed, and the figures are not comparable. Run alone: `python -m bench.spark.sustained`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bench.support.drain_rate import ready_for
from bench.support.row import Row, row
from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.options import JVM_OPTIONS, WINDOWED_INTERVAL, defaults, split
from streamgauge.engines.spark.session.session import end_session, open_session
from streamgauge.harness.monitors import MachineSpeed
from streamgauge.loadgen.random import probabilities
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.cpu_pinning import cpus
from streamgauge.workloads.micro.purchases import PRICE_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
Way = Literal["by hand", "panes"]
"""The baseline's aggregation: `groupBy(window)` as a user writes it, or our own lowering."""
_ALIKE = "our settings, heap and JVM options, normal keys"
BASELINES: dict[Way, str] = {
    "by hand": f"drain of Spark's rate source, groupBy(window) by hand, {_ALIKE}",
    "panes": f"drain of Spark's rate source, our lowering by panes, {_ALIKE}",
}
MEASURED_S = 45.0
WORK_EVERY_S = 1.0
LANES = 2**16
"""Enough that the rarest gem pack has one."""
START_US = 1_700_000_000 * US
DENSITY_PER_S = 3_000_000
"""Events per second of event time: about the sustained rate of the aggregation."""
ROWS_PER_BATCH = DENSITY_PER_S * int(WINDOWED_INTERVAL.removesuffix(" milliseconds")) // 1000


class Found(NamedTuple):
    """Events per second, and the median reference work meanwhile in microseconds (None if unknown).

    `minutes`: duration of the search.
    """

    rate_per_s: float
    reference_work_us: float | None
    minutes: float = 0.0


@dataclass(frozen=True)
class SearchCase:
    """A search, with floor and goal of its rate and its duration."""

    workload: str
    arguments: tuple[str, ...]
    floor_per_s: float
    goal_per_s: float
    floor_min: float = 5.0
    goal_min: float = 3.0

    @property
    def name(self) -> str:
        return " ".join((self.workload, *self.arguments))


AGGREGATION = SearchCase("windowed_aggregation", (), 2.5e6, 4e6, 9.0, 6.0)
SEARCHES = (
    AGGREGATION,
    SearchCase("windowed_aggregation", ("--quick",), 2.5e6, 4e6),
    SearchCase("windowed_join", ("--option", "lowering.join=packed", "--quick"), 0.4e6, 0.8e6),
    SearchCase("identity", ("--quick",), 0.8e6, 1.5e6),
)


def search(case: SearchCase) -> Found:
    """The result of a search: 0 events per second if nothing was sustained."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "streamgauge", "sustain", case.workload, "--json", "--out", out]
        began = time.monotonic()
        done = subprocess.run([*command, *case.arguments], stdout=subprocess.PIPE, text=True, check=False)
        return Found(sustained_per_s(case, done), work_of(done), (time.monotonic() - began) / 60)


def work_of(done: subprocess.CompletedProcess[str]) -> float | None:
    """The median reference work of a search's trials, in microseconds."""
    found = json.loads(done.stdout) if done.stdout.strip() else {}
    trials = (found.get("search") or {}).get("trials", [])
    return median_of(trial.get("reference_work_us") for trial in trials)


def median_of(values: Iterable[float | None]) -> float | None:
    """The median of the known values; None without one."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def sustained_per_s(case: SearchCase, done: subprocess.CompletedProcess[str]) -> float:
    """The rate that a search found; without one 0, after printing its exit code (the search printed the reason)."""
    found = json.loads(done.stdout) if done.stdout.strip() else {}
    verdict = found.get("verdict", {}).get("value")
    if verdict == "sustained":
        return float(found["search"]["sustained_per_s"])
    print(f"{case.name}: {verdict or 'no result'}, exit code {done.returncode}", file=sys.stderr, flush=True)
    return 0.0


def configuration(resolved: ResolvedExperiment) -> dict[str, str]:
    """The configuration with which a run of this experiment starts Spark."""
    ours, users = split(resolved.experiment.options)
    conf = defaults(max(2, resolved.generators), local_checkpoint=True)
    return {**conf, "spark.driver.memory": ours["driver_memory"], **users}


def packs_by_lane(resolved: ResolvedExperiment) -> list[int]:
    """The workload's distribution of gem packs, as the pack of each of `LANES` equally likely lanes."""
    share = probabilities(resolved.parameters.distribution, resolved.parameters.packs).cumsum()
    middles = (np.arange(LANES) + 0.5) / LANES
    return np.minimum(np.searchsorted(share, middles), resolved.parameters.packs - 1).tolist()


def columns(resolved: ResolvedExperiment) -> tuple[str, ...]:
    """Purchases from the rate source's running number, as Spark SQL."""
    packs = ",".join(str(pack) for pack in packs_by_lane(resolved))
    return (
        f"CAST(split('{packs}', ',') AS ARRAY<INT>)[pmod(hash(value), {LANES})] AS gem_pack_id",
        f"CAST(value % {PRICE_MAX} + 1 AS INT) AS price",
        f"{START_US} + value div {DENSITY_PER_S // US} AS {EVENT_TIME}",
    )


def jvm_options(resolved: ResolvedExperiment) -> tuple[str, ...]:
    """The JVM options of a run of this experiment."""
    ours, _ = split(resolved.experiment.options)
    return JVM_OPTIONS[ours["jit"]]


def aggregated(resolved: ResolvedExperiment, way: Way, events: DataFrame) -> DataFrame:
    """The revenue of each gem pack and window, by hand or by our engine, without lineage."""
    if way == "by hand":
        from pyspark.sql import functions as F

        timed = events.withColumn("t", F.timestamp_micros(EVENT_TIME)).withWatermark("t", "0 seconds")
        return timed.groupBy(F.window("t", "8 seconds", "4 seconds"), "gem_pack_id").agg(F.sum("price"))
    from streamgauge.engines.spark.lowering.dataframe import Lowering

    def read(*_: object) -> DataFrame:
        return events

    (query,) = queries(resolved.flow)
    return Lowering(read, read, {resolved.flow.sink.input.name: way}, 1).output(query)


def rate_source(way: Way, measured_s: float = MEASURED_S) -> Found:
    """Rows per second from Spark's own `rate-micro-batch` source through the aggregation, with discarded results.

    Needs its own process, because a JVM that has run before is warm.
    """
    resolved = ready_for(AGGREGATION.workload)
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as name:
        folder = Path(name)
        spark = open_session(f"local[{len(cpus())}]", configuration(resolved), folder, jvm_options(resolved))
        try:
            source = spark.readStream.format("rate-micro-batch").option("numPartitions", resolved.generators)
            rows = source.option("rowsPerBatch", ROWS_PER_BATCH).load()
            writer = aggregated(resolved, way, rows.selectExpr(*columns(resolved))).writeStream.outputMode("append")
            query = writer.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()
            query.awaitTermination(resolved.warmup_s(True, resolved.experiment.load.duration))  # raises if it failed
            warm = len(query.recentProgress)
            work = MachineSpeed()
            works = [work.cpu_us() for _ in _seconds_of(query, measured_s)]
            progress = query.recentProgress[warm:]
        finally:
            end_session()
    batches = [(each.numInputRows, each.durationMs["triggerExecution"]) for each in progress]
    return Found(rate_of(batches), median_of(works))


def _seconds_of(query: StreamingQuery, measured_s: float) -> Iterator[None]:
    """Yields every `WORK_EVERY_S` while the query runs; raises if it failed."""
    until = time.monotonic() + measured_s
    while time.monotonic() < until:
        query.awaitTermination(WORK_EVERY_S)
        yield


def rate_of(batches: Sequence[tuple[int, int]]) -> float:
    """Rows per second of consecutive batches, given as (rows, milliseconds). RuntimeError without a batch."""
    took_ms = sum(milliseconds for _, milliseconds in batches)
    if not took_ms:
        raise RuntimeError("no batch ended in the measured time")
    return sum(rows for rows, _ in batches) / took_ms * 1000


def alone(drain: Callable[[], Found]) -> Found:
    """The result of `rate_source` in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(drain).result()


def rows_of(case: SearchCase, found: Sequence[Found]) -> list[Row]:
    name, minutes = f"sustained: {case.name}", [one.minutes for one in found]
    return [
        row(name, [one.rate_per_s for one in found], "events/s", case.floor_per_s, case.goal_per_s),
        *work_rows(name, found),
        row(f"sustained: time of {case.name}", minutes, "min", case.floor_min, case.goal_min),
    ]


def work_rows(name: str, found: Sequence[Found]) -> list[Row]:
    """The reference work beside a figure, which shows the machine's speed; no row if it is unknown."""
    known = [one.reference_work_us for one in found if one.reference_work_us is not None]
    return [row(f"{name}: reference work meanwhile", known, "us")] if known else []


def baseline_rows(way: Way, drained: Sequence[Found], found: Sequence[Found]) -> list[Row]:
    """A baseline, and the ratio of the search beside each of its drains."""
    name = BASELINES[way]
    ratios = [one.rate_per_s / base.rate_per_s for one, base in zip(found, drained, strict=True)]
    least = 1.0 if way == "by hand" else None
    return [
        row(f"sustained: {name} (baseline)", [one.rate_per_s for one in drained], "events/s"),
        *work_rows(f"sustained: {name}", drained),
        row(f"sustained: {AGGREGATION.name} (by panes) / {name}", ratios, "times", least, least),
    ]


def main() -> list[Row]:
    drained: dict[Way, list[Found]] = {way: [] for way in BASELINES}
    found: dict[SearchCase, list[Found]] = {case: [] for case in SEARCHES}
    for repeat in range(REPEATS):
        for way, drains in drained.items():
            drains.append(alone(partial(rate_source, way)))
            _say(repeat, BASELINES[way], drains[-1])
        for case, searches in found.items():
            searches.append(search(case))
            _say(repeat, case.name, searches[-1])
    return [
        *(line for way in BASELINES for line in baseline_rows(way, drained[way], found[AGGREGATION])),
        *(line for case in SEARCHES for line in rows_of(case, found[case])),
    ]


def _say(repeat: int, name: str, found: Found) -> None:
    work = "not known" if found.reference_work_us is None else f"{found.reference_work_us / 1000:.2f} ms"
    print(
        f"repeat {repeat + 1}: {found.rate_per_s / 1e6:.2f} M/s, reference work {work}: {name}",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    for each in main():
        print(each)
