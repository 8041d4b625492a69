"""Events in Avro's binary encoding without a container. Spark decodes it with `from_avro` and Avro's jar.

Columns are encoded and merged with NumPy, because Avro libraries encode one record at a time in Python.
https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.units import spark_text

Bytes = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int64]
Piece = tuple[Bytes, Lengths]
"""One field of all messages: concatenated bytes, and the length per message."""

_TYPES: dict[str, Any] = {
    "int": "int",
    "bigint": "long",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "bytes",
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}
_VARINT_MAX = 10
"""The longest encoding of a long in bytes."""


class Avro:
    """Implements `Encoding`: a record whose fields are unions of null and their type.

    Args:
        columns: (name, Spark SQL type) of each.
    """

    def __init__(self, columns: tuple[tuple[str, str], ...]) -> None:
        self._columns = columns

    @property
    def schema(self) -> str:
        """The Avro schema as JSON."""
        kinds = [["null", _TYPES[kind]] for _, kind in self._columns]
        fields = [{"name": name, "type": kind} for name, kind in zip(self._names, kinds, strict=True)]
        return json.dumps({"type": "record", "name": "event", "fields": fields})

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        parts = [piece for name, kind in self._columns for piece in pieces(batch.column(name), kind, 0)]
        return joined(parts, batch.num_rows)

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        values: list[bytes] = encoded.to_pylist()
        return values

    def opened(self, value: str) -> str:
        return f"from_avro({value}, {spark_text(self.schema)})"

    def expressions(self, opened: str) -> dict[str, str]:
        return {name: f"{opened}.{avro_name}" for (name, _), avro_name in zip(self._columns, self._names, strict=True)}

    @property
    def _names(self) -> list[str]:
        """Column names, or numbered names if one has characters that Avro does not allow."""
        names = [name for name, _ in self._columns]
        fit = all(name.isascii() and name.isidentifier() for name in names)
        return names if fit else [f"column_{number}" for number in range(len(names))]


def pieces(column: pa.Array, kind: str, null: int | None) -> Iterator[Piece]:
    """The branch of a union of two, then the value unless it is null. `null`: the branch of null; None: no union."""
    valid = np.asarray(column.is_valid())
    if null is not None:  # a branch is a zigzag number
        yield np.where(valid, 2 * (1 - null), 2 * null).astype(np.uint8), np.ones(len(column), np.int64)
    values = column.drop_null()
    for flat, lengths in _values(values, kind):
        spread = np.zeros(len(column), np.int64)
        spread[valid] = lengths
        yield flat, spread


def _values(values: pa.Array, kind: str) -> Iterator[Piece]:
    if kind in ("string", "binary"):
        texts = values.cast(pa.large_binary())
        lengths = np.asarray(pc.binary_length(texts)).astype(np.int64)
        yield _varints(lengths)
        yield np.frombuffer(b"".join(texts.to_pylist()), np.uint8), lengths
    elif kind in ("double", "float"):
        wide = 8 if kind == "double" else 4
        yield np.asarray(values).astype(f"<f{wide}").view(np.uint8), np.full(len(values), wide)
    elif kind == "boolean":
        yield np.asarray(values.cast(pa.uint8())), np.ones(len(values), np.int64)
    else:
        yield _varints(np.asarray(values.cast(pa.int64())))


def _varints(values: npt.NDArray[np.int64]) -> Piece:
    """Zigzag varints: seven bits per byte, lowest first; the highest bit marks continuation."""
    remaining = ((values << 1) ^ (values >> 63)).view(np.uint64)
    groups = np.empty((len(values), _VARINT_MAX), np.uint8)
    lengths = np.ones(len(values), np.int64)
    for index in range(_VARINT_MAX):
        groups[:, index] = remaining & 0x7F
        remaining = remaining >> np.uint64(7)
        lengths += remaining > 0
        groups[:, index] |= np.where(remaining > 0, 0x80, 0).astype(np.uint8)
    return groups[np.arange(_VARINT_MAX) < lengths[:, None]], lengths


def joined(parts: list[Piece], rows: int) -> pa.BinaryArray:
    """Concatenates the pieces of each row."""
    widths = np.sum([lengths for _, lengths in parts], axis=0, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(widths)])
    whole, starts = np.empty(offsets[-1], np.uint8), offsets[:-1].copy()
    for flat, lengths in parts:
        within = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        whole[np.repeat(starts, lengths) + within] = flat
        starts += lengths
    return pa.BinaryArray.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(whole)]
    )
