"""What every rule of the allowlist is made with: a rule takes a node and gives it on DuckDB, or raises `Refused`."""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp

TypeOf = Callable[[exp.Expression], str]
"""The Spark SQL type name of an expression that is on DuckDB already."""
Rule = Callable[[exp.Expression, TypeOf], exp.Expression]

INTEGERS = frozenset({"int", "bigint"})
NUMBERS = INTEGERS | {"double"}
STRING = frozenset({"string"})


class Refused(Exception):
    """An expression that may not be used: the rule it breaks, the way out, and where it stands (a node, if any)."""

    def __init__(self, rule: str, way_out: str, node: exp.Expression | None = None) -> None:
        super().__init__(rule)
        self.rule, self.way_out, self.node = rule, way_out, node


def duckdb(template: str, **parts: exp.Expression) -> exp.Expression:
    """A DuckDB node from a template whose `{name}` are replaced by the parts' DuckDB text."""
    return sqlglot.parse_one(template.format(**{k: v.sql("duckdb") for k, v in parts.items()}), dialect="duckdb")


def need(node: exp.Expression, type_of: TypeOf, types: frozenset[str], what: str, way_out: str) -> None:
    got = type_of(node)
    if got not in types:
        raise Refused(f"{what} takes {' or '.join(sorted(types))}, not {got}", way_out, node)


def plain_number(node: exp.Expression | None) -> int | None:
    """The value of a whole number that is written out; None for anything else."""
    whole = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    return int(node.this) if whole and node is not None else None


def plain_text(node: exp.Expression | None) -> str | None:
    """The value of a string that is written out; None for anything else."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def as_literal(text: str) -> exp.Expression:
    return exp.Literal.string(text)
