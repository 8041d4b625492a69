"""The process that times operators alone: Spark fuses what follows each other, so nothing else tells them apart.

For each slice of an operator's input:

1. the rows are put into Spark's memory, as one partition; the engine has one task, so this is what one instance takes
2. two frames are made over them: one that only reads, and the operator, lowered as it is for every run, in batch
3. both are planned and compiled, tables for lookups are sent: all that is paid once a batch, and not for each row
4. both are run with their rows thrown away, each timed, and then over no rows at all, or the other way round from slice
   to slice

The difference of the two is the operator's; over no rows it is what a job of the operator costs anyhow.

In batch a stateful operator begins each slice with no state and stores none. A keyed process would lose what it knows,
so its class is run by itself in this Python, where its state goes on: without Spark's exchange, its blocks and its
state store.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.errors import EngineError, InputError
from streamgauge.core.lineage_columns import EVENT_TIME
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import NativeJob, Node, Process, Source
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.columns import column, ddl
from streamgauge.engines.spark.error_message import error_message
from streamgauge.engines.spark.lowering.arrow_blocks import PACKED, Packing
from streamgauge.engines.spark.lowering.dataframe import TIME, Lowering
from streamgauge.engines.spark.options import JVM_OPTIONS, chosen_lowerings, defaults, split
from streamgauge.engines.spark.session.python_workers import UNCHANGED
from streamgauge.engines.spark.session.session import LocalSession, end_session, open_checked
from streamgauge.engines.spark.user_job.batch_slices import Slice
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob, load
from streamgauge.system.child_processes import serve

MASTER = "local[1]"
"""One task at a time: what a row takes at one instance."""
SMALL_AT_FIRST = "-Xms64m"
"""A heap that has its whole size from the start, as in every run, would say nothing of what operators take. The last
one counts."""
CLASS_ALONE, DIFFERENCE = "class_alone", "difference"
Clock = Callable[[], float]
Read = Callable[..., DataFrame]


@dataclass(frozen=True)
class IsolatedOperator:
    """An operator that reads nothing but sources, and where the slices of each are, by the source's name.

    `job`: an own job as it is written, whose streams have the names that its function knows.
    """

    name: str
    node: Node
    folders: dict[str, str]
    folder_of_a_slice: str
    job: NativeJob | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(each for each in graph.walk(self.node) if isinstance(each, Source))

    def files(self, source: Source, number: int) -> list[str]:
        """Where the rows of a slice are; nowhere where it has none."""
        folder = Path(self.folders[source.name]) / f"{self.folder_of_a_slice}={number}"
        return sorted(map(str, folder.glob("*.parquet")))

    @property
    def method(self) -> str:
        return CLASS_ALONE if isinstance(self.node, Process) and self.node.keys else DIFFERENCE


@dataclass(frozen=True)
class IsolatedJob:
    """What the runner hands over, by file."""

    operators: tuple[IsolatedOperator, ...]
    options: dict[str, str]
    folder: str


class OperatorTimer(Protocol):
    def sample(self, number: int) -> Slice | None:
        """Times the slice of that number; None where it has no rows."""


class SparkTimer:
    """The difference of two runs of Spark over the same rows in its memory."""

    def __init__(
        self, session: Any, operator: IsolatedOperator, choices: dict[str, str], buckets: int, clock: Clock
    ) -> None:
        self._session, self._operator = session, operator
        self._choices, self._buckets, self._clock = choices, buckets, clock
        self._empty: dict[str, DataFrame] = {}

    def sample(self, number: int) -> Slice | None:
        frames = {source.name: self._held(source, number) for source in self._operator.sources}
        try:
            rows = sum(frame.count() for frame in frames.values())
            return self._difference(frames, rows, number) if rows else None
        finally:
            for frame in frames.values():
                frame.unpersist(blocking=True)

    def _difference(self, frames: dict[str, DataFrame], rows: int, number: int) -> Slice:
        runs = {**self._runs(frames, ""), **self._runs(self._without_rows(), "no ")}
        took = {}
        for name in list(runs) if number % 2 else list(reversed(runs)):
            begun = self._clock()
            runs[name].count()
            took[name] = self._clock() - begun
        return Slice(rows, took["operator"], took["reading"], took["no operator"] - took["no reading"])

    def _runs(self, frames: dict[str, DataFrame], prefix: str) -> dict[str, Any]:
        """Both runs over the same frames, planned."""
        node, lowering = self._operator.node, Lowering(_reader(frames), _reader(frames), self._choices, self._buckets)
        inputs = [_input(lowering, frames, each) for each in graph.inputs(node)]
        return {
            f"{prefix}reading": _planned(_together(inputs)),
            f"{prefix}operator": _planned(lowering.lower(node).drop(TIME)),
        }

    def _without_rows(self) -> dict[str, DataFrame]:
        """Every source without a row, in memory as the others: else Spark would plan nothing at all for it."""
        if not self._empty:
            for source in self._operator.sources:
                frame = self._session.createDataFrame([], ddl(_kinds(source)))
                frame = frame.coalesce(1).persist(StorageLevel.MEMORY_ONLY)
                frame.count()
                self._empty[source.name] = frame
        return self._empty

    def _held(self, source: Source, number: int) -> DataFrame:
        """A slice of a source as a frame of one partition that stays in memory once it has been counted."""
        kinds = _kinds(source)
        files = self._operator.files(source, number)
        if not files:
            return self._session.createDataFrame([], ddl(kinds)).persist(StorageLevel.MEMORY_ONLY)
        there = {name: kinds[name] for name in pq.ParquetFile(files[0]).schema_arrow.names}
        # Told what is there, Spark does not run a job to find out; times are the exception: see below.
        reader = self._session.read if "timestamp" in there.values() else self._session.read.schema(ddl(there))
        found = reader.parquet(*files)
        # The reference writes times without a zone, which are another type to Spark; a session's zone is UTC.
        typed = [column(name).cast(kind).alias(name) for name, kind in there.items()]
        return found.select(*typed).coalesce(1).persist(StorageLevel.MEMORY_ONLY)


class UserJobTimer(SparkTimer):
    """An own job's function in batch, in the place of an operator's lowering."""

    def __init__(self, session: Any, operator: IsolatedOperator, native: PySparkJob, clock: Clock) -> None:
        super().__init__(session, operator, {}, 1, clock)
        self._native = native

    def _runs(self, frames: dict[str, DataFrame], prefix: str) -> dict[str, Any]:
        inputs = [frames[source.name] for source in graph.inputs(self._operator.node)]
        return {
            f"{prefix}reading": _planned(_together(inputs)),
            f"{prefix}operator": _planned(self._native.batch(self._session, inputs)),
        }


def _kinds(source: Source) -> dict[str, str]:
    return {**source.schema.types(), **dict.fromkeys((*source.lineage, EVENT_TIME), "bigint")}


def _reader(frames: dict[str, DataFrame]) -> Read:
    """Reads a source out of memory: as rows, or as the packed blocks that a reader of streams would make of them.

    Rows have the engine's time alone: `event_time` is lineage, and two sides of a join would both have it.
    """

    def read(source: Source, packing: Packing | None = None) -> DataFrame:
        frame = frames[source.name]
        if packing is not None:
            return frame.mapInArrow(_packer(packing), PACKED)
        if EVENT_TIME not in frame.columns:
            return frame
        return frame.withColumn(TIME, F.timestamp_micros(EVENT_TIME)).drop(EVENT_TIME)

    return read


def _packer(packing: Packing) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from packing.rows(batches, 0)

    return pack


def _input(lowering: Lowering, frames: dict[str, DataFrame], node: Node) -> DataFrame:
    """What an operator reads; where that has arrays, they are made on the way, in both runs."""
    return frames[node.name] if isinstance(node, Source) else lowering.lower(node).drop(TIME)


def _together(frames: list[DataFrame]) -> DataFrame:
    """All rows of all frames, each under names of its own, so that one run reads them all."""
    if len(frames) == 1:
        return frames[0].select("*")
    apart = [frame.toDF(*[f"_{n}_{name}" for name in frame.columns]) for n, frame in enumerate(frames)]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), apart)


def _planned(frame: DataFrame) -> Any:
    """A frame's rows inside the engine, planned and compiled; `count()` runs it and throws them away."""
    return frame._jdf.queryExecution().toRdd()


class PythonTimer:
    """A keyed process's class by itself, over slices in order; what it knows goes on from one to the next."""

    def __init__(self, operator: IsolatedOperator, clock: Clock) -> None:
        assert isinstance(operator.node, Process)
        self._operator, self._node, self._clock = operator, operator.node, clock
        self._shapes = column_layouts(operator.node)
        self._instance = OperatorRuntime(operator.node, self._shapes)

    def sample(self, number: int) -> Slice | None:
        inputs = zip(self._node.inputs, self._shapes.sides, strict=True)
        sides = [self._rows(input_, side, number) for input_, side in inputs]
        rows = sum(len(side) for side in sides)
        if not rows:
            return None
        watermark_us = max(pc.max(side.column(TIME)).as_py() for side in sides if len(side))
        begun = self._clock()
        for _ in self._instance.advance(sides, watermark_us):
            pass
        return Slice(rows, self._clock() - begun, 0.0)

    def _rows(self, input_: Node, side: pa.Schema, number: int) -> pa.Table:
        if not isinstance(input_, Source):
            raise ValueError("its input has arrays, which no process takes")
        files = self._operator.files(input_, number)
        if not files:
            return side.empty_table()
        rows = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
        return rows.append_column(TIME, rows.column(EVENT_TIME)).select(side.names).cast(side)


class Timing:
    """One session; slice after slice of every operator. One that fails is told once, with its reason."""

    def __init__(self, job: IsolatedJob, clock: Clock = time.perf_counter) -> None:
        self._job, self._clock = job, clock
        self._own_options, self._users = split(job.options)
        self._natives: dict[str, PySparkJob] = {}
        self._timed: dict[str, OperatorTimer] = {}

    def start(self) -> dict[str, str]:
        """Start the session; returns the settings in force that are not Spark's defaults."""
        conf = {
            **defaults(1, local_checkpoint=False, options=self._own_options),
            # An adaptive plan would run its first stages while it is planned, and so before they are timed.
            "spark.sql.adaptive.enabled": "false",
            # Small tables at rest would be joined by sending one of them along; streams never are.
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.driver.memory": self._own_options["driver_memory"],
            **self._users,
        }
        self._natives = {each.name: load(each.job) for each in self._job.operators if each.job is not None}
        try:
            options = (*JVM_OPTIONS[self._own_options["jit"]], SMALL_AT_FIRST)
            local = LocalSession(unix_sockets=self._own_options["python_workers"] != UNCHANGED)
            session = open_checked(MASTER, conf, self._users, Path(self._job.folder), options, local)
        except InputError:
            raise
        except Exception as error:
            raise EngineError(error_message(str(error))) from None
        for operator in self._job.operators:
            self._timed[operator.name] = self._of(session, operator)
        return {"master": MASTER, **conf}

    def _of(self, session: Any, operator: IsolatedOperator) -> OperatorTimer:
        if operator.method == CLASS_ALONE:
            return PythonTimer(operator, self._clock)
        if operator.name in self._natives:
            return UserJobTimer(session, operator, self._natives[operator.name], self._clock)
        choices = chosen_lowerings([operator.node], self._own_options)
        return SparkTimer(session, operator, choices, int(self._own_options["buckets"]), self._clock)

    def slice(self, number: int) -> dict[str, Any]:
        """Operator to its sample of a slice as plain data, None where it has no rows, or the reason why it failed."""
        found: dict[str, Any] = {}
        for name, timed in list(self._timed.items()):
            try:
                sample = timed.sample(number)
            except Exception as error:
                found[name] = _reason(str(error)) or type(error).__name__
                del self._timed[name]
            else:
                found[name] = list(sample) if sample else None
        return found


def _reason(text: str) -> str:
    """An error's own last reason, out of the stack that an engine wraps it in."""
    return error_message(text).splitlines()[-1]


def main() -> None:
    path = Path(sys.argv[1])
    timing = Timing(pickle.loads(path.read_bytes()))
    serve({"start": timing.start, "slice": timing.slice}, on_orphaned=end_session, scratch=path.parent)


if __name__ == "__main__":
    main()
