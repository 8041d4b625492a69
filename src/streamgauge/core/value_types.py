"""Types of result columns for comparison, common to DuckDB and engines, including nested types.

They ignore what does not matter to a comparison: widths of numbers, time zones, kinds of text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

INT, FLOAT, DECIMAL, TIMESTAMP, INTERVAL = "int", "float", "decimal", "timestamp", "interval"
STRING, BINARY, BOOLEAN, DATE, TIME = "string", "binary", "boolean", "date", "time"
STRUCT, LIST, MAP = "struct", "array", "map"

_PLAIN = frozenset({INT, FLOAT, DECIMAL, TIMESTAMP, INTERVAL, STRING, BINARY, BOOLEAN, DATE, TIME})
_ALIKE = ({TIMESTAMP, INT}, {INTERVAL, INT}, {DECIMAL, FLOAT})
"""Comparable pairs: engines may give times as microseconds; a decimal is compared with a float as a float."""
_OF_DUCKDB = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint", "hugeint"), INT),
    **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"), INT),
    **dict.fromkeys(("float", "double"), FLOAT),
    **dict.fromkeys(("time", "time_ns"), TIME),
    "varchar": STRING,
    "blob": BINARY,
}
"""DuckDB type names that differ from ours."""


@dataclass(frozen=True)
class ValueType:
    """A type and its parts: a struct's fields, an array's `element`, a map's `key` and `value`."""

    name: str
    parts: tuple[tuple[str, ValueType], ...] = ()

    def __str__(self) -> str:
        if not self.parts:
            return self.name
        each = (f"{name}: {part}" if self.name == STRUCT else str(part) for name, part in self.parts)
        return f"{self.name}<{', '.join(each)}>"

    def __getitem__(self, part: str) -> ValueType:
        return dict(self.parts)[part]

    def has(self, *names: str) -> bool:
        """Whether this type or a part of it has one of these names."""
        return self.name in names or any(part.has(*names) for _, part in self.parts)


def list_of(element: ValueType) -> ValueType:
    return ValueType(LIST, (("element", element),))


def map_of(key: ValueType, value: ValueType) -> ValueType:
    return ValueType(MAP, (("key", key), ("value", value)))


def from_duckdb(type_: Any) -> ValueType:
    """The value type of a `DuckDBPyType`."""
    if type_.id in ("list", "array"):
        return list_of(from_duckdb(type_.children[0][1]))
    if type_.id in (STRUCT, MAP):
        return ValueType(type_.id, tuple((name, from_duckdb(part)) for name, part in type_.children))
    if type_.id.startswith(TIMESTAMP):
        return ValueType(TIMESTAMP)
    return ValueType(_OF_DUCKDB.get(type_.id, type_.id))


def column_types(relation: Any) -> dict[str, ValueType]:
    """The columns of a DuckDB relation."""
    return dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))


def incomparable(type_: ValueType, name: str) -> Iterator[tuple[str, str]]:
    """(path, type) of each part of the column `name` whose values cannot be compared."""
    fields = [field.lower() for field, _ in type_.parts]
    if (type_.name not in _PLAIN and not fields) or len({*fields}) < len(fields):
        yield name, str(type_)
        return
    for field, part in type_.parts:
        yield from incomparable(part, f"{name}.{field}")


def differences(expected: ValueType, received: ValueType, name: str) -> Iterator[tuple[str, str, str]]:
    """(path, expected type, received type) of each part of the column `name` with incompatible types."""
    names = {expected.name, received.name}
    if (len(names) == 2 and names not in _ALIKE) or {*dict(expected.parts)} != {*dict(received.parts)}:
        yield name, str(expected), str(received)
        return
    for field, part in expected.parts:
        yield from differences(part, received[field], f"{name}.{field}")


def common(expected: ValueType, received: ValueType) -> ValueType:
    """The type as which both are compared, if there are no differences."""
    if received.name == FLOAT:
        return received
    return ValueType(expected.name, tuple((name, common(part, received[name])) for name, part in expected.parts))
