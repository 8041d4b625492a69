"""The windowed join by packed blocks: rows travel through shuffle and state as Arrow blocks, not one by one.

1. pack: each task cuts its rows by (pane, bucket of the keys) and writes every part as one Arrow IPC block
2. hold: a block is a state row of its own until the watermark passes its window: written once, never rewritten
3. gather: the blocks of a closed (window, bucket) meet in one task
4. open: Acero joins the two sides' rows

The answer is the same as that of Spark's own stream-stream join; what is saved is a state read and write for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.events import WINDOW_END, WINDOW_START
from streamgauge.flow.nodes import WindowJoin

TIME = "_time"
WINDOW = "_window"
BUCKET, PANE, SIDE, BLOCK, SERIAL = "_bucket", "_pane", "_side", "_block", "_serial"
PACKED = f"{BUCKET} int, {SIDE} int, {SERIAL} bigint, {TIME} timestamp, {BLOCK} binary"
ROWS_A_BLOCK = 2_000_000
"""A task packs after this many rows at the latest, so that its memory has a bound."""

Batches = Iterator[pa.RecordBatch]


def packed_join(left: DataFrame, right: DataFrame, node: WindowJoin, buckets: int) -> DataFrame:
    """Join two unmarked streaming frames, each with `_time`."""
    packed = _packed(left, 0, node, buckets).unionByName(_packed(right, 1, node, buckets))
    window = F.window(TIME, f"{node.window.range_us} microseconds", f"{node.window.slide_us} microseconds")
    held = (
        packed.withWatermark(TIME, "0 seconds")
        .groupBy(window.alias(WINDOW), BUCKET, SIDE, SERIAL)
        .agg(F.first(BLOCK).alias(BLOCK))
    )
    borders = held.select(
        F.unix_micros(f"{WINDOW}.start").alias(WINDOW_START), F.unix_micros(f"{WINDOW}.end").alias(WINDOW_END),
        BUCKET, SIDE, BLOCK,
    )  # fmt: skip
    gathered = borders.repartition(WINDOW_START, BUCKET)
    fields = _fields(left, right, node.keys)
    opened = gathered.mapInArrow(_opener(_arrow_schema(left), _arrow_schema(right), node.keys, fields), _ddl(fields))
    return opened.withColumns({name: F.timestamp_micros(name) for name in (WINDOW_START, WINDOW_END)})


def _packed(frame: DataFrame, side: int, node: WindowJoin, buckets: int) -> DataFrame:
    pane_us = int(np.gcd(node.window.range_us, node.window.slide_us))
    micros = F.unix_micros(TIME)
    keyed = frame.select(
        *[name for name in frame.columns if name != TIME],
        micros.alias(TIME),
        F.pmod(F.hash(*node.keys), F.lit(buckets)).alias(BUCKET),
        (micros - micros % F.lit(pane_us)).alias(PANE),
    )
    return keyed.mapInArrow(_packer(side, buckets, pane_us), PACKED)


def _packer(side: int, buckets: int, pane_us: int) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    def pack(batches: Iterable[pa.RecordBatch]) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        serial = (context.taskAttemptId() if context is not None else 0) << 20
        for table in _tables(batches):
            parts = list(_parts(table, buckets, pane_us))
            numbers = range(serial, serial + len(parts))
            serial += len(parts)
            yield _block_rows(side, parts, list(numbers))

    return pack


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    kept: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_A_BLOCK:
            yield pa.Table.from_batches(kept)
            kept, rows = [], 0
    if rows:
        yield pa.Table.from_batches(kept)


def _parts(table: pa.Table, buckets: int, pane_us: int) -> Iterator[tuple[int, int, bytes]]:
    """(bucket, largest time, block) of every (pane, bucket) that has rows."""
    times = table.column(TIME).to_numpy()
    panes = table.column(PANE).to_numpy()
    codes = (panes - panes.min()) // pane_us * buckets + table.column(BUCKET).to_numpy()
    order = np.argsort(codes.astype(np.int16 if codes.max() < 2**15 else np.int64), kind="stable")
    ends = np.cumsum(np.bincount(codes))
    # Taking column by column from one chunk is what makes this cheap: no per-part gather.
    rows = table.drop_columns([TIME, PANE, BUCKET]).combine_chunks().take(pa.array(order))
    starts = np.concatenate(([0], ends[:-1]))
    times = times[order]
    for code, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start < end:
            yield code % buckets, int(times[start:end].max()), _block(rows.slice(start, end - start))


def _block(rows: pa.Table) -> bytes:
    batch = rows.combine_chunks().to_batches()[0]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _block_rows(side: int, parts: list[tuple[int, int, bytes]], serials: list[int]) -> pa.RecordBatch:
    buckets, times, blocks = zip(*parts, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(buckets, pa.int32()),
            pa.array([side] * len(parts), pa.int32()),
            pa.array(serials, pa.int64()),
            pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array(blocks, pa.binary()),
        ],
        names=[BUCKET, SIDE, SERIAL, TIME, BLOCK],
    )


def _opener(
    left: pa.Schema, right: pa.Schema, keys: tuple[str, ...], fields: list[tuple[str, str]]
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    names = [name for name, _ in fields]

    def open_blocks(batches: Iterable[pa.RecordBatch]) -> Batches:
        sides: dict[tuple[int, int, int], tuple[list[Any], list[Any]]] = {}
        for batch in batches:
            columns = [batch.column(name) for name in (WINDOW_START, WINDOW_END, BUCKET, SIDE, BLOCK)]
            for start, end, bucket, side, block in zip(*columns, strict=True):
                both = sides.setdefault((start.as_py(), end.as_py(), bucket.as_py()), ([], []))
                both[side.as_py()].append(block.as_buffer())
        for (start, end, _), (ours, theirs) in sides.items():
            if ours and theirs:
                joined = _rows(ours, left).join(_rows(theirs, right), list(keys), join_type="inner", use_threads=False)
                yield from _with_window(joined, start, end, names)

    return open_blocks


def _rows(blocks: list[Any], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([pa.ipc.open_stream(block).read_all() for block in blocks]).cast(schema)


def _with_window(joined: pa.Table, start_us: int, end_us: int, names: list[str]) -> Batches:
    count = joined.num_rows
    for name, value in ((WINDOW_START, start_us), (WINDOW_END, end_us)):
        joined = joined.append_column(name, pa.array(np.full(count, value, np.int64)))
    yield from joined.select(names).combine_chunks().to_batches()


def _fields(left: DataFrame, right: DataFrame, keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """(name, Spark type) of the joined rows: keys, left's others, right's others, window borders in microseconds."""
    ours, theirs = dict(left.dtypes), dict(right.dtypes)
    columns = [(key, ours[key]) for key in keys]
    columns += [(name, kind) for side in (ours, theirs) for name, kind in side.items() if name not in (*keys, TIME)]
    return [*columns, (WINDOW_START, "bigint"), (WINDOW_END, "bigint")]


def _ddl(fields: list[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in fields)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.drop(TIME).schema, timezone="UTC")
