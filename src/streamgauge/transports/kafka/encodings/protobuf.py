"""Messages in Protocol Buffers, with or without Confluent's header, by a descriptor set that `protoc` wrote.

Fields of plain types and messages within are supported. A null is a field that is left out. A field without presence
(proto3 without `optional`) that is left out is read as its default, as every reader of it does.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from streamgauge.core.schema import ColumnTypes, Field
from streamgauge.transports.kafka.encodings.api import HEADER, UNFRAMED, Foreign, ProgramFormat, cast_to
from streamgauge.transports.kafka.encodings.avro import varints
from streamgauge.transports.topic_names import FRAMED, MessageFormat

HOW = "protoc --include_imports --descriptor_set_out=FILE.desc FILE.proto"
_TYPES = {"int32": "int", "int64": "bigint", "uint32": "int", "uint64": "bigint", "bool": "boolean"} | {
    "double": "double", "float": "float", "string": "string", "bytes": "binary",
}  # fmt: skip
_OF_CPP = {1: "int32", 2: "int64", 3: "uint32", 4: "uint64", 5: "double", 6: "float", 7: "bool"}
_STRING, _MESSAGE, _BYTES = 9, 10, 12


@cache
def message_class(schema: str, message: str) -> Any:
    """The class of a message. `schema`: a descriptor set in base64. Raises ValueError with what is wrong."""
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema, validate=True)).file
    except (DecodeError, binascii.Error):
        raise ValueError(f"it is no descriptor set; make one by {HOW}") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        for one in files:
            pool.Add(one)
        names = [f"{one.package}.{each.name}".lstrip(".") for one in files[-1:] for each in one.message_type]
        if not message and len(names) != 1:
            raise ValueError(f'its file has the messages {", ".join(names) or "none"}: name one, message = "..."')
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(message or names[0]))
    except (TypeError, KeyError):
        raise ValueError(f"it lacks {message or 'what it imports'}; make it by {HOW}") from None


def fields_of(schema: str, message: str) -> list[Field]:
    """Each plain field, by its dotted name. Those without presence cannot be null: readers take their default for it.

    Raises ValueError with what is not supported.
    """
    return list(_fields(message_class(schema, message).DESCRIPTOR, ""))


def _fields(descriptor: Any, prefix: str) -> Iterator[Field]:
    for field in descriptor.fields:
        name = prefix + field.name
        if field.is_repeated:
            raise ValueError(f"{name} is repeated, which is not supported")
        if field.cpp_type == _MESSAGE:
            yield from _fields(field.message_type, f"{name}.")
            continue
        texts = "bytes" if field.type == _BYTES else "string"
        if (plain := texts if field.cpp_type == _STRING else _OF_CPP.get(field.cpp_type)) is None:
            raise ValueError(f"{name} is an enum, which is not supported: use a string or a number")
        yield Field(name, _TYPES[plain], field.has_presence)


class Protobuf(ProgramFormat):
    """Implements `ProgramFormat` by a descriptor set of the user's."""

    def __init__(self, columns: ColumnTypes, declared: MessageFormat) -> None:
        super().__init__(columns)
        framed = declared.kind in FRAMED
        self.words = "the declared message of Protocol Buffers" + (" in Confluent's framing" if framed else "")
        self._class = message_class(declared.schema, declared.message)
        self._paths = {name: name.split(".") for name in self.names}
        self._types = {each.name: each.type for each in fields_of(declared.schema, declared.message)}
        self._header = HEADER.pack(0, declared.schema_id) + _place(self._class.DESCRIPTOR) if framed else b""

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        values = [_plain(batch.column(name), self._types[name] == "binary") for name in self.names]
        made = []
        for row in zip(*values, strict=True):
            whole: dict[str, Any] = {}
            for path, value in zip(self._paths.values(), row, strict=True):
                if value is not None:
                    inner = whole
                    for part in path[:-1]:
                        inner = inner.setdefault(part, {})
                    inner[path[-1]] = value
            made.append(self._header + self._class(**whole).SerializeToString())
        return pa.array(made, pa.binary())

    def parsed(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        rows = [self.fields(value) for value in values]  # bigints of Protocol Buffers may be too large for Arrow
        return cast_to(schema, {name: pa.array([row[name] for row in rows]) for name in schema.names})

    def fields(self, value: bytes) -> dict[str, Any]:
        message = self._class()
        try:
            message.ParseFromString(self._unframed(value))
        except DecodeError:
            raise Foreign("it is not the declared message of Protocol Buffers") from None
        return {name: _value(message, path) for name, path in self._paths.items()}

    def _unframed(self, value: bytes) -> bytes:
        if not self._header:
            return value
        if len(value) <= HEADER.size or value[0]:
            raise Foreign(UNFRAMED)
        count, at = _varint(value, HEADER.size)
        for _ in range(count // 2):  # zigzag
            _, at = _varint(value, at)
        return value[at:]


def _plain(column: pa.Array, as_bytes: bool) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif as_bytes and not pa.types.is_binary(column.type):
        column = column.cast(pa.string()).cast(pa.binary())
    return column.to_pylist()


def _value(message: Any, path: Sequence[str]) -> Any:
    for part in path[:-1]:
        if not message.HasField(part):
            return None
        message = getattr(message, part)
    field = message.DESCRIPTOR.fields_by_name[path[-1]]
    return getattr(message, path[-1]) if not field.has_presence or message.HasField(path[-1]) else None


def _place(descriptor: Any) -> bytes:
    """The place of a message in its file, as Confluent writes it: one zero byte for the first."""
    path: list[int] = []
    while descriptor is not None:
        outer = descriptor.containing_type
        beside = outer.nested_types if outer else descriptor.file.message_types_by_name.values()
        path.insert(0, [each.name for each in beside].index(descriptor.name))
        descriptor = outer
    return b"\0" if path == [0] else varints(np.array([len(path), *path]))[0].tobytes()


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """(the number at a place, the place behind it). Raises Foreign."""
    number = shift = 0
    for index in range(at, len(value)):
        number |= (value[index] & 0x7F) << shift
        shift += 7
        if value[index] < 0x80:
            return number, index + 1
    raise Foreign("it ends within the header of Confluent's framing")
