"""Building blocks of the allowlist's rules. A rule returns a node's DuckDB form, or raises `Refused`."""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp

from streamgauge.dataflow.expressions.refused import Refused

TypeOf = Callable[[exp.Expression], str]
"""The Spark SQL type name of an expression that is already in DuckDB form."""
Rule = Callable[[exp.Expression, TypeOf], exp.Expression]

INTEGERS = frozenset({"int", "bigint"})
NUMBERS = INTEGERS | {"double"}
STRING = frozenset({"string"})


def duckdb(template: str, **parts: exp.Expression) -> exp.Expression:
    """A DuckDB node from a template; each `{name}` is replaced by the DuckDB text of that part."""
    return sqlglot.parse_one(template.format(**{k: v.sql("duckdb") for k, v in parts.items()}), dialect="duckdb")


def need(node: exp.Expression, type_of: TypeOf, types: frozenset[str], operation: str, way_out: str) -> None:
    type_ = type_of(node)
    if type_ not in types:
        raise Refused(f"{operation} takes {' or '.join(sorted(types))}, not {type_}", way_out, node)


def plain_number(node: exp.Expression | None) -> int | None:
    """The value of an integer literal, else None."""
    whole = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    return int(node.this) if whole and node is not None else None


def plain_text(node: exp.Expression | None) -> str | None:
    """The value of a string literal, else None."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def as_literal(text: str) -> exp.Expression:
    return exp.Literal.string(text)
