"""Rows of a keyed process that wait for the watermark. Does not load Spark.

If a batch reads each partition up to its own offset, a row of a later batch may be earlier than rows of this one. So a
bucket holds its rows until the watermark has passed them, and passes them on in order. A row that comes after that is
late, and is dropped as Spark drops rows.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import pyarrow as pa

from streamgauge.engines.spark.lowering.arrow_blocks import TIME

_HEADER = struct.Struct("<qI")


class HeldRows:
    """The held rows of one bucket, by input of its process. `schemas` are those of the inputs."""

    def __init__(self, schemas: Sequence[pa.Schema]) -> None:
        self._rows = [schema.empty_table() for schema in schemas]
        self._released_us: int | None = None
        self.late = 0
        """The rows of the last batch that were dropped because they came too late."""

    def __len__(self) -> int:
        return sum(len(rows) for rows in self._rows)

    def release(self, sides: Sequence[pa.Table], watermark_us: int) -> list[pa.Table]:
        """Holds the rows of a batch. Returns those before the watermark, by input, with rows held earlier."""
        released, self.late = [], 0
        for number, fresh in enumerate(sides):
            times = fresh.column(TIME).to_numpy()
            if self._released_us is not None and (in_time := times >= self._released_us).sum() < len(times):
                self.late += int(len(times) - in_time.sum())
                fresh = fresh.filter(pa.array(in_time))
            rows = pa.concat_tables([self._rows[number], fresh])
            due = rows.column(TIME).to_numpy() < watermark_us
            released.append(rows.filter(pa.array(due)))
            self._rows[number] = rows.filter(pa.array(~due))
        self._released_us = watermark_us if self._released_us is None else max(self._released_us, watermark_us)
        return released

    def to_bytes(self) -> bytes:
        """The held rows, and how far rows were released."""
        blocks = [_written(rows) for rows in self._rows]
        released_us = -(2**63) if self._released_us is None else self._released_us
        sizes = json.dumps([len(block) for block in blocks]).encode()
        return b"".join([_HEADER.pack(released_us, len(sizes)), sizes, *blocks])

    def restore(self, state: bytes) -> None:
        released_us, header = _HEADER.unpack_from(state)
        start = _HEADER.size + header
        sizes = json.loads(state[_HEADER.size : start])
        self._released_us = None if released_us == -(2**63) else released_us
        for number, size in enumerate(sizes):
            self._rows[number] = pa.ipc.open_stream(state[start : start + size]).read_all()
            start += size


def _written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())
