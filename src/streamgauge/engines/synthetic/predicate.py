"""Evaluates a condition on Arrow: comparisons of columns and numbers with and, or, not.

It is independent of DuckDB, because otherwise the oracle would be compared with itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from streamgauge.core.errors import InputError, Problem

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.And: pc.and_kleene,
    exp.Or: pc.or_kleene,
}


def where(text: str) -> Callable[[pa.Table], pa.Table]:
    """A function that filters rows by the predicate. Raises InputError for an unsupported predicate."""
    tree = sqlglot.parse_one(text, dialect="spark")
    _check(tree, text)
    return lambda rows: rows.filter(_value(tree, rows))


def _check(node: Any, text: str) -> None:
    inner: tuple[Any, ...] = ()
    if isinstance(node, exp.Paren | exp.Not):
        inner = (node.this,)
    elif type(node) in _BINARY:
        inner = (node.left, node.right)
    elif not isinstance(node, exp.Column | exp.Literal) or (isinstance(node, exp.Literal) and node.is_string):
        rule = "must be comparisons of columns and numbers on the engine known"
        raise InputError(Problem("where", rule, text, "another workload, or another --engine"))
    for each in inner:
        _check(each, text)


def _value(node: Any, rows: pa.Table) -> Any:
    match node:
        case exp.Column():
            return rows.column(node.name)
        case exp.Literal():
            return pa.scalar(float(node.this) if "." in node.this else int(node.this))
        case exp.Paren():
            return _value(node.this, rows)
        case exp.Not():
            return pc.invert(_value(node.this, rows))
    return _BINARY[type(node)](_value(node.left, rows), _value(node.right, rows))
