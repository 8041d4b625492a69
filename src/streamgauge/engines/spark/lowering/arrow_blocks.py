"""Packed blocks: rows of one (pane, bucket) as one Arrow IPC message, so that blocks move through shuffle and state.

Arrow and NumPy, no Spark, for both ends of the packed join and of a keyed process; used inside Spark's Python workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BUCKET, SIDE, SERIAL, TIME, BLOCK, ROWS = "_bucket", "_side", "_serial", "_time", "_block", "_rows"
"""`_rows`: a column of how many rows a process made; they may stand beside blocks or parts of these."""
PACKED = f"{BUCKET} int, {SIDE} int, {SERIAL} bigint, {TIME} timestamp, {BLOCK} binary"
ROWS_A_BLOCK = 131_072
"""A task packs after this many rows at the latest, so that its memory has a bound."""
ONE_PANE_US = 2**62
"""Blocks are cut by bucket alone."""

Ints = NDArray[np.int64]
Part = tuple[int, int, bytes]
"""(bucket, largest time in microseconds, block)."""

_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)


@dataclass(frozen=True)
class Packing:
    """How a side is packed as it is read: `columns` are (name in the block, name in the stream), keys stream names."""

    side: int
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    time: str
    buckets: int
    pane_us: int

    def bucket_of(self, table: pa.Table) -> Ints:
        """The bucket of every row, from whole-number keys; the same on both sides of a join."""
        return bucket_of([table.column(key) for key in self.keys], self.buckets, table.num_rows)

    def rows(self, batches: Iterable[pa.RecordBatch], serial: int) -> Iterator[pa.RecordBatch]:
        """Packed rows of what was read; serial numbers count up from `serial`."""
        for table in tables(batches):
            times = table.column(self.time).to_numpy()
            retained = table.select([theirs for _, theirs in self.columns]).rename_columns(
                [ours for ours, _ in self.columns]
            )
            parts = list(cut(retained, times, self.bucket_of(table), self.buckets, self.pane_us))
            yield packed_rows(self.side, parts, serial)
            serial += len(parts)


def bucket_of(keys: Sequence[pa.ChunkedArray], buckets: int, rows: int | None = None) -> Ints:
    """The bucket of every row by its keys, whole numbers or texts: the same in every process, shape (rows,).

    `rows` says how many there are where there may be no keys.
    """
    mixed = np.zeros(len(keys[0]) if rows is None else rows, np.uint64)
    for place, key in enumerate(keys):
        mixed ^= (_numbers(key) + np.uint64(place + 1)) * _MULTIPLIERS[place % len(_MULTIPLIERS)]
    return ((mixed >> np.uint64(33)) % np.uint64(buckets)).astype(np.int64)


def _numbers(key: pa.ChunkedArray) -> NDArray[np.uint64]:
    """A number for each key, equal ones for equal keys; a null is taken for 0 or nothing."""
    if not pa.types.is_string(key.type):
        # With nulls it would become floats, which do not tell large keys apart; a null matches nothing anyhow.
        return pc.fill_null(key, 0).to_numpy().astype(np.int64, copy=False).view(np.uint64)
    encoded = pc.fill_null(key, "").combine_chunks().dictionary_encode()
    hashed = pd.util.hash_array(encoded.dictionary.to_numpy(zero_copy_only=False), categorize=False)
    return np.asarray(hashed, np.uint64)[encoded.indices.to_numpy()]


def tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches gathered into tables of at most about `ROWS_A_BLOCK` rows; no empty ones."""
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


def cut(rows: pa.Table, times_us: Ints, bucket: Ints, buckets: int, pane_us: int) -> Iterator[Part]:
    """The rows by (pane, bucket), each part as a block; empty parts give none."""
    panes = times_us // pane_us
    codes = (panes - panes.min()) * buckets + bucket
    # A stable sort of 16-bit numbers is a radix sort, ten times faster than one of 64 bits.
    order = np.argsort(codes.astype(np.int16 if codes.max() < 2**15 else np.int64), kind="stable")
    ends = np.cumsum(np.bincount(codes))
    sorted_rows = rows.combine_chunks().take(pa.array(order))
    sorted_times = times_us[order]
    for code, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if start < end:
            yield code % buckets, int(sorted_times[start:end].max()), block(sorted_rows.slice(start, end - start))


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


def first_serial(task_attempt: int) -> int:
    """Serial numbers of different tasks never meet: each has room for a million blocks."""
    return task_attempt << 20


def block(rows: pa.Table) -> bytes:
    """Rows as one Arrow IPC stream."""
    batch = rows.combine_chunks().to_batches()[0]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
