"""Events as JSON objects. Timestamps are microseconds since 1970, bytes are base64 text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import pyarrow as pa

from streamgauge.core.schema import quote
from streamgauge.core.units import backquote, spark_text

_WIRED = {"timestamp": "bigint", "binary": "string"}


class JsonObjects:
    """Implements `Encoding`; DuckDB writes the objects.

    Args:
        columns: (name, Spark SQL type) of each.
        nested: whether a dot in a name is a level of nesting.
    """

    def __init__(self, columns: tuple[tuple[str, str], ...], nested: bool = False) -> None:
        self._columns, self._nested = columns, nested

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        names = [name.split(".") if self._nested else [name] for name, _ in self._columns]
        written = [_written(quote(name), kind) for name, kind in self._columns]
        events = self._duckdb.from_arrow(pa.Table.from_batches([batch]))
        whole = _object(zip(names, written, strict=True))
        encoded = events.project(f"encode(cast({whole} AS varchar)) AS message").to_arrow_table()
        return encoded.column(0).combine_chunks()

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        values: list[bytes] = encoded.to_pylist()
        return values

    def opened(self, value: str) -> str:
        schema = ", ".join(f"{backquote(name)} {_WIRED.get(kind, kind)}" for name, kind in self._columns)
        return f"from_json(cast({value} AS string), {spark_text(schema)})"

    def expressions(self, opened: str) -> dict[str, str]:
        return {name: _read(f"{opened}.{backquote(name)}", kind) for name, kind in self._columns}

    @cached_property
    def _duckdb(self) -> Any:
        """Opened on first use, because engines use the encoding without encoding."""
        import duckdb

        return duckdb.connect(config={"threads": 1})


def _written(column: str, kind: str) -> str:
    return {"timestamp": f"epoch_us({column})", "binary": f"to_base64({column})"}.get(kind, column)


def _read(field: str, kind: str) -> str:
    return {"timestamp": f"timestamp_micros({field})", "binary": f"unbase64({field})"}.get(kind, field)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _object(fields: Iterable[tuple[list[str], str]]) -> str:
    """DuckDB's SQL of an object: `fields` are (names by level, SQL of the value)."""
    below: dict[str, list[tuple[list[str], str]]] = {}
    for (first, *more), value in fields:
        below.setdefault(first, []).append((more, value))
    parts = (f"{_text(name)}, {_object(each) if each[0][0] else each[0][1]}" for name, each in below.items())
    return f"json_object({', '.join(parts)})"
