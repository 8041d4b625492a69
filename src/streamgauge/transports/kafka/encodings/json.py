"""Messages that are JSON objects, written by DuckDB. Timestamps are microseconds since 1970, bytes are base64 text."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from streamgauge.core.schema import ColumnTypes, quote, text_literal
from streamgauge.core.units import backquote, sql_text
from streamgauge.transports.kafka.encodings.api import (
    EngineEncoding,
    Foreign,
    ProgramFormat,
    unmarked_text_of,
)

WORDS = {dict: "an object", list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
"""A JSON value in words, by its Python type."""
Value = TypeVar("Value")
_WIRED = {"timestamp": "bigint", "binary": "string"}
_WRITTEN = {"timestamp": "epoch_us({})", "binary": "to_base64({})"}
_READ = {"timestamp": "timestamp_micros({})", "binary": "unbase64({})"}
"""By the type of a column: that in messages, and SQL of a column for messages and of a field of them."""


class Json(EngineEncoding, ProgramFormat):
    """Implements `EngineEncoding` and, if `nested`, `ProgramFormat`.

    Args:
        columns: (name, SQL type) of each.
        nested: whether a dot in a name is a level of nesting.
    """

    words = "a JSON object"

    def __init__(self, columns: ColumnTypes, nested: bool = False) -> None:
        super().__init__(columns)
        self._nested = nested

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        whole = _object(
            (name.split(".") if self._nested else [name], _WRITTEN.get(kind, "{}").format(quote(name)))
            for name, kind in self.columns
        )
        with self._duckdb.cursor() as connection:  # of this thread alone: two plans may be encoded at once
            events = connection.from_arrow(pa.Table.from_batches([batch]))
            encoded = events.project(f"encode(cast({whole} AS varchar)) AS message").to_arrow_table()
        return encoded.column(0).combine_chunks()

    def opened(self, value: str) -> str:
        schema = ", ".join(f"{backquote(name)} {kind}" for name, kind in wire_types(self.columns).items())
        return f"from_json(cast({value} AS string), {sql_text(schema)})"

    def expressions(self, opened: str) -> dict[str, str]:
        return {name: _READ.get(kind, "{}").format(f"{opened}.{backquote(name)}") for name, kind in self.columns}

    def parsed(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        text = b"\n".join([*values, b""])
        # The reader of Arrow takes any bytes within texts, and two objects in one message for those of two.
        if not _are_objects(text, values):
            return None
        text.decode()
        table = read_lines(
            text, pa.schema(_struct([(field.name.split("."), field.type) for field in schema])), "ignore"
        )
        if table.num_rows != len(values):  # a message of several lines reads as several rows
            return None
        return pa.table({name: _column(table, name) for name in schema.names}, schema=schema)

    def fields(self, value: bytes) -> dict[str, Any]:
        try:
            row = json.loads(unmarked_text_of(value))
        except ValueError:
            raise Foreign("it is not JSON" if value else "it is empty") from None
        except RecursionError:
            raise Foreign("it is nested too deeply") from None
        if not isinstance(row, dict):
            raise Foreign(f"it is {WORDS.get(type(row), 'null')}, not an object")
        return dict(_found(row, self.names))

    @cached_property
    def _duckdb(self) -> Any:
        """Opened on first use, because engines decode without encoding."""
        import duckdb

        return duckdb.connect(config={"threads": 1})


def read_lines(text: bytes, fields: pa.Schema, others: str) -> pa.Table:
    """The objects of a text by Arrow. `others`: what becomes of other fields. Raises pa.ArrowInvalid."""
    return pa.json.read_json(
        pa.BufferReader(text),
        pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pa.json.ParseOptions(explicit_schema=fields, unexpected_field_behavior=others),
    )


def wire_types(columns: ColumnTypes) -> dict[str, str]:
    """Column to the SQL type that it has in a message."""
    return {name: _WIRED.get(kind, kind) for name, kind in columns}


def _by_first(fields: Iterable[tuple[list[str], Value]]) -> dict[str, list[tuple[list[str], Value]]]:
    """First name to the fields below it, each as (its further names by level, its value)."""
    below: dict[str, list[tuple[list[str], Value]]] = {}
    for (first, *more), value in fields:
        below.setdefault(first, []).append((more, value))
    return below


def _object(fields: Iterable[tuple[list[str], str]]) -> str:
    """DuckDB's SQL of an object: `fields` are (names by level, SQL of the value)."""
    values = {name: _object(each) if each[0][0] else each[0][1] for name, each in _by_first(fields).items()}
    parts = (f"{text_literal(name)}, {value}" for name, value in values.items())
    return f"json_object({', '.join(parts)})"


def _are_objects(lines: bytes, values: Sequence[bytes]) -> bool:
    """Whether each of the messages that these lines hold begins as an object does."""
    lengths = np.fromiter(map(len, values), np.int64, len(values)) + 1
    begins = np.frombuffer(lines, np.uint8)[np.cumsum(lengths) - lengths]
    return bool((begins == ord("{")).all())


def _struct(fields: Iterable[tuple[list[str], pa.DataType]]) -> Iterable[pa.Field]:
    """The fields with a struct for each level of nesting; `fields` are (names by level, type)."""
    for name, parts in _by_first(fields).items():
        more, kind = parts[0]
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
