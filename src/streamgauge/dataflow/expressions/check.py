"""Expressions of a flow: Spark SQL text, checked when the flow is built, and translated to DuckDB SQL.

Steps of a check, all cached:

1. Function names against the allowlist.
2. Parse (sqlglot, dialect spark).
3. Columns exist.
4. Each node by its rule in `dataflow.expressions.functions.RULES`, which translates it.
5. DuckDB's binder determines the type.

Spark gets the original text.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from streamgauge.core.errors import ExpressionError, Problem, near
from streamgauge.dataflow.expressions.types import Refused, Types, allow, available_columns, bound_type

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Checked:
    """A valid expression: its Spark type, its DuckDB text, the columns it reads, whether it aggregates.

    `over` is the DuckDB text with every aggregate `OVER running`. `partial` and `combine` are set if the expression is
    one sum, count, min or max: the partial aggregate, and the function that combines partials.
    """

    type: str
    duckdb: str
    columns: frozenset[str]
    aggregate: bool
    over: str
    partial: str | None
    combine: str | None


def checked(expression: str, columns: Mapping[str, str], setting: str) -> Checked:
    """Checks an expression over `columns` (name to Spark type).

    Raises ExpressionError with `setting`, the position in the text and the available columns.
    """
    with _explained(expression, setting):
        return _checked(expression, tuple(columns.items()))


def check(expression: str, columns: Mapping[str, str], setting: str) -> str:
    """The Spark SQL type name of an expression over `columns`. Raises ExpressionError.

    >>> check("price * 2", {"price": "int"}, "select")
    'int'
    """
    return checked(expression, columns, setting).type


def to_duckdb(expression: str, columns: Mapping[str, str]) -> str:
    """The expression as DuckDB text. Types matter: a sum of integers is cast back to BIGINT."""
    return checked(expression, columns, "expression").duckdb


def columns_of(expression: str) -> set[str]:
    """The names of the columns that an expression reads. Raises ExpressionError if it cannot be parsed."""
    from sqlglot import exp

    with _explained(expression, "expression"):
        return {column.name for column in _parsed(expression).find_all(exp.Column)}


@contextmanager
def _explained(expression: str, setting: str) -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        raise ExpressionError(Problem(setting, refused.rule, expression, refused.way_out)) from None


def columns_of_all(expressions: Iterable[tuple[str, str]]) -> set[str]:
    """The names of the columns that several (name, expression) pairs read."""
    return {column for _, expression in expressions for column in columns_of(expression)}


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> exp.Expression:
    """The cached tree. Copy it before changing it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    way_out = "one Spark SQL expression, such as price * 2"
    try:
        _check_tokens(expression)
        tree = sqlglot.parse_one(expression, dialect="spark")
    except SqlglotError as error:
        raise Refused(_parse_error(error), way_out) from None
    allow(tree is not None, "is empty", way_out)
    return tree


def _parse_error(error: Any) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return f"cannot be read: {str(error).splitlines()[0]}"
    description = str(details[0].get("description")).rstrip(".")
    # sqlglot names its own classes where an operand is missing
    description = "an operand is missing" if "class" in description else description
    return f"cannot be read at character {details[0].get('col')}: {description}"


def _check_tokens(expression: str) -> None:
    """Refuses functions that are not on the allowlist. Checks names, because sqlglot accepts other dialects' names.

    Also refuses adjacent strings: Spark reads 'it''s' as it's, sqlglot reads it as its.
    """
    import sqlglot

    from streamgauge.dataflow.expressions.functions import FUNCTIONS, WORDS

    for token, following in itertools.pairwise(sqlglot.tokenize(expression, dialect="spark")):
        are_strings = token.token_type.name == following.token_type.name == "STRING"
        rule = f"has two adjacent strings at character {token.start + 1}"
        allow(not are_strings, rule, "concat('a', 'b'), or \\' for a quote inside a string")
        word = token.text.lower()
        is_name = word.isidentifier() and token.token_type.name not in ("STRING", "NUMBER")
        if is_name and following.text == "(" and word not in FUNCTIONS | WORDS:
            raise Refused(
                f"function {token.text} at character {token.start + 1} is not allowed",
                f"{_hint(word, FUNCTIONS)}one of {', '.join(sorted(FUNCTIONS))}",
            )


def _hint(word: str, names: Collection[str]) -> str:
    close = near(word, names)
    return f"{close}? " if close else ""


@lru_cache(maxsize=4096)
def _checked(expression: str, types: Types) -> Checked:
    from sqlglot import exp

    tree = _parsed(expression)
    _check_columns(tree, types)
    _check_grouping(tree)
    lowered = _on_duckdb(tree, types)
    partial, combine = _parts(tree, lowered)
    return Checked(
        type=bound_type(lowered.sql("duckdb"), types),
        duckdb=lowered.sql("duckdb"),
        columns=frozenset(column.name for column in tree.find_all(exp.Column)),
        aggregate=lowered.find(exp.AggFunc) is not None,
        over=_over(lowered).sql("duckdb"),
        partial=partial,
        combine=combine,
    )


def _position(node: exp.Expression | None) -> str:
    starts = _starts(node)
    return f" at character {min(starts) + 1}" if starts else ""


def _starts(node: exp.Expression | None) -> list[int]:
    """The positions of a node's parts in the text, as far as sqlglot says them."""
    return [part.meta["start"] for part in node.walk() if "start" in part.meta] if node is not None else []


def _check_columns(tree: exp.Expression, types: Types) -> None:
    from sqlglot import exp

    names = [name for name, _ in types]
    for column in tree.find_all(exp.Column):
        if column.name not in names or column.table:
            raise Refused(
                f"column {column.sql('spark')}{_position(column)} does not exist",
                _hint(column.name, names) + available_columns(types),
            )


def _check_grouping(tree: exp.Expression) -> None:
    """Refuses columns outside the aggregates of an aggregate expression, and nested aggregates."""
    from sqlglot import exp

    if tree.find(exp.AggFunc) is None:
        return
    for column in tree.find_all(exp.Column):
        rule = f"column {column.name}{_position(column)} stands outside an aggregate"
        allow(column.find_ancestor(exp.AggFunc), rule, f"min({column.name}), or add it to keys")
    for aggregate in tree.find_all(exp.AggFunc):
        rule = f"an aggregate{_position(aggregate)} stands inside another"
        allow(not aggregate.find_ancestor(exp.AggFunc), rule, "a second aggregate step after it")


def _on_duckdb(tree: exp.Expression, types: Types) -> exp.Expression:
    def type_of(node: exp.Expression) -> str:
        return bound_type(node.sql("duckdb"), types)

    try:
        return _lowered(tree.copy(), type_of)
    except Refused as refused:
        where = _position(refused.node)
        raise Refused(refused.rule + (f" ({where.strip()})" if where else ""), refused.way_out) from None


def _lowered(node: exp.Expression, type_of: Any) -> exp.Expression:
    """Translates the arguments first, then the node by its rule."""
    from sqlglot import exp

    from streamgauge.dataflow.expressions.functions import FUNCTIONS, RULES

    rule = RULES.get(type(node))
    if rule is None:
        way_out = f"operators, case, and these functions: {', '.join(sorted(FUNCTIONS))}"
        raise Refused(f"{type(node).__name__.lower()} is not allowed in an expression", way_out, node)
    if isinstance(node, exp.Column):
        return exp.column(node.name, quoted=True)
    for child in _children(node):
        child.replace(_lowered(child.copy(), type_of))
    lowered = rule(node, type_of)
    if lowered is not node and (starts := _starts(node)):
        lowered.meta["start"] = min(starts)
    return lowered


def _children(node: exp.Expression) -> Iterator[exp.Expression]:
    from sqlglot import exp

    # The rule of a cast reads its type and its literal itself.
    if isinstance(node, exp.TryCast):
        return iter([node.this] if node.args.get("safe") else [])
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return iter([])
    # A JSON path and a time unit are not expressions.
    if isinstance(node, exp.JSONExtractScalar | exp.TimestampTrunc):
        return iter([node.this])
    return iter(list(node.iter_expressions()))


def _over(lowered: exp.Expression) -> exp.Expression:
    from sqlglot import exp

    copied = lowered.copy()
    for aggregate in list(copied.find_all(exp.AggFunc)):
        window = exp.Window(this=aggregate.copy(), alias=exp.to_identifier("running"))
        if aggregate is copied:
            return window
        aggregate.replace(window)
    return copied


def over_running(aggregate: str) -> str:
    """DuckDB text with every aggregate `OVER running`."""
    import sqlglot

    return str(_over(sqlglot.parse_one(aggregate, dialect="duckdb")).sql("duckdb"))


_COMBINE = {"Sum": "sum", "Count": "sum", "Min": "min", "Max": "max"}


def _parts(tree: exp.Expression, lowered: exp.Expression) -> tuple[str | None, str | None]:
    from sqlglot import exp

    combine = _COMBINE.get(type(tree).__name__)
    aggregate = lowered.find(exp.AggFunc)
    if combine is None or aggregate is None:
        return None, None
    return aggregate.sql("duckdb"), combine
