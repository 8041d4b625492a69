"""The process operator on Spark. Stateless: `mapInArrow`. Keyed: blocks of rows pass through shuffle and state.

1. Pack: each task splits its rows by key bucket and writes each part as an Arrow IPC block. If the inputs are plain
   columns of streams and keys are integers, the reader packs.
2. Gather: the blocks of a bucket meet in one task of `transformWithStateInPandas`, one call per bucket and batch.
   Blocks of a broadcast input go to every bucket.
3. Process: restore the bucket's instance from its snapshot, pass all rows of the batch in event-time order, emit
   results as blocks, store the snapshot.
4. Unpack blocks to rows.

If all sources of a batch are cut at one event time (the common frontier), sorting within a batch is sufficient.
Otherwise each bucket holds rows until the watermark passes them (`HeldRows`), and its state includes them. A class
that states times itself uses Spark's watermark, which lags one batch, as windows do. A timer per bucket fires when that
watermark moves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import count
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streamgauge.core.schema import EVENT_TIME
from streamgauge.core.units import FAR_PAST_US
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Node, Process, Source
from streamgauge.dataflow.static_table import serialized
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.lowering import arrow_blocks
from streamgauge.engines.spark.lowering.arrow_blocks import (
    BLOCK,
    BUCKET,
    ONE_PANE_US,
    PACKED,
    SIDE,
    TIME,
    Batches,
    Packing,
)
from streamgauge.engines.spark.lowering.columns import column, columns, ddl
from streamgauge.engines.spark.lowering.operators import MARK, is_marked
from streamgauge.engines.spark.lowering.packed_join import packing_of
from streamgauge.engines.spark.lowering.windows import NO_DELAY
from streamgauge.engines.spark.session.reports import LATE_ROWS_OF
from streamgauge.engines.spark.session.session import SHUFFLE_PARTITIONS

BLOCKS = f"{BLOCK} binary"
STATE = "snapshot binary"
HELD_STATE = f"{STATE}, held binary"
LATE = "_late"
"""In a row without a block: how many rows a bucket dropped as late in a batch."""
_NEVER_LATE_US = 7_258_118_400_000_000
"""The time of blocks whose rows are held, the year 2200: Spark would drop whole blocks, and count each as one row."""
_OBSERVED = count(1)
"""Numbers for unique names, because a query may read a process twice."""
IDS_TRIED = 16
"""Candidate ids per bucket, to find one that Spark's hash sends to the intended partition."""


def process(
    node: Process,
    lower: Callable[[Node], DataFrame],
    read_packed: Callable[[Source, Packing], DataFrame] | None,
    buckets: int,
    uneven: str | None = None,
) -> DataFrame:
    """The results' columns and `_time`, with its watermark if there is one. `lower` gives a frame with `_time`.

    `read_packed`: None if the reader cannot pack. `uneven`: the watermark delay if
    batches are not cut at one event time; then rows are held until the watermark, unless an operator before did so.
    """
    if not node.keys:
        return _stateless(node, lower(node.inputs[0]))
    packed, held = _packed_inputs(node, lower, read_packed, buckets, uneven)
    spread = F.element_at(F.array(*map(F.lit, _bucket_ids(packed, buckets))), F.col(BUCKET) + 1)
    # Without leading underscores, because pandas drops such names in named tuples.
    gathered = packed.select(spread.alias("bucket"), F.col(SIDE).alias("side"), F.col(BLOCK).alias("block"), TIME)
    results = gathered.groupBy("bucket").transformWithStateInPandas(
        Bucket(node, held), f"{BLOCKS}, {LATE} bigint" if held else BLOCKS, "append", "eventTime"
    )
    if held:
        # The blocks go on; the numbers of late rows go to the reports on batches.
        name = f"{LATE_ROWS_OF}{node.name}, {next(_OBSERVED)}"
        late = F.coalesce(F.sum(LATE), F.lit(0)).alias(LATE)
        results = results.observe(name, late).where(F.col(BLOCK).isNotNull()).drop(LATE)
    return _timed(results.mapInArrow(_unpack, _ddl(column_layouts(node).results, node)), marked=True)


def _stateless(node: Process, frame: DataFrame) -> DataFrame:
    wanted = column_layouts(node)

    def each(batches: Iterable[pa.RecordBatch]) -> Batches:
        instance = OperatorRuntime(node, wanted)
        for batch in batches:
            rows = pa.Table.from_batches([batch]).cast(wanted.sides[0])
            yield from instance.each(rows).combine_chunks().to_batches()

    rows = _rows(frame, wanted.sides[0])
    return _timed(rows.mapInArrow(each, _ddl(wanted.results, node)), is_marked(frame, TIME))


def _rows(frame: DataFrame, side: pa.Schema, *more: Any) -> DataFrame:
    """The columns that a process reads from an input, `_time` in microseconds."""
    taken = [F.unix_micros(TIME).alias(TIME) if name == TIME else column(name) for name in side.names]
    return frame.select(*taken, *more)


def _timed(frame: DataFrame, marked: bool) -> DataFrame:
    """`_time` as a timestamp; restores the watermark metadata, which rows from Python lack."""
    time = F.timestamp_micros(TIME)
    return frame.withColumn(TIME, time.alias(TIME, metadata=MARK) if marked else time)


def _ddl(results: pa.Schema, node: Process) -> str:
    kinds = {**schema.columns(node), TIME: "bigint"}
    return ddl({name: kinds[name] for name in results.names})


def _packed_inputs(
    node: Process,
    lower: Callable[[Node], DataFrame],
    read_packed: Callable[[Source, Packing], DataFrame] | None,
    buckets: int,
    uneven: str | None,
) -> tuple[DataFrame, bool]:
    """All inputs as blocks with a watermark on `_time`, and whether their rows must be held.

    All are packed by the same method, because buckets must agree.
    """
    plans = [_packing(node, number, buckets) for number in range(len(node.inputs))]
    if read_packed is not None and all(plans):
        frames = [
            _spread_broadcast(read_packed(*plan), node, plan[1].side, buckets) for plan in plans if plan is not None
        ]
        return reduce(DataFrame.unionByName, frames).withWatermark(TIME, NO_DELAY), False
    frames = [lower(input_) for input_ in node.inputs]
    held = uneven is not None and not all(is_marked(frame, TIME) for frame in frames)
    packed = [_packed(frame, number, node, buckets, uneven or NO_DELAY, held) for number, frame in enumerate(frames)]
    return reduce(DataFrame.unionByName, packed).withColumn(TIME, F.col(TIME).alias(TIME, metadata=MARK)), held


def _packing(node: Process, number: int, buckets: int) -> tuple[Source, Packing] | None:
    """As `packing_of`, with `event_time` instead of `_time`, which are equal for source rows."""
    keys = () if node.is_broadcast(number) else node.keys
    needed = dict.fromkeys(EVENT_TIME if name == TIME else name for name in column_layouts(node).sides[number].names)
    return packing_of(node.inputs[number], number, keys, buckets, ONE_PANE_US, needed)


def _packed(frame: DataFrame, number: int, node: Process, buckets: int, delay: str, held: bool) -> DataFrame:
    """The rows of an input as blocks. If they are held, their watermark is that of rows, and no block is late."""
    marked = is_marked(frame, TIME)
    frame = frame.withWatermark(TIME, delay) if held and not marked else frame
    bucket = F.lit(0) if node.is_broadcast(number) else F.pmod(F.hash(*columns(node.keys)), F.lit(buckets))
    rows = _rows(frame, column_layouts(node).sides[number], bucket.alias(BUCKET)).mapInArrow(
        arrow_blocks.packer(number, buckets, ONE_PANE_US, (BUCKET,)), PACKED
    )
    packed = _spread_broadcast(rows, node, number, buckets)
    if held:
        return packed.withColumn(TIME, F.timestamp_micros(F.lit(_NEVER_LATE_US)).alias(TIME, metadata=MARK))
    if marked:
        return packed.withColumn(TIME, F.col(TIME).alias(TIME, metadata=MARK))
    return packed.withWatermark(TIME, delay)


def _spread_broadcast(packed: DataFrame, node: Process, number: int, buckets: int) -> DataFrame:
    """The blocks of an input; those of a broadcast input are repeated for every bucket."""
    if not node.is_broadcast(number):
        return packed
    return packed.withColumn(BUCKET, F.explode(F.sequence(F.lit(0), F.lit(buckets - 1))))


def _bucket_ids(frame: DataFrame, buckets: int) -> list[int]:
    """An id per bucket such that buckets are spread evenly over shuffle partitions; small ids hash unevenly."""
    session = frame.sparkSession
    partitions = int(str(session.conf.get(SHUFFLE_PARTITIONS)))
    ids = f"sequence(0, {max(buckets, partitions) * IDS_TRIED})"
    query = f"SELECT transform({ids}, x -> pmod(hash(x), {partitions}))"
    free: list[list[int]] = [[] for _ in range(partitions)]
    for number, partition in enumerate(session.sql(query).first()[0]):
        free[partition].append(number)
    return [free[bucket % partitions][bucket // partitions] for bucket in range(buckets)]


class Bucket(StatefulProcessor):
    """One bucket of a process's keys: input blocks, output blocks, and the snapshot as Spark's state."""

    def __init__(self, node: Process, held: bool = False) -> None:
        self._holds = held
        # Computed here, so that workers need neither the binder nor the parser of expressions.
        self._node, self._shapes = node, column_layouts(node)

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("snapshot", HELD_STATE if self._holds else STATE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        sides: list[list[bytes]] = [[] for _ in self._node.inputs]
        for part in rows:
            for side, block in zip(part["side"], part["block"], strict=True):
                sides[side].append(block)
        tables = [_opened(found, wanted) for found, wanted in zip(sides, self._shapes.sides, strict=True)]
        yield from self._advance(tables, timerValues)
        if self._node.identity or self._holds:
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            self._wake_later(timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield from self._advance([wanted.empty_table() for wanted in self._shapes.sides], timerValues)
        self._wake_later(timerValues)

    def close(self) -> None:
        """Nothing to release."""

    def _advance(self, sides: list[pa.Table], timer_values: Any) -> Iterator[pd.DataFrame]:
        instance = OperatorRuntime(self._node, self._shapes)
        watermark_us, saved = timer_values.getCurrentWatermarkInMs() * 1000, self._state.get()
        if saved is not None:
            instance.restore(bytes(saved[0]))
        if not self._holds:
            yield from self._results(instance, sides, watermark_us)
            self._state.update((instance.snapshot(),))
            return
        held = HeldRows(self._shapes.sides)
        if saved is not None:
            held.restore(bytes(saved[1]))
        released = held.release(sides, watermark_us)
        if held.late:
            yield pd.DataFrame({BLOCK: [None], LATE: [held.late]})  # for the count
        # Only a class that states times itself has results without rows.
        if self._node.identity or any(len(rows) for rows in released):
            yield from self._results(instance, released, watermark_us)
        self._state.update((instance.snapshot(), held.to_bytes()))

    def _results(self, instance: OperatorRuntime, sides: list[pa.Table], watermark_us: int) -> Iterator[pd.DataFrame]:
        more = {LATE: 0} if self._holds else {}
        for results in instance.advance(sides, watermark_us):
            if len(results):
                yield pd.DataFrame({BLOCK: [serialized(results)]}).assign(**more)

    def _wake_later(self, timer_values: Any) -> None:
        self._handle.registerTimer(timer_values.getCurrentWatermarkInMs() + 1)


def _opened(blocks: list[bytes], schema: pa.Schema) -> pa.Table:
    if not blocks:
        return schema.empty_table()
    rows = pa.concat_tables([pa.ipc.open_stream(block).read_all() for block in blocks])
    if TIME not in rows.column_names:
        rows = rows.append_column(TIME, rows.column(EVENT_TIME))
    return rows.select(schema.names).cast(schema)


def _unpack(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        for block in batch.column(BLOCK):
            yield from pa.ipc.open_stream(block.as_buffer()).read_all().to_batches()


class HeldRows:
    """The rows of one bucket that wait for the watermark, by input of its process. `schemas` are those of the inputs.

    If a batch reads each partition up to its own offset, a row of a later batch may be earlier than rows of this one.
    So a bucket holds its rows until the watermark has passed them, and passes them on in order. A row that comes after
    that is late, and is dropped as Spark drops rows.
    """

    def __init__(self, schemas: Sequence[pa.Schema]) -> None:
        self._rows = [schema.empty_table() for schema in schemas]
        self._released_us = FAR_PAST_US
        self.late = 0
        """The rows of the last batch that were dropped because they came too late."""

    def release(self, sides: Sequence[pa.Table], watermark_us: int) -> list[pa.Table]:
        """Holds the rows of a batch. Returns those before the watermark, by input, with rows held earlier."""
        released, self.late = [], 0
        for number, fresh in enumerate(sides):
            in_time = fresh.filter(pc.greater_equal(fresh.column(TIME), self._released_us))
            self.late += len(fresh) - len(in_time)
            rows = pa.concat_tables([self._rows[number], in_time])
            is_due = pc.less(rows.column(TIME), watermark_us)
            released.append(rows.filter(is_due))
            self._rows[number] = rows.filter(pc.invert(is_due))
        self._released_us = max(self._released_us, watermark_us)
        return released

    def to_bytes(self) -> bytes:
        """The held rows, and how far rows were released, as an Arrow table with a row for each input."""
        blocks = [serialized(rows) for rows in self._rows]
        return serialized(pa.table({"rows": blocks, "released_us": [self._released_us] * len(blocks)}))

    def restore(self, state: bytes) -> None:
        saved = pa.ipc.open_stream(state).read_all()
        self._rows = [pa.ipc.open_stream(block.as_buffer()).read_all() for block in saved.column("rows")]
        self._released_us = saved.column("released_us")[0].as_py()
