"""The windowed join by packed blocks: Arrow blocks instead of rows pass through shuffle and state.

1. Pack: each task splits its rows by (pane, key bucket) and writes each part as an Arrow IPC block. If a side has only
   plain columns of its stream and integer keys, the reader packs, and rows never become Spark rows.
2. Hold: each block is one state row until the watermark passes its window.
3. Gather: the blocks of a closed (window, bucket) meet in one task.
4. Open: Acero joins the rows of both sides.

The result equals that of Spark's stream-stream join, without a state read and write per row.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.schema import EVENT_TIME, WINDOW_END, WINDOW_START, arrow_type
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Node, Source, WindowJoin
from streamgauge.engines.spark.lowering import arrow_blocks
from streamgauge.engines.spark.lowering.arrow_blocks import BLOCK, BUCKET, PACKED, SERIAL, SIDE, TIME, Batches, Packing
from streamgauge.engines.spark.lowering.columns import columns, ddl
from streamgauge.engines.spark.lowering.operators import MARK, window_of
from streamgauge.engines.spark.lowering.windows import NO_DELAY, pane_width_us
from streamgauge.engines.spark.session.session import SHUFFLE_PARTITIONS

WINDOW = "_window"


def packed_join(
    node: WindowJoin,
    lower: Callable[[Node], DataFrame],
    read_packed: Callable[[Source, Packing], DataFrame],
    buckets: int,
) -> DataFrame:
    """Joins by blocks. `lower` gives a frame with `_time` and no watermark; `read_packed` reads packed rows."""
    sides = (node.left, node.right)
    pane_us = pane_width_us(node.window)
    plans = [packing_of(side, number, node.keys, buckets, pane_us) for number, side in enumerate(sides)]
    # Both are packed by the same method, because their buckets must agree.
    if all(plans):
        left, right = (read_packed(*plan) for plan in plans if plan is not None)
    else:
        left, right = (_packed(lower(side), number, node, buckets) for number, side in enumerate(sides))
    stored_blocks = (
        left.unionByName(right)
        .withWatermark(TIME, NO_DELAY)
        .groupBy(window_of(node.window, TIME).alias(WINDOW), BUCKET, SIDE, SERIAL)
        .agg(F.first(BLOCK).alias(BLOCK))
    )
    borders = [
        F.unix_micros(f"{WINDOW}.{end}").alias(name) for end, name in (("start", WINDOW_START), ("end", WINDOW_END))
    ]
    tasks = int(stored_blocks.sparkSession.conf.get(SHUFFLE_PARTITIONS))
    # By number, because a hash may send the few buckets of a closed window to one task.
    gathered = stored_blocks.select(*borders, BUCKET, SIDE, BLOCK).repartitionById(
        tasks, F.pmod(F.col(BUCKET), F.lit(tasks))
    )
    joined_columns = schema.columns(node) | {WINDOW_START: "bigint", WINDOW_END: "bigint"}
    return (
        gathered.mapInArrow(_opener(node), ddl(joined_columns))
        .withColumn(TIME, F.timestamp_micros(F.col(WINDOW_END) - 1).alias(TIME, metadata=MARK))
        .withColumns({name: F.timestamp_micros(name) for name in (WINDOW_START, WINDOW_END)})
    )


def packing_of(
    side: Node, number: int, keys: Sequence[str], buckets: int, pane_us: int, needed: Iterable[str] | None = None
) -> tuple[Source, Packing] | None:
    """How the reader can pack a side; None if it is computed or its keys are not integers. `needed`: None for all
    columns.
    """
    source_columns = schema.plain_columns(side, keys)
    if source_columns is None:
        return None
    source, columns = source_columns
    names = {**dict(columns), EVENT_TIME: EVENT_TIME}
    retained = columns if needed is None else tuple((name, names[name]) for name in needed)
    return source, Packing(number, retained, tuple(names[key] for key in keys), EVENT_TIME, buckets, pane_us)


def _packed(frame: DataFrame, side: int, node: WindowJoin, buckets: int) -> DataFrame:
    return frame.select(
        *columns(name for name in frame.columns if name != TIME),
        F.unix_micros(TIME).alias(TIME),
        F.pmod(F.hash(*columns(node.keys)), F.lit(buckets)).alias(BUCKET),
    ).mapInArrow(arrow_blocks.packer(side, buckets, pane_width_us(node.window), (TIME, BUCKET)), PACKED)


def _opener(node: WindowJoin) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    left, right = (
        pa.schema([(name, arrow_type(kind)) for name, kind in schema.columns(side).items()])
        for side in (node.left, node.right)
    )
    keys, names = list(node.keys), list(schema.columns(node))

    def open_blocks(batches: Iterable[pa.RecordBatch]) -> Batches:
        sides: dict[tuple[int, int, int], tuple[list[Any], list[Any]]] = {}
        for batch in batches:
            columns = [batch.column(name) for name in (WINDOW_START, WINDOW_END, BUCKET, SIDE, BLOCK)]
            for start, end, bucket, side, block in zip(*columns, strict=True):
                both = sides.setdefault((start.as_py(), end.as_py(), bucket.as_py()), ([], []))
                both[side.as_py()].append(block.as_buffer())
        for (start, end, _), (left_blocks, right_blocks) in sides.items():
            if left_blocks and right_blocks:
                tables = arrow_blocks.opened(left_blocks, left), arrow_blocks.opened(right_blocks, right)
                joined = tables[0].join(tables[1], keys, join_type="inner", use_threads=False)
                yield from _with_window(joined, start, end, names)

    return open_blocks


def _with_window(joined: pa.Table, start_us: int, end_us: int, names: list[str]) -> Batches:
    for name, value in ((WINDOW_START, start_us), (WINDOW_END, end_us)):
        joined = joined.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), joined.num_rows))
    yield from joined.select(names).combine_chunks().to_batches()
