"""Static tables for `Stream.lookup`: small data, read when the flow is built and shipped with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.core.errors import InputError, Problem, require
from streamgauge.core.schema import TYPES, Field, Schema, arrow_type

ROWS_MAX = 1_000_000
"""Every engine holds a lookup table in memory."""


@dataclass(frozen=True)
class Table:
    """Rows of a static table as one Arrow IPC stream, so that it is hashable like every part of a flow."""

    name: str
    schema: Schema
    ipc: bytes = field(repr=False)

    def to_arrow(self) -> pa.Table:
        return pa.ipc.open_stream(self.ipc).read_all()


def table(name: str, rows: pa.Table | Mapping[str, Sequence[Any]] | str | Path, schema: Schema | None = None) -> Table:
    """A static table from Arrow data, columns by name, or a file (`.parquet`, `.csv`, `.csv.gz`).

    `schema` selects columns and their types. Without it all columns keep their types (whole numbers in CSV: bigint).
    Raises InputError if the file cannot be read or a column's type is not supported in flows.
    """
    arrow_table = _read(name, rows)
    columns = schema or Schema(tuple(Field(each.name, _sql_type(name, each)) for each in arrow_table.schema))
    setting, rule, got = f"table {name!r}", f"must have at most {ROWS_MAX:,} rows", f"{arrow_table.num_rows:,}"
    require(arrow_table.num_rows <= ROWS_MAX, setting, rule, got, "a stream of its own, and a join")
    return Table(name, columns, serialized(_cast(name, arrow_table, columns)))


def _read(name: str, rows: pa.Table | Mapping[str, Sequence[Any]] | str | Path) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Mapping):
        return pa.table(dict(rows))
    path = Path(rows)
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if path.suffixes[-2:] == [".csv", ".gz"] or path.suffix == ".csv":
            import pyarrow.csv

            return pyarrow.csv.read_csv(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(Problem(f"table {name!r}", "cannot be read", str(error).splitlines()[0], str(path))) from None
    raise InputError(
        Problem(f"table {name!r}", "must be a .parquet, .csv or .csv.gz file", path, "convert the file to Parquet")
    )


def _sql_type(name: str, column: pa.Field) -> str:
    """The flow type that represents every value of an Arrow type."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_timestamp(kind):
        return "timestamp"
    flow_types = {pa.large_string(): "string", pa.int8(): "int", pa.int16(): "int"} | {
        arrow_type(each): each for each in TYPES
    }
    if kind in flow_types:
        return flow_types[kind]
    way_out = f"one of {', '.join(TYPES)}; or a schema without this column"
    raise InputError(Problem(f"table {name!r}", f"column {column.name} has no type of a flow", str(kind), way_out))


def _cast(name: str, rows: pa.Table, schema: Schema) -> pa.Table:
    for column in schema.names:
        way_out = f"one of {', '.join(rows.column_names)}"
        require(column in rows.column_names, f"table {name!r}", f"has no column {column}", column, way_out)
    try:
        return rows.select(list(schema.names)).cast(schema.to_arrow())
    except pa.ArrowException as error:
        raise InputError(
            Problem(f"table {name!r}", "does not fit its schema", str(error).splitlines()[0], "use wider types")
        ) from None


def serialized(rows: pa.Table) -> bytes:
    """Rows as one Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())
