"""Packed blocks: the rows of one (pane, bucket) as one Arrow IPC message, which passes through shuffle and state.

Used in Spark's Python workers by the packed join and by keyed processes. Does not load Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Int64s
from streamgauge.dataflow.static_table import serialized

BUCKET, SIDE, SERIAL, TIME, BLOCK, ROWS = "_bucket", "_side", "_serial", "_time", "_block", "_rows"
"""`_rows`: the number of rows that a process gave."""
PACKED = f"{BUCKET} int, {SIDE} int, {SERIAL} bigint, {TIME} timestamp, {BLOCK} binary"
ROWS_A_BLOCK = 131_072
"""A task packs after this many rows at the latest, to bound its memory."""
ONE_PANE_US = 2**62
"""A pane width for splitting by bucket only."""

Batches = Iterator[pa.RecordBatch]
Part = tuple[int, int, bytes]
"""(bucket, largest time in microseconds, block)."""

_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)


@dataclass(frozen=True)
class Packing:
    """How the reader packs a side. `columns`: (name in the block, name in the stream). `keys`: names in the stream."""

    side: int
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    time: str
    buckets: int
    pane_us: int

    @classmethod
    def from_json(cls, text: str) -> Packing:
        """From a JSON object of the fields."""
        read = json.loads(text)
        return cls(**{**read, "columns": tuple(map(tuple, read["columns"])), "keys": tuple(read["keys"])})

    def rows(self, batches: Iterable[pa.RecordBatch], serial: int) -> Iterator[pa.RecordBatch]:
        """Packed rows of the batches; serial numbers start at `serial`."""
        for table in tables(batches):
            times = table.column(self.time).to_numpy()
            retained = table.select([stream_name for _, stream_name in self.columns]).rename_columns(
                [block_name for block_name, _ in self.columns]
            )
            bucket = bucket_of([table.column(key) for key in self.keys], self.buckets, table.num_rows)
            parts = list(cut(retained, times, bucket, self.buckets, self.pane_us))
            yield packed_rows(self.side, parts, serial)
            serial += len(parts)


def bucket_of(keys: Sequence[pa.ChunkedArray], buckets: int, rows: int) -> Int64s:
    """The bucket of each row by its keys, which are integers, shape (rows,). It is the same in every process."""
    mixed = np.zeros(rows, np.uint64)
    for index, key in enumerate(keys):
        # With nulls NumPy would use floats, which merge large keys; null keys match nothing anyway.
        numbers = pc.fill_null(key, 0).to_numpy().astype(np.int64, copy=False).view(np.uint64)
        mixed ^= (numbers + np.uint64(index + 1)) * _MULTIPLIERS[index % len(_MULTIPLIERS)]
    return ((mixed >> np.uint64(33)) % np.uint64(buckets)).astype(np.int64)


def tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches combined into non-empty tables of about `ROWS_A_BLOCK` rows."""
    retained: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        retained.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_A_BLOCK:
            yield pa.Table.from_batches(retained)
            retained, rows = [], 0
    if rows:
        yield pa.Table.from_batches(retained)


def cut(rows: pa.Table, times_us: Int64s, bucket: Int64s, buckets: int, pane_us: int) -> Iterator[Part]:
    """The rows split by (pane, bucket), each non-empty part as a block."""
    panes = times_us // pane_us
    codes = (panes - panes.min()) * buckets + bucket
    # NumPy's stable sort of 16-bit integers is a radix sort, ten times faster than for 64 bits.
    order = np.argsort(codes.astype(np.int16 if codes.max() < 2**15 else np.int64), kind="stable")
    ends = np.cumsum(np.bincount(codes))
    sorted_rows = rows.combine_chunks().take(pa.array(order))
    sorted_times = times_us[order]
    for code, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if start < end:
            yield code % buckets, int(sorted_times[start:end].max()), serialized(sorted_rows.slice(start, end - start))


def packer(
    side: int, buckets: int, pane_us: int, drop: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that packs rows by `_bucket` and `_time`; blocks lack the columns `drop`."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        serial = first_serial()
        for table in tables(batches):
            times, bucket = table.column(TIME).to_numpy(), table.column(BUCKET).to_numpy()
            parts = list(cut(table.drop_columns(drop), times, bucket, buckets, pane_us))
            yield packed_rows(side, parts, serial)
            serial += len(parts)

    return pack


def packed_rows(side: int, parts: Sequence[Part], serial: int) -> pa.RecordBatch:
    """Parts as rows of the schema `PACKED`."""
    buckets, times, blocks = zip(*parts, strict=True)
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array([side] * len(parts), pa.int32()),
        pa.array(range(serial, serial + len(parts)), pa.int64()),
        pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
        pa.array(blocks, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[BUCKET, SIDE, SERIAL, TIME, BLOCK])


def opened(blocks: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """The rows of blocks (buffers), cast to `schema`."""
    return pa.concat_tables([pa.ipc.open_stream(block).read_all() for block in blocks]).cast(schema)


def first_serial() -> int:
    """The first serial number of this task's attempt, in one of Spark's workers; 0 outside.

    Serial numbers are unique for up to a million blocks per task.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.taskAttemptId() << 20 if context is not None else 0
