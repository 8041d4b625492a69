"""What it costs to count the rows of each operator: a flow whose operators are counted against the same one uncounted.

Draining a stream with and without, on a Spark of its own each time, told less than what two such starts differ by
(0.8 to 1.3 of each other). So both are done by one Spark that is warm, in turn, on the same rows in its memory: a
batch's worth of them in bundles, planned, run with its results thrown away, and, where a stream reads the counts within
its batch, which those of updates do, the counts read. The flow is lowered once, as for a stream: no batch does that
again.
A batch has as many events as one near the rate that such a flow sustains. What a stream's batch costs besides (its
log, its state, the transport) is on neither side, so that the share is rather too large. In batch a stateful operator
begins each time with no state. The last flow is made to show the worst: a condition that Spark would move before a
join, and with a probe between them does not. Run alone: `python -m bench.spark.probes`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import _parse_datatype_string

from bench.support.drain_rate import ready_for
from bench.support.row import Row, row
from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import added
from streamgauge.dataflow.nodes import Flow, Source, Where
from streamgauge.engines.spark.io.event_batching import pack, packed_schema, unpack
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.dataframe import Lowering, Probe, Uncounted
from streamgauge.engines.spark.lowering.queries import Query, queries
from streamgauge.engines.spark.observe.row_counts import RowCounters
from streamgauge.engines.spark.options import JVM_OPTIONS, PROBE_SETTINGS, defaults
from streamgauge.engines.spark.session.session import end_session, open_session
from streamgauge.loadgen.export import write_input
from streamgauge.preflight.resolved_experiment import ResolvedExperiment

FLOOR, GOAL = 0.98, 1.0
PAIRS, WARM_UP = 61, 15
RATE_PER_S = 200_000.0
DEAR = 95
"""Purchases above it are one in twenty: what a join spares that is given only them is seen."""


def filtered_join() -> ResolvedExperiment:
    """The windowed join, and of what it gives only the dear purchases: a condition that could stand before the join."""
    resolved = ready_for("windowed_join")
    sink = resolved.flow.sink
    return replace(resolved, flow=Flow((replace(sink, input=Where(sink.input, f"price > {DEAR}", "dear")),)))


FLOWS: dict[str, tuple[Callable[[], ResolvedExperiment], int]] = {
    "windows": (lambda: ready_for("windowed_aggregation"), 4_000_000),
    "updates": (lambda: ready_for("word_count"), 400_000),
    "parts beside a process": (lambda: ready_for("log_processing"), 150_000),
    "a condition behind a join, which Spark moves past no probe": (filtered_join, 120_000),
}
"""Each with how many events a batch of it has: in 1.4 s at 3 M/s, 0.7 s at 540 k/s, 1 s at 150 k/s, 2 s at 60 k/s."""


class Sides:
    """Both ways to do a batch of one query over the same rows.

    Args:
        frames: the bundles of each source, in Spark's memory.
        events: how many events each of them holds.
    """

    def __init__(
        self, session: Any, flow: Flow, query: Query, frames: dict[str, DataFrame], events: dict[str, int]
    ) -> None:
        self._session, self._query, self._frames, self._events = session, query, frames, events
        self._probes = RowCounters(session, added(flow))
        self._counted, self._uncounted = self._lowered(self._probes), self._lowered(Uncounted())

    def counted(self) -> float:
        """Seconds of a batch whose operators are counted; of updates with the reading of the counts, as in a stream."""
        begun = time.perf_counter()
        execution = self._done(self._counted)
        ran = time.perf_counter() - begun
        stream = SimpleNamespace(streamingQuery=lambda: SimpleNamespace(lastExecution=lambda: execution))
        self._probes.count_in(self._query.name, SimpleNamespace(_jsq=stream), 0)
        read = time.perf_counter() - begun
        counted = {one.operator: one.rows for one in self._probes.take()}
        assert counted.items() >= self._events.items(), f"counted {counted} of {self._events}"
        return read if self._query.mode == "update" else ran

    def uncounted(self) -> float:
        """Seconds of the same batch."""
        begun = time.perf_counter()
        self._done(self._uncounted)
        return time.perf_counter() - begun

    def _lowered(self, probe: Probe) -> Any:
        """Spark's plan of the query, before anything that each batch does with it."""

        def read(source: Source) -> DataFrame:
            column = probe.column(source.name)
            return unpack(self._frames[source.name], column) if column else unpack(self._frames[source.name])

        output = Lowering(read, _nothing_packed, {}, 1, probe=probe).output(self._query)
        return output._jdf.queryExecution().analyzed()

    def _done(self, plan: Any) -> Any:
        made = self._session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._session._jsparkSession, plan)
        execution = made.queryExecution()
        execution.toRdd().count()
        return execution


def _nothing_packed(source: Source, packing: Packing) -> Any:
    raise NotImplementedError(f"{source.name} is read in packed blocks, which none of these flows does")


@contextmanager
def spark(folder: Path) -> Iterator[Any]:
    """As a run with probes would have it, but for what only streams have."""
    conf = {**defaults(2, local_checkpoint=True), **PROBE_SETTINGS, "spark.driver.memory": "4g"}
    try:
        yield open_session("local[2]", conf, folder, JVM_OPTIONS["late"])
    finally:
        end_session()


def held(
    session: Any, resolved: ResolvedExperiment, events: int, folder: Path
) -> tuple[dict[str, DataFrame], dict[str, int]]:
    """A batch of each source as bundles in Spark's memory, in as many parts as generators would send, as if delivered
    at once; and how many events are in it.
    """
    plan = resolved.plan(US, RATE_PER_S, events / RATE_PER_S)
    write_input(plan, folder, US, plan.end_us)
    frames, numbers = {}, {}
    for source in graph.sources(resolved.lineage_flow):
        rows = session.read.parquet(str(folder / source.name)).coalesce(2)
        numbers[source.name] = rows.count()
        rows = rows.withColumns({EVENT_TIME: F.unix_micros(EVENT_TIME), INGEST_TIME: F.lit(US).cast("bigint")})
        frames[source.name] = in_bundles(rows.select(*resolved.columns[source.name]), source)
        frames[source.name].persist(StorageLevel.MEMORY_ONLY).count()
    return frames, numbers


def in_bundles(rows: DataFrame, source: Source) -> DataFrame:
    """Rows as the adapter's source gives them."""
    kinds = {**source.schema.types(), **dict.fromkeys((EVENT_TIME, INGEST_TIME, EVENT_ID), "bigint")}
    nullable = [field.name for field in source.schema.fields if field.nullable]
    wanted = packed_schema({name: _parse_datatype_string(kinds[name]) for name in rows.columns}, nullable)
    return rows.mapInArrow(lambda batches: pack(batches, nullable), wanted)


def pairs(sides: Sides) -> list[tuple[float, float]]:
    """Seconds uncounted and counted of each pair; every other one begins with the other side."""
    found = []
    for number in range(-WARM_UP, PAIRS):
        took = {}
        for side in (sides.counted, sides.uncounted)[:: 1 if number % 2 else -1]:
            took[side.__name__] = side()
        if number >= 0:
            found.append((took["uncounted"], took["counted"]))
    return found


def interval(values: list[float]) -> tuple[float, float]:
    """Of the median, 95 %: by rank, whatever the distribution."""
    aside = round(0.98 * len(values) ** 0.5)
    ranked = sorted(values)
    return ranked[len(ranked) // 2 - aside], ranked[len(ranked) // 2 + aside]


def measured(session: Any, name: str, resolved: ResolvedExperiment, events: int) -> Row:
    """The row of a flow: uncounted over counted, that is how much of the rate is left."""
    query, *_ = queries(resolved.lineage_flow)
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        frames, numbers = held(session, resolved, events, Path(folder))
        found = pairs(Sides(session, resolved.lineage_flow, query, frames, numbers))
        for frame in frames.values():
            frame.unpersist(blocking=True)
    left = [uncounted / counted for uncounted, counted in found]
    low, high = interval(left)
    batch_ms, more_ms = (1000 * median(each) for each in ([u for u, _ in found], [c - u for u, c in found]))
    note = f"{PAIRS} pairs, 95 % interval of the median {low:.3f} to {high:.3f}"
    note += f"; {more_ms:.1f} ms beside {batch_ms:.0f} ms of a batch of {events:,}"
    return row(f"operators counted (probes=on) against not: {name}", left, "ratio", FLOOR, GOAL, note)


def main(*parts: str) -> list[Row]:
    """A row for each flow in whose name one of the parts is, of all without."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder, spark(Path(folder)) as session:
        for name, (made, events) in FLOWS.items():
            if not parts or any(part in name for part in parts):
                rows.append(measured(session, name, made(), events))
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    for each in main(*sys.argv[1:]):
        print(each)
