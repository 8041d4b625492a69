"""Messages that are JSON objects. A dot in a field's name is a level of nesting."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from streamgauge.transports.kafka.codecs.json import JsonObjects
from streamgauge.transports.kafka.formats.api import Foreign, ProgramFormat, is_text, unmarked_text_of

WORDS = {dict: "an object", list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
"""A JSON value in words, by its Python type."""


class NestedJson(ProgramFormat):
    """Implements `ProgramFormat`."""

    words = "a JSON object"

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        return self._objects.encode(batch)

    @cached_property
    def _objects(self) -> JsonObjects:
        return JsonObjects(self.columns, nested=True)

    def table(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        text = b"\n".join([*values, b""])
        # The reader of Arrow takes any bytes within texts, and two objects in one message for those of two.
        if not (_are_objects(text, values) and is_text(text)):
            return None
        try:
            table = pa.json.read_json(
                io.BytesIO(text),
                pa.json.ReadOptions(use_threads=False, block_size=max(len(text) + 1, 1)),
                pa.json.ParseOptions(explicit_schema=_nested(schema), unexpected_field_behavior="ignore"),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(values):  # a message of several lines reads as several rows
            return None
        return pa.table({name: _column(table, name) for name in schema.names}, schema=schema)

    def fields(self, value: bytes) -> dict[str, Any]:
        text = unmarked_text_of(value)
        try:
            row = json.loads(text)
        except ValueError:
            raise Foreign("it is not JSON" if value else "it is empty") from None
        except RecursionError:
            raise Foreign("it is nested too deeply") from None
        if not isinstance(row, dict):
            raise Foreign(f"it is {WORDS.get(type(row), 'null')}, not an object")
        return dict(_found(row, self.names))


def _are_objects(lines: bytes, values: Sequence[bytes]) -> bool:
    """Whether each of the messages that these lines hold begins as an object does."""
    lengths = np.fromiter(map(len, values), np.int64, len(values)) + 1
    begins = np.frombuffer(lines, np.uint8)[np.cumsum(lengths) - lengths]
    return bool((begins == ord("{")).all())


def _nested(schema: pa.Schema) -> pa.Schema:
    """The schema with a struct for each level of nesting."""
    return pa.schema(list(_struct([(field.name.split("."), field.type) for field in schema])))


def _struct(fields: Sequence[tuple[list[str], pa.DataType]]) -> Iterable[pa.Field]:
    below: dict[str, list[tuple[list[str], pa.DataType]]] = {}
    for (first, *more), kind in fields:
        below.setdefault(first, []).append((more, kind))
    for name, parts in below.items():
        (more, kind) = parts[0]
        yield pa.field(name, pa.struct(list(_struct(parts))) if more else kind)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    first, *more = name.split(".")
    return pc.struct_field(table.column(first), more) if more else table.column(first)


def _found(row: dict[str, Any], names: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """(name, value) of the fields that an object has; an object that is null has none."""
    for name in names:
        value: Any = row
        parts = name.split(".")
        for depth, part in enumerate(parts):
            if value is None:
                break
            if not isinstance(value, dict):
                raise Foreign(f"its {'.'.join(parts[:depth])} is {WORDS[type(value)]}, not an object")
            if part not in value:
                break
            value = value[part]
        else:
            yield name, value
