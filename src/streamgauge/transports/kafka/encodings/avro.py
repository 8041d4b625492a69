"""Messages in Avro's binary encoding without a container, with or without Confluent's header.

The schema is the user's, or made from the columns: a record whose fields are unions of null and their type, which
`from_avro` decodes. Of a user's schema, records of plain values and records within them are
supported. Fields are written and read for many messages at once with NumPy, because Avro libraries do one record at a
time in Python.
https://avro.apache.org/docs/1.12.0/specification/
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Bools, Int64s
from streamgauge.core.schema import ColumnTypes, Field
from streamgauge.core.units import sql_text
from streamgauge.transports.kafka.encodings.api import (
    HEADER,
    UNFRAMED,
    EngineEncoding,
    Foreign,
    ProgramFormat,
    cast_to,
)

Bytes = npt.NDArray[np.uint8]
Piece = tuple[Bytes, Int64s]
"""One field of all messages: concatenated bytes, and the length per message."""

KINDS = {
    "int": "bigint", "long": "bigint", "float": "float", "double": "double", "boolean": "boolean",
    "string": "string", "bytes": "binary",
}  # fmt: skip
"""Avro's plain types, and the SQL type of their values."""
_TYPES: dict[str, Any] = {
    "int": "int",
    "bigint": "long",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "bytes",
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}
"""SQL type to Avro's, in schemas made from columns."""
_VARINT_MAX = 10
"""The longest encoding of a long in bytes."""
_PADDING = bytes(16)
"""Behind the last message, so that no read leaves the array."""


@dataclass(frozen=True, kw_only=True)
class Leaf(Field):
    """A plain value by its dotted name. `kind`: Avro's type. `null`: which branch of its union is null (None: none)."""

    kind: str
    null: int | None = None


def leaves(schema: str) -> tuple[Leaf, ...]:
    """The plain values of a record, in their order. Raises ValueError with what is not supported."""
    try:
        record = json.loads(schema)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(record, dict) or record.get("type") != "record":
        raise ValueError("it is not a record")
    return tuple(_leaves(record, ""))


def _leaves(record: dict[str, Any], prefix: str) -> Iterator[Leaf]:
    for field in record.get("fields", ()):
        name, kind, null = prefix + field["name"], field["type"], None
        if isinstance(kind, list):
            if len(kind) != 2 or "null" not in kind:
                raise ValueError(f"{name} is a union of other than null and one type")
            null = kind.index("null")
            kind = kind[1 - null]
        if isinstance(kind, dict) and kind.get("type") == "record" and null is None:
            yield from _leaves(kind, f"{name}.")
            continue
        plain = kind.get("type") if isinstance(kind, dict) else kind
        if not isinstance(plain, str) or plain not in KINDS:
            raise ValueError(f"{name} is {json.dumps(kind)}, not one of {', '.join(KINDS)}, a record, or null with one")
        yield Leaf(name, KINDS[plain], null is not None, kind=plain, null=null)


class Avro(EngineEncoding, ProgramFormat):
    """Implements `EngineEncoding` by a schema made from the columns, and `ProgramFormat` by a schema of the user's.

    Args:
        columns: the fields; results may have more, and events have all fields of the schema.
        schema: as JSON text; None for one that is made from the columns.
        schema_id: that of Confluent's header; None for messages without one.
    """

    def __init__(self, columns: ColumnTypes, schema: str | None = None, schema_id: int | None = None) -> None:
        super().__init__(columns)
        self._leaves = leaves(self.schema if schema is None else schema)
        if schema is None:  # by the names of the columns
            self._leaves = tuple(replace(leaf, name=name) for leaf, name in zip(self._leaves, self.names, strict=True))
        self.words = "Avro of the declared schema" + (" in Confluent's framing" if schema_id is not None else "")
        self._header = b"" if schema_id is None else HEADER.pack(0, schema_id)

    @property
    def schema(self) -> str:
        """The schema that is made from the columns, as JSON."""
        named = zip(self._avro_names, self.columns, strict=True)
        fields = [{"name": name, "type": ["null", _TYPES[kind]]} for name, (_, kind) in named]
        return json.dumps({"type": "record", "name": "event", "fields": fields})

    @property
    def _avro_names(self) -> list[str]:
        """Column names, or numbered names if one has characters that Avro does not allow."""
        fit = all(name.isascii() and name.isidentifier() for name in self.names)
        return self.names if fit else [f"column_{number}" for number in range(len(self.names))]

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        rows = batch.num_rows
        parts = [piece for leaf in self._leaves for piece in _pieces(_as(batch, leaf), leaf)]
        if self._header:
            parts.insert(0, (np.frombuffer(self._header * rows, np.uint8), np.full(rows, len(self._header), np.int64)))
        return _joined(parts, rows)

    def opened(self, value: str) -> str:
        return f"from_avro({value}, {sql_text(self.schema)})"

    def expressions(self, opened: str) -> dict[str, str]:
        return {name: f"{opened}.{avro_name}" for name, avro_name in zip(self.names, self._avro_names, strict=True)}

    def parsed(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        reader = _Reader(values, len(self._header))
        columns = {leaf.name: reader.column(leaf) for leaf in self._leaves}
        return cast_to(schema, columns) if reader.all_right else None

    def fields(self, value: bytes) -> dict[str, Any]:
        if self._header and (len(value) < len(self._header) or value[0]):
            raise Foreign(UNFRAMED)
        reader = _Reader([value], len(self._header))
        try:
            found = {leaf.name: reader.column(leaf).to_pylist()[0] for leaf in self._leaves}
        except pa.ArrowInvalid:
            raise Foreign("one of its texts is not UTF-8") from None
        if not reader.all_right:
            raise Foreign("it is not Avro of the declared schema")
        return {name: found[name] for name in self.names}


def _as(batch: pa.RecordBatch, leaf: Leaf) -> pa.Array:
    column = batch.column(leaf.name)
    if leaf.kind in ("string", "bytes") and not pa.types.is_binary(column.type):
        return pc.cast(column, pa.string())
    return pc.cast(column, pa.int64()) if pa.types.is_timestamp(column.type) else column


def _pieces(column: pa.Array, leaf: Leaf) -> Iterator[Piece]:
    """The branch of a union of two, then the value unless it is null."""
    valid = np.asarray(column.is_valid())
    if leaf.null is not None:  # a branch is a zigzag number
        yield np.where(valid, 2 * (1 - leaf.null), 2 * leaf.null).astype(np.uint8), np.ones(len(column), np.int64)
    for flat, lengths in _values(column.drop_null(), leaf.kind):
        spread = np.zeros(len(column), np.int64)
        spread[valid] = lengths
        yield flat, spread


def _values(values: pa.Array, kind: str) -> Iterator[Piece]:
    if kind in ("string", "bytes"):
        texts = values.cast(pa.large_binary())
        lengths = np.asarray(pc.binary_length(texts)).astype(np.int64)
        yield varints(lengths)
        yield np.frombuffer(b"".join(texts.to_pylist()), np.uint8), lengths
    elif kind in ("double", "float"):
        wide = 8 if kind == "double" else 4
        yield np.asarray(values).astype(f"<f{wide}").view(np.uint8), np.full(len(values), wide)
    elif kind == "boolean":
        yield np.asarray(values.cast(pa.uint8())), np.ones(len(values), np.int64)
    else:
        yield varints(np.asarray(values.cast(pa.int64())))


def varints(values: Int64s) -> Piece:
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


def _joined(parts: list[Piece], rows: int) -> pa.BinaryArray:
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


class _Reader:
    """Reads one field after the other of n messages at once. A message that ends too early is not right."""

    def __init__(self, values: Sequence[bytes], skipped: int) -> None:
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        self._data = np.frombuffer(b"".join(values) + _PADDING, np.uint8)
        self._ends = np.cumsum(lengths)
        starts = self._ends - lengths
        self._at = np.minimum(starts + skipped, self._ends)
        self._right: Bools = lengths >= skipped
        if skipped:
            self._right &= self._data[starts] == 0

    @property
    def all_right(self) -> bool:
        """Whether every message had all fields, and nothing behind them."""
        return bool((self._right & (self._at == self._ends)).all())

    def column(self, leaf: Leaf) -> pa.Array:
        """The next field, shape (n,). Raises ArrowInvalid for a text that is not UTF-8."""
        present: Bools = np.ones(len(self._ends), bool)
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

    def _varint(self, where: Bools) -> Int64s:
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

    def _fixed(self, wide: int, where: Bools) -> npt.NDArray[np.uint8]:
        """Bytes of a fixed width, shape (n, wide)."""
        found = self._data[self._at[:, None] + np.arange(wide)]
        self._advance(np.where(where, wide, 0))
        return found

    def _texts(self, where: Bools) -> pa.Array:
        lengths = self._varint(where)
        self._right &= (lengths >= 0) & (self._at + lengths <= self._ends)
        lengths = np.where(where & self._right, lengths, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self._at - offsets[:-1], lengths) + np.arange(offsets[-1])
        texts = pa.py_buffer(self._data[places].tobytes())
        self._advance(lengths)
        return pa.Array.from_buffers(pa.binary(), len(where), [None, pa.py_buffer(offsets.astype(np.int32)), texts])
