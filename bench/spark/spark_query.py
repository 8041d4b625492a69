"""Cost of streamgauge's own layers on Spark, and the gain of the option `jit`.

Pairs: the flow-built query against the same query written by hand, and lineage against no lineage. (For the cost of
counting the rows of operators, see `bench.spark.probes`.)

Each pair is drained in turn, A B, B A, ..., each on a fresh Spark, so that a machine that gets slower or faster favours
neither side. The figure is the median ratio. A pair takes about two minutes per repeat. Run alone:
`python -m bench.spark.spark_query`, or some pairs by words of their names: `... spark_query jit code`.

Transport, columns and all settings of Spark are the same on both sides. That includes two settings that a user job does
not get by default: the batch interval for windows, and Hadoop files without checksums. The query is also the same: the
flow is lowered to `groupBy(window)` (`lowering.aggregate=window`) like the hand-written one, so only our layers differ.
The default lowering by panes is another query, and gains more than the layers cost. It has its own row, without a
floor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from bench.support.drain_rate import drained_per_s, ready_for, without_lineage
from bench.support.row import Row, row
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.options import WINDOWED_INTERVAL, defaults
from streamgauge.harness.start_processes import TestBedSettings
from streamgauge.preflight.resolved_experiment import ResolvedExperiment

REPEATS = 4
"""Even, so that each side is first equally often."""


def by_hand(spark: Any, inputs: dict[str, Any]) -> Any:
    """The windowed aggregation as a PySpark user writes it, with the two lineage maxima."""
    from pyspark.sql import functions as F

    events = inputs["purchases"].withWatermark("timestamp", "0 seconds")
    return events.groupBy(F.window("timestamp", "8 seconds", "4 seconds"), "gem_pack_id").agg(
        F.sum("price").alias("revenue"),
        F.max("event_time").alias("event_time"),
        F.max("ingest_time").alias("ingest_time"),
    )


def alike(_: ResolvedExperiment, settings: TestBedSettings) -> TestBedSettings:
    """The same test bed, with options for settings that otherwise depend on the kind of job."""
    with_raw, without = (defaults(2, local_checkpoint=True, raw_files=raw) for raw in (True, False))
    raw_files = {name: value for name, value in with_raw.items() if name not in without}
    return replace(settings, options={**settings.options, **raw_files, "trigger": WINDOWED_INTERVAL})


def written_by_hand(resolved: ResolvedExperiment, settings: TestBedSettings) -> TestBedSettings:
    """`alike`, with the function above instead of the flow's operators."""
    flow = settings.flow
    job = UserJobNode(graph.sources(flow), ("timestamp",), __file__, by_hand.__name__, reference=())
    return alike(resolved, replace(settings, flow=replace(flow, sinks=(replace(flow.sink, input=job),))))


def pairs(ours: Callable[[], float], baseline: Callable[[], float]) -> Iterator[tuple[float, float]]:
    """(ours, baseline) of each repeat; every other repeat starts with the baseline."""
    for repeat in range(REPEATS):
        if repeat % 2:
            after = baseline()
            yield ours(), after
        else:
            before = ours()
            yield before, baseline()


@dataclass(frozen=True)
class Pair:
    """A comparison: each side is a function that drains and returns events per second."""

    what: str
    ours: Callable[[], float]
    baseline: Callable[[], float]
    floor: float | None = None
    goal: float | None = None


def all_pairs() -> tuple[Pair, ...]:
    resolved = ready_for("windowed_aggregation")
    grouped = ready_for("windowed_aggregation", lowering__aggregate="window")

    def hand() -> float:
        return drained_per_s(resolved, written_by_hand)

    return (
        Pair(
            "flow-built query against hand-written, both groupBy(window)",
            lambda: drained_per_s(grouped, alike), hand, 0.95, 0.98,
        ),
        Pair(
            "flow-built query as it runs (panes) against hand-written",
            lambda: drained_per_s(resolved, alike), hand,
        ),
        Pair(
            "with lineage against without",
            lambda: drained_per_s(resolved), lambda: drained_per_s(resolved, without_lineage), 0.85, 0.95,
        ),
        Pair(
            "jit=late against the JVM's own thresholds (jit=jvm)",
            lambda: drained_per_s(resolved), lambda: drained_per_s(ready_for("windowed_aggregation", jit="jvm")),
        ),
        Pair(
            "code cache of 2000 classes against Spark's 100: click_analytics",
            lambda: drained_per_s(ready_for("click_analytics")),
            lambda: drained_per_s(ready_for("click_analytics", spark__sql__codegen__cache__maxEntries="100")),
        ),
    )  # fmt: skip


def ratio(pair: Pair) -> Row:
    """`value` is the median of the paired ratios, `spread` half their range relative to it."""
    ratios = []
    for a, b in pairs(pair.ours, pair.baseline):
        ratios.append(a / b)
        said = f"repeat {len(ratios)}: {a / 1e6:.2f} M/s against {b / 1e6:.2f} M/s"
        print(f"{pair.what}: {said}", file=sys.stderr, flush=True)
    return row(pair.what, ratios, "ratio", pair.floor, pair.goal)


def main(*parts: str) -> list[Row]:
    """The rows of the pairs whose name contains one of the parts (all without parts); SystemExit 2 if none does."""
    there = all_pairs()
    asked = [pair for pair in there if not parts or any(part in pair.what for part in parts)]
    if not asked:
        names = "\n  ".join(pair.what for pair in there)
        print(f"error: no pair has {' or '.join(map(repr, parts))} in its name:\n  {names}", file=sys.stderr)
        raise SystemExit(2)
    return [ratio(pair) for pair in asked]


if __name__ == "__main__":
    for each in main(*sys.argv[1:]):
        print(each)
