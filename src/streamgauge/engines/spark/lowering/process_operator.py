"""A process on Spark. Stateless: `mapInArrow`. Keyed: blocks of rows move through shuffle and state, never rows.

1. pack: each task cuts its rows by bucket of the keys and writes every part as one Arrow IPC block; the reader does it
   where the inputs are nothing but columns of their streams and keys are whole numbers
2. gather: the blocks of a bucket meet in one task, in `transformWithStateInPandas`, one call a bucket and batch; those
   of a broadcast input are packed whole, and go to every bucket
3. process: the bucket's instance is restored from its snapshot, gets all rows of the batch in event-time order, gives
   results as blocks, and its snapshot is the bucket's state
4. unpack: blocks become rows again; or the process cuts its results by the keys of the next one (`onward`), which
   gathers them as they are

Batches are cut at one event time for all sources (the common frontier), so after a batch's rows of a bucket everything
up to the latest of them has been given, and sorting within the batch is enough. A class that states times itself goes
by Spark's watermark, which lags one batch, as windows do: so its results come in order of time from all buckets. A
timer of each bucket wakes it whenever that watermark has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streamgauge.core.lineage_columns import EVENT_TIME
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Node, Process, Source
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.columns import column, columns, ddl
from streamgauge.engines.spark.lowering import arrow_blocks
from streamgauge.engines.spark.lowering.arrow_blocks import BLOCK, BUCKET, ONE_PANE_US, PACKED, SIDE, TIME, Packing
from streamgauge.engines.spark.lowering.chaining import CHAINED, ChainSpec
from streamgauge.engines.spark.lowering.packed_join import plain_columns
from streamgauge.engines.spark.lowering.panes import MARK

Batches = Iterator[pa.RecordBatch]
PackedSource = tuple[Source, Packing]

BLOCKS = f"{BLOCK} binary"
STATE = "snapshot binary"
IDS_TRIED = 16
"""Numbers looked at, for each bucket, to find one that Spark sends where it should go."""


def process(
    node: Process,
    lower: Callable[[Node], DataFrame],
    read_packed: Callable[[Source, Packing], DataFrame],
    buckets: int,
    given: DataFrame | None = None,
    onward: ChainSpec | None = None,
) -> DataFrame:
    """The results' columns and `_time`, marked where a watermark is kept. `lower` gives a frame with `_time`.

    `given`: the input as a process before it handed it on; `onward`: how to hand results on, as rows of `CHAINED`.
    """
    if not node.keys:
        return _stateless(node, lower(node.inputs[0]))
    packed = _packed_inputs(node, lower, read_packed, buckets) if given is None else _handed(given)
    spread = F.element_at(F.array(*map(F.lit, _bucket_ids(packed, buckets))), F.col(BUCKET) + 1)
    # Names without an underscore at their front: pandas loses those on the way to the class.
    gathered = packed.select(spread.alias("bucket"), F.col(SIDE).alias("side"), F.col(BLOCK).alias("block"), TIME)
    results = gathered.groupBy("bucket").transformWithStateInPandas(
        Bucket(node, onward), BLOCKS if onward is None else CHAINED, "append", "eventTime"
    )
    if onward is not None:
        return results
    return _timed(results.mapInArrow(_unpack, _ddl(column_layouts(node).results, node)), marked=True)


def _stateless(node: Process, frame: DataFrame) -> DataFrame:
    marked = "spark.watermarkDelayMs" in frame.schema[TIME].metadata
    wanted = column_layouts(node)

    def each(batches: Iterable[pa.RecordBatch]) -> Batches:
        instance = OperatorRuntime(node, wanted)
        for batch in batches:
            rows = pa.Table.from_batches([batch]).cast(wanted.sides[0])
            yield from instance.each(rows).combine_chunks().to_batches()

    rows = _rows(frame, wanted.sides[0])
    return _timed(rows.mapInArrow(each, _ddl(wanted.results, node)), marked)


def _rows(frame: DataFrame, side: pa.Schema, *more: Any) -> DataFrame:
    """The columns that a process takes of an input, `_time` as microseconds."""
    taken = [F.unix_micros(TIME).alias(TIME) if name == TIME else column(name) for name in side.names]
    return frame.select(*taken, *more)


def _timed(frame: DataFrame, marked: bool) -> DataFrame:
    """`_time` as an engine time again; what Python gave has lost the mark."""
    time = F.timestamp_micros(TIME)
    return frame.withColumn(TIME, time.alias(TIME, metadata=MARK) if marked else time)


def _ddl(results: pa.Schema, node: Process) -> str:
    kinds = {**schema.columns(node), TIME: "bigint"}
    return ddl({name: kinds[name] for name in results.names})


def _packed_inputs(
    node: Process,
    lower: Callable[[Node], DataFrame],
    read_packed: Callable[[Source, Packing], DataFrame],
    buckets: int,
) -> DataFrame:
    """All inputs as blocks with a marked `_time`; all in one way, because their buckets must agree."""
    plans = [_packing(node, number, buckets) for number in range(len(node.inputs))]
    if all(plans):
        frames = [_placed(read_packed(*plan), node, plan[1].side, buckets) for plan in plans if plan is not None]
        together = frames[0]
        for frame in frames[1:]:
            together = together.unionByName(frame)
        return together.withWatermark(TIME, "0 seconds")
    packed = [_packed(lower(input_), number, node, buckets) for number, input_ in enumerate(node.inputs)]
    together = packed[0]
    for frame in packed[1:]:
        together = together.unionByName(frame)
    return together.withColumn(TIME, F.col(TIME).alias(TIME, metadata=MARK))


def _packing(node: Process, number: int, buckets: int) -> PackedSource | None:
    """How the reader itself can pack an input; None where it computes something or its keys are no whole numbers.

    Such blocks have `event_time` instead of `_time`: of a source's rows they are one.
    """
    found = plain_columns(node.inputs[number])
    kinds = schema.columns(node.inputs[number])
    keys = () if node.is_broadcast(number) else node.keys
    if found is None or any(kinds[key] not in ("int", "bigint") for key in keys):
        return None
    source, columns = found
    names = {**dict(columns), EVENT_TIME: EVENT_TIME}
    taken = dict.fromkeys([*column_layouts(node).sides[number].names, EVENT_TIME])
    kept = tuple((name, names[name]) for name in taken if name != TIME)
    return source, Packing(number, kept, tuple(names[key] for key in keys), EVENT_TIME, buckets, ONE_PANE_US)


def _packed(frame: DataFrame, number: int, node: Process, buckets: int) -> DataFrame:
    marked = "spark.watermarkDelayMs" in frame.schema[TIME].metadata
    by_key = F.pmod(F.hash(*columns(node.keys)), F.lit(buckets))
    bucket = (F.lit(0) if node.is_broadcast(number) else by_key).alias(BUCKET)
    rows = _rows(frame, column_layouts(node).sides[number], bucket).mapInArrow(_packer(number, buckets), PACKED)
    packed = _placed(rows, node, number, buckets)
    if marked:
        return packed.withColumn(TIME, F.col(TIME).alias(TIME, metadata=MARK))
    return packed.withWatermark(TIME, "0 seconds")


def _handed(given: DataFrame) -> DataFrame:
    """Blocks that another process cut, as if they had been packed here."""
    return _timed(given.select(BUCKET, F.lit(0).alias(SIDE), TIME, BLOCK), marked=True)


def _placed(packed: DataFrame, node: Process, number: int, buckets: int) -> DataFrame:
    """The blocks of an input, those of a broadcast one for every bucket: they come in the first."""
    if not node.is_broadcast(number):
        return packed
    return packed.withColumn(BUCKET, F.explode(F.sequence(F.lit(0), F.lit(buckets - 1))))


def _packer(side: int, buckets: int) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    def pack(batches: Iterable[pa.RecordBatch]) -> Batches:
        for table in arrow_blocks.tables(batches):
            times, bucket = table.column(TIME).to_numpy(), table.column(BUCKET).to_numpy()
            parts = list(arrow_blocks.cut(table.drop_columns([BUCKET]), times, bucket, buckets, ONE_PANE_US))
            yield arrow_blocks.packed_rows(side, parts, 0)

    return pack


def _bucket_ids(frame: DataFrame, buckets: int) -> list[int]:
    """A number for each bucket, such that buckets go to shuffle partitions in turn; small numbers hash unevenly."""
    session = frame.sparkSession
    partitions = int(str(session.conf.get("spark.sql.shuffle.partitions")))
    tried = max(buckets, partitions) * IDS_TRIED
    query = f"SELECT transform(sequence(0, {tried}), x -> pmod(hash(x), {partitions}))"
    free: list[list[int]] = [[] for _ in range(partitions)]
    for number, partition in enumerate(session.sql(query).first()[0]):
        free[partition].append(number)
    return [free[bucket % partitions][bucket // partitions] for bucket in range(buckets)]


class Bucket(StatefulProcessor):
    """One bucket of a process's keys: its blocks in, its results' blocks out, its snapshot as Spark's state."""

    def __init__(self, node: Process, onward: ChainSpec | None = None) -> None:
        self._onward = onward
        # Computed here: workers then need neither the binder nor the parser of expressions.
        self._node, self._shapes = node, column_layouts(node)
        self._ticks = bool(node.identity)

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("snapshot", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        sides: list[list[bytes]] = [[] for _ in self._node.inputs]
        for part in rows:
            for side, block in zip(part["side"], part["block"], strict=True):
                sides[side].append(block)
        tables = [_opened(found, wanted) for found, wanted in zip(sides, self._shapes.sides, strict=True)]
        yield from self._advance(tables, timerValues)
        if self._ticks:
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            self._wake_later(timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield from self._advance([wanted.empty_table() for wanted in self._shapes.sides], timerValues)
        self._wake_later(timerValues)

    def close(self) -> None:
        """Nothing is held."""

    def _advance(self, sides: list[pa.Table], timer_values: Any) -> Iterator[pd.DataFrame]:
        instance = OperatorRuntime(self._node, self._shapes)
        saved = self._state.get()
        if saved is not None:
            instance.restore(bytes(saved[0]))
        for results in instance.advance(sides, timer_values.getCurrentWatermarkInMs() * 1000):
            if len(results) and self._onward is not None:
                yield self._onward.blocks(results)
            elif len(results):
                yield pd.DataFrame({BLOCK: [arrow_blocks.block(results)]})
        self._state.update((instance.snapshot(),))

    def _wake_later(self, timer_values: Any) -> None:
        self._handle.registerTimer(timer_values.getCurrentWatermarkInMs() + 1)


def _opened(found: list[bytes], wanted: pa.Schema) -> pa.Table:
    if not found:
        return wanted.empty_table()
    rows = pa.concat_tables([pa.ipc.open_stream(block).read_all() for block in found])
    if TIME not in rows.column_names:
        rows = rows.append_column(TIME, rows.column(EVENT_TIME))
    return rows.select(wanted.names).cast(wanted)


def _unpack(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        for block in batch.column(BLOCK):
            yield from pa.ipc.open_stream(block.as_buffer()).read_all().to_batches()
