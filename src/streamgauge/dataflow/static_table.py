"""Static tables: small data that ships with a flow, for `Stream.lookup`. Read once, when the flow is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import TYPES, Field, Schema, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 1_000_000
"""A lookup table is held in memory by every engine, and sent along with the flow."""


@dataclass(frozen=True)
class Table:
    """Rows of a static table as one Arrow IPC stream: frozen and comparable, as every part of a flow is."""

    name: str
    schema: Schema
    ipc: bytes = field(repr=False)

    def to_arrow(self) -> pa.Table:
        import pyarrow as pa

        return pa.ipc.open_stream(self.ipc).read_all()


def table(name: str, rows: pa.Table | Mapping[str, Sequence[Any]] | str | Path, schema: Schema | None = None) -> Table:
    """A static table from Arrow data, columns by name, or a Parquet or CSV file (`.parquet`, `.csv`, `.csv.gz`).

    `schema` says which columns are kept and their types; without it, types are those of the data (a CSV's whole numbers
    are bigint). Raises InputError where the file cannot be read, or a column has no type of a flow.
    """
    found = _read(name, rows)
    kept = schema or _schema_of(name, found)
    if found.num_rows > ROWS_MAX:
        rule = f"must have at most {ROWS_MAX:,} rows"
        raise InputError(Problem(f"table {name!r}", rule, f"{found.num_rows:,}", "a stream of its own, and a join"))
    return Table(name, kept, _serialized(_cast(name, found, kept)))


def _read(name: str, rows: pa.Table | Mapping[str, Sequence[Any]] | str | Path) -> pa.Table:
    import pyarrow as pa

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
    raise InputError(Problem(f"table {name!r}", "must be a .parquet, .csv or .csv.gz file", path, "one of these"))


def _schema_of(name: str, rows: pa.Table) -> Schema:
    return Schema(tuple(Field(column.name, _spark_type(name, column)) for column in rows.schema))


def _spark_type(name: str, column: pa.Field) -> str:
    """The type of a flow that holds every value of an Arrow type."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return "int"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    for type_ in TYPES:
        if arrow_type(type_) == kind:
            return type_
    way_out = f"one of {', '.join(TYPES)}; or a schema that leaves it out"
    raise InputError(Problem(f"table {name!r}", f"column {column.name} has no type of a flow", str(kind), way_out))


def _cast(name: str, rows: pa.Table, schema: Schema) -> pa.Table:
    import pyarrow as pa

    missing = [column for column in schema.names if column not in rows.column_names]
    if missing:
        known = f"one of {', '.join(rows.column_names)}"
        raise InputError(Problem(f"table {name!r}", f"has no column {missing[0]}", missing[0], known))
    try:
        return rows.select(list(schema.names)).cast(schema.to_arrow())
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(Problem(f"table {name!r}", "does not fit its schema", reason, "wider types")) from None


def _serialized(rows: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())
