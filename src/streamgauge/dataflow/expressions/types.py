"""Type names, the type of an expression over typed columns by DuckDB's binder, and the exception of every rule.

None of it loads sqlglot.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from streamgauge.core.schema import quote

if TYPE_CHECKING:
    from sqlglot import exp

_PLAIN_TYPES = {
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "binary": "BLOB",
    "timestamp": "TIMESTAMP",
}
DUCKDB_TYPES = _PLAIN_TYPES | {f"array<{spark}>": f"{duckdb}[]" for spark, duckdb in _PLAIN_TYPES.items()}
"""Spark SQL type name to DuckDB type name. Timestamps are UTC on both. Arrays hold plain types."""
_SPARK_TYPES = {duckdb: spark for spark, duckdb in DUCKDB_TYPES.items()}

Types = tuple[tuple[str, str], ...]
"""(column name, Spark type name) pairs."""
_local = threading.local()


def element_type(type_: str) -> str | None:
    """`string` for `array<string>`; None if the type is not an array."""
    return type_[len("array<") : -1] if type_.startswith("array<") else None


def available_columns(types: Types) -> str:
    return "the available columns: " + ", ".join(f"{name} ({type_})" for name, type_ in types)


class Refused(Exception):
    """An expression that is not allowed: the rule it breaks, the way out, and the node, if known."""

    def __init__(self, rule: str, way_out: str, node: exp.Expression | None = None) -> None:
        super().__init__(rule)
        self.rule, self.way_out, self.node = rule, way_out, node


def allow(holds: object, rule: str, way_out: str, node: exp.Expression | None = None) -> None:
    """Raises Refused unless `holds` is true."""
    if not holds:
        raise Refused(rule, way_out, node)


@lru_cache(maxsize=8192)
def bound_type(sql: str, types: Types) -> str:
    """The Spark type of DuckDB text over typed columns, by DuckDB's binder on an empty relation."""
    import duckdb

    relation = ", ".join(f"NULL::{DUCKDB_TYPES[type_]} AS {quote(name)}" for name, type_ in types) or "1 AS nothing"
    try:
        described = _connection().execute(f"DESCRIBE SELECT {sql} AS x FROM (SELECT {relation}) LIMIT 0").fetchall()
    except duckdb.Error as error:
        raise Refused(f"cannot be typed: {str(error).splitlines()[0]}", available_columns(types)) from None
    duckdb_type = str(described[0][1])
    way_out = f"an expression that gives {', '.join(DUCKDB_TYPES)}"
    allow(duckdb_type in _SPARK_TYPES, f"gives {duckdb_type}, which is not a type of a flow", way_out)
    return _SPARK_TYPES[duckdb_type]


def unsupported_type(query: str) -> str:
    """The reason why DuckDB's binder refuses a query, in one line; empty if it accepts it."""
    import duckdb

    try:
        _connection().execute(f"DESCRIBE {query}")
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return ""


def _connection() -> Any:
    """One connection per thread, because DuckDB connections must not be shared."""
    import duckdb

    if not hasattr(_local, "connection"):
        _local.connection = duckdb.connect(":memory:", config={"threads": 1})
    return _local.connection
