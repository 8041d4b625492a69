"""Schemas of streams and results, their types, quoting of names, lineage columns, and the format of event ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamgauge.core.units import PARTITION_BITS, SEQUENCE_BITS

if TYPE_CHECKING:
    import pyarrow as pa

    from streamgauge.core.arrays import Int64s

# The allowed field types. All types and expressions are of the dialect of Spark SQL.
TYPES = ("int", "bigint", "double", "boolean", "string", "binary", "timestamp")

ColumnTypes = tuple[tuple[str, str], ...]
"""(name, SQL type) of columns, in order."""
StreamColumns = Mapping[str, Sequence[str]]
"""Stream to the names of its columns."""


@dataclass(frozen=True)
class Field:
    """A column of a stream: name, Spark SQL type (one of `TYPES`), and whether it may hold nulls."""

    name: str
    type: str
    nullable: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns of a stream in order, without lineage columns."""

    fields: tuple[Field, ...]

    @classmethod
    def from_types(cls, **types: str) -> Schema:
        """`Schema.from_types(user_id="int", price="int")`."""
        return cls(tuple(Field(name, type_) for name, type_ in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def types(self) -> dict[str, str]:
        """Column name to SQL type name."""
        return {field.name: field.type for field in self.fields}

    def to_arrow(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([(field.name, arrow_type(field.type)) for field in self.fields])


def quote(name: str) -> str:
    """A quoted name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text as SQL, for DuckDB and Spark."""
    return "'" + text.replace("'", "''") + "'"


def quoted(names: Iterable[str]) -> str:
    """A quoted list of names for DuckDB."""
    return ", ".join(map(quote, names))


def equal_columns(names: Iterable[str], one: str, other: str) -> str:
    """SQL for whether rows of two relations are alike in these columns; nulls are alike."""
    return " AND ".join(f"{one}.{quote(name)} IS NOT DISTINCT FROM {other}.{quote(name)}" for name in names)


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a SQL type name, including `array<...>`."""
    import pyarrow as pa

    if name.startswith("array<"):
        return pa.list_(arrow_type(name[len("array<") : -1]))
    return {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", "UTC"),
    }[name]


EVENT_TIME = "event_time"
INGEST_TIME = "ingest_time"
EMISSION_TIME = "emission_time"
EVENT_ID = "event_id"
EVENT_ORDINAL = "event_ordinal"
"""The index of a row in the exploded array of its event, from 0."""
EVENT_BRANCH = "event_branch"
"""The input of a union from which a row came, from 0, if ids alone are ambiguous."""
WINDOW_START = "window_start"
WINDOW_END = "window_end"
LINEAGE_TIMES = (EVENT_TIME, INGEST_TIME)
LINEAGE = (*LINEAGE_TIMES, EVENT_ID)


def event_id_base(stream: int, partition: int) -> int:
    """The id of sequence number 0 of a partition; ids of one partition are consecutive.

    8 bits of stream, 12 of partition, 43 of sequence (8.8e12 events).
    """
    return (stream << (PARTITION_BITS + SEQUENCE_BITS)) | (partition << SEQUENCE_BITS)


def partitions_of(event_ids: Int64s) -> Int64s:
    """The partition of each event id, shape (events,)."""
    return (event_ids >> SEQUENCE_BITS) & (2**PARTITION_BITS - 1)


def sequences_of(event_ids: Int64s) -> Int64s:
    """The sequence number of each event id within its partition, shape (events,)."""
    return event_ids & (2**SEQUENCE_BITS - 1)
