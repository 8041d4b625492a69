"""What our own layers cost on Spark: the flow-built query against the same query written by hand, and lineage against
none.

Each pair is drained in turn, A B A B ..., each on a fresh Spark; the figure is the median ratio. About two minutes a
pair and repeat. Run alone: `python -m bench.spark_query`.

Alike on both sides: transport, columns and every setting of Spark, also the two that an own job does not get by itself:
the interval of batches for windows, and Hadoop's files without checksums. What differs is the query: ours is lowered as
in any run (by panes), the hand's is `groupBy(window)`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bench._drain import drained_per_s, ready_for, without_lineage
from streamgauge.engines.spark.settings import WINDOWED_INTERVAL, defaults
from streamgauge.flow import graph
from streamgauge.flow.nodes import NativeJob
from streamgauge.run.check import Ready
from streamgauge.run.rig import RigSettings

REPEATS = 3

Row = dict[str, Any]


def by_hand(spark: Any, inputs: dict[str, Any]) -> Any:
    """The windowed aggregation as a PySpark user writes it, with the two lineage maxima."""
    from pyspark.sql import functions as F

    events = inputs["purchases"].withWatermark("timestamp", "0 seconds")
    return events.groupBy(F.window("timestamp", "8 seconds", "4 seconds"), "gem_pack_id").agg(
        F.sum("price").alias("revenue"),
        F.max("event_time").alias("event_time"),
        F.max("ingest_time").alias("ingest_time"),
    )


def alike(_: Ready, settings: RigSettings) -> RigSettings:
    """The same rig, with options for what Spark is else given by the kind of its job."""
    with_raw, without = (defaults(2, local_checkpoint=True, raw_files=raw) for raw in (True, False))
    raw_files = {name: value for name, value in with_raw.items() if name not in without}
    return replace(settings, options={**settings.options, **raw_files, "trigger": WINDOWED_INTERVAL})


def written_by_hand(ready: Ready, settings: RigSettings) -> RigSettings:
    """`alike`, with the function above in the place of the flow's operators."""
    flow = settings.flow
    job = NativeJob(graph.sources(flow), ("timestamp",), __file__, by_hand.__name__, reference=())
    return alike(ready, replace(settings, flow=replace(flow, sinks=(replace(flow.sink, input=job),))))


def ratio(what: str, ours: Callable[[], float], baseline: Callable[[], float], floor: float, goal: float) -> Row:
    """`value` is the median of the paired ratios, `spread` half their range as a share of it."""
    ratios = []
    for repeat in range(REPEATS):
        a, b = ours(), baseline()
        ratios.append(a / b)
        print(f"{what}: repeat {repeat + 1}: {a / 1e6:.2f} M/s against {b / 1e6:.2f} M/s", file=sys.stderr, flush=True)
    middle = statistics.median(ratios)
    return {
        "what": what, "value": middle, "unit": "ratio", "floor": floor, "goal": goal, "median": middle,
        "spread": (max(ratios) - min(ratios)) / 2 / middle,
    }  # fmt: skip


def main() -> list[Row]:
    ready = ready_for("windowed_aggregation")
    return [
        ratio(
            "flow-built query against hand-written",
            lambda: drained_per_s(ready, alike), lambda: drained_per_s(ready, written_by_hand), 0.95, 0.98,
        ),
        ratio(
            "lineage carried against not carried",
            lambda: drained_per_s(ready), lambda: drained_per_s(ready, without_lineage), 0.85, 0.95,
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    for each in main():
        print(each)
