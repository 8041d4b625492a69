"""Messages in Avro's binary encoding by a schema of the user's, with or without Confluent's header.

Fields are read and written for many messages at once with NumPy, because Avro libraries do one record at a time in
Python.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import ColumnTypes
from streamgauge.transports.kafka.codecs.avro import joined, pieces
from streamgauge.transports.kafka.formats.api import Foreign, ProgramFormat
from streamgauge.transports.kafka.formats.avro_schema import Leaf, leaves

Mask = npt.NDArray[np.bool_]

_HEADER = struct.Struct(">bI")
"""Confluent's: a zero byte and the id of the schema."""
_VARINT_MAX = 10
_PADDING = bytes(16)
"""Behind the last message, so that no read leaves the array."""


class Avro(ProgramFormat):
    """Implements `ProgramFormat`.

    Args:
        columns: the fields; results may have more, and events have all fields of the schema.
        schema: as JSON text.
        schema_id: that of Confluent's header; None for messages without one.
    """

    def __init__(self, columns: ColumnTypes, schema: str, schema_id: int | None = None) -> None:
        super().__init__(columns)
        self._leaves = leaves(schema)
        self.words = "Avro of the declared schema" + (" in Confluent's framing" if schema_id is not None else "")
        self._header = b"" if schema_id is None else _HEADER.pack(0, schema_id)

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        rows = batch.num_rows
        header = np.frombuffer(self._header * rows, np.uint8), np.full(rows, len(self._header), np.int64)
        parts = [piece for leaf in self._leaves for piece in pieces(_as(batch, leaf), _written(leaf.kind), leaf.null)]
        return joined([header, *parts], rows)

    def table(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        reader = self._reader(values)
        try:
            columns = {leaf.name: column for leaf in self._leaves if (column := reader.column(leaf)) is not None}
        except pa.ArrowInvalid:  # not UTF-8
            return None
        if not reader.all_right:
            return None
        try:
            return pa.table({field.name: pc.cast(columns[field.name], field.type) for field in schema}, schema=schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    def fields(self, value: bytes) -> dict[str, Any]:
        if self._header and (len(value) < len(self._header) or value[0]):
            raise Foreign("it has no header of Confluent's framing: a zero byte and the id of a schema")
        reader = self._reader([value])
        try:
            found = {leaf.name: reader.column(leaf).to_pylist()[0] for leaf in self._leaves}
        except pa.ArrowInvalid:
            raise Foreign("one of its texts is not UTF-8") from None
        if not reader.all_right:
            raise Foreign("it is not Avro of the declared schema")
        return {name: found[name] for name in self.names}

    def _reader(self, values: Sequence[bytes]) -> _Reader:
        return _Reader(values, len(self._header))


def _as(batch: pa.RecordBatch, leaf: Leaf) -> pa.Array:
    column = batch.column(leaf.name)
    if leaf.kind in ("string", "bytes") and not pa.types.is_binary(column.type):
        return pc.cast(column, pa.string())
    return pc.cast(column, pa.int64()) if pa.types.is_timestamp(column.type) else column


def _written(kind: str) -> str:
    """Avro's type as `pieces` names it."""
    return {"bytes": "binary", "long": "bigint"}.get(kind, kind)


class _Reader:
    """Reads one field after the other of n messages at once. A message that ends too early is not right."""

    def __init__(self, values: Sequence[bytes], skipped: int) -> None:
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        self._data = np.frombuffer(b"".join(values) + _PADDING, np.uint8)
        self._ends = np.cumsum(lengths)
        starts = self._ends - lengths
        self._at = np.minimum(starts + skipped, self._ends)
        self._right: Mask = lengths >= skipped
        if skipped:
            self._right &= self._data[starts] == 0

    @property
    def all_right(self) -> bool:
        """Whether every message had all fields, and nothing behind them."""
        return bool((self._right & (self._at == self._ends)).all())

    def column(self, leaf: Leaf) -> pa.Array:
        """The next field, shape (n,). Raises ArrowInvalid for a text that is not UTF-8."""
        present: Mask = np.ones(len(self._ends), bool)
        if leaf.null is not None:
            branch = self._varint(present)
            self._right &= (branch == 0) | (branch == 1)
            present = branch != leaf.null
        missing = ~present
        if leaf.kind in ("string", "bytes"):
            texts = self._texts(present)
            texts = texts if leaf.kind == "bytes" else texts.cast(pa.string())
            return pc.if_else(pa.array(present), texts, pa.scalar(None, texts.type))
        if leaf.kind in ("int", "long"):
            return pa.array(self._varint(present), mask=missing)
        if leaf.kind == "boolean":
            return pa.array(self._fixed(1, present)[:, 0] != 0, mask=missing)
        wide = 8 if leaf.kind == "double" else 4
        numbers = np.ascontiguousarray(self._fixed(wide, present)).view(f"<f{wide}")[:, 0]
        return pa.array(numbers.astype(np.float64), mask=missing)

    def _advance(self, lengths: Int64s) -> None:
        reached = self._at + lengths
        self._right &= reached <= self._ends
        self._at = np.minimum(reached, self._ends)

    def _varint(self, where: Mask) -> Int64s:
        """Zigzag varints: seven bits per byte, lowest first; the highest bit marks continuation."""
        whole, lengths = np.zeros(len(where), np.uint64), np.zeros(len(where), np.int64)
        going = where & self._right
        for index in range(_VARINT_MAX):
            byte = self._data[self._at + index]
            part = (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
            whole |= np.where(going, part, np.uint64(0))
            lengths += going
            going = going & (byte >= 0x80)
            if not going.any():
                break
        self._right &= ~going
        self._advance(lengths)
        return (whole >> np.uint64(1)).view(np.int64) ^ -(whole & np.uint64(1)).view(np.int64)

    def _fixed(self, wide: int, where: Mask) -> npt.NDArray[np.uint8]:
        """Bytes of a fixed width, shape (n, wide)."""
        found = self._data[self._at[:, None] + np.arange(wide)]
        self._advance(np.where(where, wide, 0))
        return found

    def _texts(self, where: Mask) -> pa.Array:
        lengths = self._varint(where)
        self._right &= (lengths >= 0) & (self._at + lengths <= self._ends)
        lengths = np.where(where & self._right, lengths, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self._at - offsets[:-1], lengths) + np.arange(offsets[-1])
        texts = pa.py_buffer(self._data[places].tobytes())
        self._advance(lengths)
        return pa.Array.from_buffers(pa.binary(), len(where), [None, pa.py_buffer(offsets.astype(np.int32)), texts])
