"""Cost of counting the rows of each operator: a flow with counted operators against the same flow without.

Two drains on separate Sparks differ by more than this cost (ratios of 0.8 to 1.3). So one warm Spark does both in turn,
on the same rows in its memory. A measured batch is read in bundles, planned, and run with its results discarded. For
updates it also reads the counts, because a stream reads those within its batch. The flow is lowered once, as for a
stream.

A batch has as many events as one near the sustained rate of such a flow. The other costs of a stream's batch (log,
state, transport) are on neither side, so the share is rather too large. In batch mode a stateful operator starts
without state each time. The last flow shows the worst case: a condition that Spark would move before a join, but not
past a probe.

Run alone: `python -m bench.spark.probes`.
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
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import added
from streamgauge.dataflow.nodes import Flow, Source, Where
from streamgauge.engines.spark.io.event_batching import pack, packed_schema, unpack
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.lowering.queries import Query, queries
from streamgauge.engines.spark.lowering.row_counter import RowCounter
from streamgauge.engines.spark.options import JVM_OPTIONS, ROW_COUNT_SETTINGS, defaults
from streamgauge.engines.spark.row_counts import RowCounters
from streamgauge.engines.spark.session.session import end_session, open_session
from streamgauge.loadgen.export import write_input
from streamgauge.preflight.resolved_experiment import ResolvedExperiment

FLOOR, GOAL = 0.98, 1.0
PAIRS, WARM_UP = 61, 15
RATE_PER_S = 200_000.0
DEAR = 95
"""One purchase in twenty is above it, so a filter before the join saves visible work."""


def filtered_join() -> ResolvedExperiment:
    """The windowed join, filtered to expensive purchases: a condition that could move before the join."""
    resolved = ready_for("windowed_join")
    sink = resolved.flow.sink
    return replace(resolved, flow=Flow((replace(sink, input=Where(sink.input, f"price > {DEAR}", "dear")),)))


FLOWS: dict[str, tuple[Callable[[], ResolvedExperiment], int]] = {
    "windows": (lambda: ready_for("windowed_aggregation"), 4_000_000),
    "updates": (lambda: ready_for("word_count"), 400_000),
    "operators beside a process": (lambda: ready_for("log_processing"), 150_000),
    "a condition after a join, which Spark moves past no probe": (filtered_join, 120_000),
}
"""Flow and events per batch: 1.4 s at 3 M/s, 0.7 s at 540 k/s, 1 s at 150 k/s, 2 s at 60 k/s."""


class Sides:
    """A batch of one query over the same rows, with and without counting.

    Args:
        frames: the bundles of each source, in Spark's memory.
        events: how many events each of them holds.
    """

    def __init__(
        self, session: Any, flow: Flow, query: Query, frames: dict[str, DataFrame], events: dict[str, int]
    ) -> None:
        self._session, self._query, self._frames, self._events = session, query, frames, events
        self._probes = RowCounters(session, added(flow))
        self._counted, self._uncounted = self._lowered(self._probes), self._lowered(RowCounter())

    def counted(self) -> float:
        """Seconds of a batch with counted operators; for updates, reading the counts is included, as in a stream."""
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
        """Seconds of the same batch without counting."""
        begun = time.perf_counter()
        self._done(self._uncounted)
        return time.perf_counter() - begun

    def _lowered(self, counter: RowCounter) -> Any:
        """Spark's plan of the query, before the work of each batch."""

        def read(source: Source) -> DataFrame:
            column = counter.column(source.name)
            return unpack(self._frames[source.name], column) if column else unpack(self._frames[source.name])

        output = Lowering(read, _nothing_packed, {}, 1, counter=counter).output(self._query)
        return output._jdf.queryExecution().analyzed()

    def _done(self, plan: Any) -> Any:
        made = self._session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._session._jsparkSession, plan)
        execution = made.queryExecution()
        execution.toRdd().count()
        return execution


def _nothing_packed(source: Source, packing: Packing) -> Any:
    raise NotImplementedError(f"{source.name} is read in packed blocks, which these flows must not use")


@contextmanager
def spark(folder: Path) -> Iterator[Any]:
    """A Spark as in a run with probes, except for the settings of streams."""
    conf = {**defaults(2, local_checkpoint=True), **ROW_COUNT_SETTINGS, "spark.driver.memory": "4g"}
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
    """Rows in the form of the adapter's source."""
    kinds = {**source.schema.types(), **dict.fromkeys((EVENT_TIME, INGEST_TIME, EVENT_ID), "bigint")}
    nullable = [field.name for field in source.schema.fields if field.nullable]
    wanted = packed_schema({name: _parse_datatype_string(kinds[name]) for name in rows.columns}, nullable)
    return rows.mapInArrow(lambda batches: pack(batches, nullable), wanted)


def pairs(sides: Sides) -> list[tuple[float, float]]:
    """Seconds uncounted and counted of each pair; the order alternates."""
    found = []
    for number in range(-WARM_UP, PAIRS):
        took = {}
        for side in (sides.counted, sides.uncounted)[:: 1 if number % 2 else -1]:
            took[side.__name__] = side()
        if number >= 0:
            found.append((took["uncounted"], took["counted"]))
    return found


def interval(values: list[float]) -> tuple[float, float]:
    """95 % interval of the median, by rank, for any distribution."""
    aside = round(0.98 * len(values) ** 0.5)
    ranked = sorted(values)
    return ranked[len(ranked) // 2 - aside], ranked[len(ranked) // 2 + aside]


def measured(session: Any, name: str, resolved: ResolvedExperiment, events: int) -> Row:
    """The row of a flow: uncounted over counted time, the share of the rate that is left."""
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
    """A row for each flow whose name contains one of the parts; for all flows without parts."""
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
