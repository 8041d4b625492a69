"""The process that times operators in isolation, because Spark fuses consecutive operators.

For each slice of an operator's input:

1. Cache the rows in Spark's memory as one partition (one task, so the cost of one instance).
2. Create two frames: one only reads, the other applies the operator with the usual lowering, in batch.
3. Plan and compile both, and broadcast lookup tables: costs per batch, not per row.
4. Run both and discard the rows, then both without any rows. The order alternates between slices.

The difference is the operator's cost; without rows it is the fixed cost of a job with the operator.

In batch, a stateful operator starts each slice without state. A keyed process would lose its state, so its class runs
in this Python process instead: without Spark's exchange, blocks and state store.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Node, Process, Source, WindowAggregate
from streamgauge.engines.operator_profiler import IsolatedOperator, Slice
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.launch import serve_job
from streamgauge.engines.spark.lowering.arrow_blocks import PACKED, Packing
from streamgauge.engines.spark.lowering.columns import column, ddl
from streamgauge.engines.spark.lowering.dataframe import TIME, Lowering
from streamgauge.engines.spark.lowering.windows import lowering_of
from streamgauge.engines.spark.operator_profiler import CLASS_ONLY, IsolatedJob, method_of
from streamgauge.engines.spark.options import JVM_OPTIONS, defaults, effective_lowerings, split
from streamgauge.engines.spark.session.session import error_message, open_checked
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob, load
from streamgauge.system.child_processes import Handlers

MASTER = "local[1]"
"""One task at a time: the cost of a row at one instance."""
SMALL_INITIAL_HEAP = "-Xms64m"
"""Overrides the full initial heap, which would hide the operators' memory use. The JVM uses the last such option."""
Clock = Callable[[], float]
Read = Callable[..., DataFrame]


class SparkTimer:
    """The difference of two Spark runs over the same cached rows."""

    def __init__(
        self, session: Any, operator: IsolatedOperator, choices: dict[str, str], buckets: int, clock: Clock
    ) -> None:
        self._session, self._operator = session, operator
        self._choices, self._buckets, self._clock = choices, buckets, clock
        self._empty: dict[str, DataFrame] = {}

    def sample(self, number: int) -> Slice | None:
        """Times slice `number`; None if it has no rows."""
        frames = {source.name: self._cached_slice(source, number) for source in self._operator.sources}
        try:
            rows = sum(frame.count() for frame in frames.values())
            return self._difference(frames, rows, number) if rows else None
        finally:
            for frame in frames.values():
                frame.unpersist(blocking=True)

    def _difference(self, frames: dict[str, DataFrame], rows: int, number: int) -> Slice:
        runs = {**self._runs(frames, ""), **self._runs(self._without_rows(), "no ")}
        seconds = {}
        for name in list(runs) if number % 2 else list(reversed(runs)):
            started_at = self._clock()
            runs[name].count()
            seconds[name] = self._clock() - started_at
        return Slice(rows, seconds["operator"], seconds["reading"], seconds["no operator"] - seconds["no reading"])

    def _runs(self, frames: dict[str, DataFrame], prefix: str) -> dict[str, Any]:
        """Both runs over the same frames, already planned."""
        node, lowering = self._operator.node, Lowering(_reader(frames), _reader(frames), self._choices, self._buckets)
        # Arrays in an input are computed in both runs.
        inputs = [
            frames[each.name] if isinstance(each, Source) else lowering.lower(each).drop(TIME)
            for each in graph.inputs(node)
        ]
        return {
            f"{prefix}reading": _planned(_united(inputs)),
            f"{prefix}operator": _planned(lowering.lower(node).drop(TIME)),
        }

    def _without_rows(self) -> dict[str, DataFrame]:
        """Every source without rows, cached, because Spark would optimise an empty uncached source away."""
        if not self._empty:
            for source in self._operator.sources:
                frame = self._session.createDataFrame([], ddl(_kinds(source)))
                self._empty[source.name] = frame.coalesce(1).persist(StorageLevel.MEMORY_ONLY)
                self._empty[source.name].count()
        return self._empty

    def _cached_slice(self, source: Source, number: int) -> DataFrame:
        """A slice of a source as a frame with one partition, cached on the first count."""
        kinds = _kinds(source)
        files = self._operator.files(source, number)
        if not files:
            return self._session.createDataFrame([], ddl(kinds)).persist(StorageLevel.MEMORY_ONLY)
        stored_types, reader = {name: kinds[name] for name in pq.read_schema(files[0]).names}, self._session.read
        if "timestamp" not in stored_types.values():
            reader = reader.schema(ddl(stored_types))  # else Spark would run a job to infer it
        # The oracle writes timestamps without a zone, another type in Spark; the session's zone is UTC.
        typed = [column(name).cast(kind).alias(name) for name, kind in stored_types.items()]
        return reader.parquet(*files).select(*typed).coalesce(1).persist(StorageLevel.MEMORY_ONLY)


class UserJobTimer(SparkTimer):
    """A user job's function in batch instead of an operator's lowering."""

    def __init__(self, session: Any, operator: IsolatedOperator, job: PySparkJob) -> None:
        super().__init__(session, operator, {}, 1, time.perf_counter)
        self._job = job

    def _runs(self, frames: dict[str, DataFrame], prefix: str) -> dict[str, Any]:
        inputs = [frames[source.name] for source in graph.inputs(self._operator.node)]
        return {
            f"{prefix}reading": _planned(_united(inputs)),
            f"{prefix}operator": _planned(self._job.batch(self._session, inputs)),
        }


def _kinds(source: Source) -> dict[str, str]:
    return {**source.schema.types(), **dict.fromkeys((*source.lineage, EVENT_TIME), "bigint")}


def _reader(frames: dict[str, DataFrame]) -> Read:
    """Reads a cached source: as rows, or as the packed blocks that a streaming reader would give.

    Rows have only the engine time, because both sides of a join would have `event_time`.
    """

    def read(source: Source, packing: Packing | None = None) -> DataFrame:
        frame = frames[source.name]
        if packing is not None:
            return frame.mapInArrow(partial(packing.rows, serial=0), PACKED)
        if EVENT_TIME not in frame.columns:
            return frame
        return frame.withColumn(TIME, F.timestamp_micros(EVENT_TIME)).drop(EVENT_TIME)

    return read


def _united(frames: list[DataFrame]) -> DataFrame:
    """All rows of all frames under distinct column names, so that one run reads them all."""
    if len(frames) == 1:
        return frames[0].select("*")
    renamed = [frame.toDF(*[f"_{n}_{name}" for name in frame.columns]) for n, frame in enumerate(frames)]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), renamed)


def _planned(frame: DataFrame) -> Any:
    """A frame's planned and compiled RDD; `count()` runs it and discards the rows."""
    return frame._jdf.queryExecution().toRdd()


class PythonTimer:
    """Times a keyed process's class alone, over slices in order. Its state persists between slices."""

    def __init__(self, operator: IsolatedOperator, clock: Clock) -> None:
        assert isinstance(operator.node, Process)
        self._operator, self._node, self._clock = operator, operator.node, clock
        self._shapes = column_layouts(operator.node)
        self._instance = OperatorRuntime(operator.node, self._shapes)

    def sample(self, number: int) -> Slice | None:
        """Times slice `number`; None if it has no rows."""
        inputs = zip(self._node.inputs, self._shapes.sides, strict=True)
        sides = [self._rows(input_, side, number) for input_, side in inputs]
        rows = sum(len(side) for side in sides)
        if not rows:
            return None
        watermark_us = max(pc.max(side.column(TIME)).as_py() for side in sides if len(side))
        started_at = self._clock()
        for _ in self._instance.advance(sides, watermark_us):
            pass
        return Slice(rows, self._clock() - started_at, 0.0)

    def _rows(self, input_: Node, side: pa.Schema, number: int) -> pa.Table:
        if not isinstance(input_, Source):
            raise ValueError("its input has arrays, which a process cannot read")
        files = self._operator.files(input_, number)
        if not files:
            return side.empty_table()
        rows = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
        return rows.append_column(TIME, rows.column(EVENT_TIME)).select(side.names).cast(side)


class Timing:
    """One session that times slices of every operator. A failed operator is reported once and then skipped."""

    def __init__(self, job: IsolatedJob) -> None:
        self._job = job
        self._own_options, self._users = split(job.options)
        self._timed: dict[str, SparkTimer | PythonTimer] = {}

    def start(self) -> dict[str, str]:
        """Starts the session. Returns the settings in force that are not Spark's defaults."""
        conf = {
            **defaults(1, local_checkpoint=False, options=self._own_options),
            # An adaptive plan would run its first stages while it is planned, and so before they are timed.
            "spark.sql.adaptive.enabled": "false",
            # Small static tables would be joined by broadcast, which streams never are.
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.driver.memory": self._own_options["driver_memory"],
            **self._users,
        }
        user_jobs = {each.name: load(each.job) for each in self._job.operators if each.job is not None}
        jvm_options = (*JVM_OPTIONS[self._own_options["jit"]], SMALL_INITIAL_HEAP)
        session = open_checked(MASTER, conf, self._users, Path(self._job.folder), jvm_options)
        for operator in self._job.operators:
            self._timed[operator.name] = self._of(session, operator, user_jobs)
        return {"master": MASTER, **conf}

    def _of(
        self, session: Any, operator: IsolatedOperator, user_jobs: Mapping[str, PySparkJob]
    ) -> SparkTimer | PythonTimer:
        if method_of(operator.node) == CLASS_ONLY:
            return PythonTimer(operator, time.perf_counter)
        if operator.name in user_jobs:
            return UserJobTimer(session, operator, user_jobs[operator.name])
        choices = effective_lowerings([operator.node], self._own_options, packs=True)
        if isinstance(operator.node, WindowAggregate) and lowering_of(operator.node, choices) == "sliding":
            choices = {operator.node.name: "panes"}  # a process keeps state, which batches do not have
        return SparkTimer(session, operator, choices, int(self._own_options["buckets"]), time.perf_counter)

    def slice(self, number: int) -> dict[str, Any]:
        """Operator to its sample of a slice as plain data, None if it has no rows, or the reason of its failure."""
        samples: dict[str, Any] = {}
        for name, timed in list(self._timed.items()):
            try:
                sample = timed.sample(number)
            except Exception as error:
                samples[name] = error_message(str(error)).splitlines()[-1] or type(error).__name__
                del self._timed[name]
            else:
                samples[name] = list(sample) if sample else None
        return samples


def commands_of(job: IsolatedJob) -> Handlers:
    timing = Timing(job)
    return {"start": timing.start, "slice": timing.slice}


if __name__ == "__main__":
    serve_job(commands_of)
