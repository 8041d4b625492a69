"""Rules of array functions (see `dataflow.expressions.functions`). Elements are plain values of one type."""

from __future__ import annotations

from sqlglot import exp

from streamgauge.dataflow.expressions.refused import Refused
from streamgauge.dataflow.expressions.rules import INTEGERS, NUMBERS, TypeOf, duckdb, need, plain_number
from streamgauge.dataflow.expressions.types import element_type


def _need_array(node: exp.Expression, type_of: TypeOf, function: str) -> str:
    """The type of the array's elements."""
    type_ = type_of(node)
    element = element_type(type_)
    if element is None:
        raise Refused(f"{function} takes an array, not {type_}", "split(x, ' '), or array(a, b)", node)
    return element


def array(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`array(a, b)`: values of one type."""
    types = {type_of(part) for part in node.expressions if not isinstance(part, exp.Null)}
    if len(types) != 1 or element_type(min(types)) is not None:
        raise Refused("array takes values of one plain type", "try_cast them to one type: array(1, 2)", node)
    return node


def size(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    _need_array(node.this, type_of, "size")
    return duckdb("CAST(len({x}) AS INTEGER)", x=node.this)


def element(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`try_element_at(array, n)` with a literal n >= 1; null if the array is shorter."""
    way_out = "try_element_at(array, 1)"
    if not node.args.get("safe"):
        raise Refused("a missing element stops the job on one engine and not on the other", way_out, node)
    _need_array(node.this, type_of, "try_element_at")
    position = plain_number(node.expressions[0]) if len(node.expressions) == 1 else None
    if not position:
        raise Refused("try_element_at takes a literal index from 1", way_out, node)
    return duckdb(f"list_extract({{x}}, {position})", x=node.this)


def contains(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Null if the array or the value is null, or if the value is not present but the array holds a null."""
    element_ = _need_array(node.this, type_of, "array_contains")
    family = NUMBERS if element_ in NUMBERS else frozenset({element_})
    need(node.expression, type_of, family, "array_contains", "a value of the type of the elements")
    return duckdb(
        "CASE WHEN ({x}) IS NULL OR ({v}) IS NULL THEN NULL WHEN list_contains({x}, {v}) THEN true"
        " WHEN len({x}) > list_count({x}) THEN NULL ELSE false END",
        x=node.this,
        v=node.expression,
    )


def repeat(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`array_repeat(x, n)`: an empty array if n < 1."""
    if len(node.expressions) != 2:
        raise Refused("array_repeat takes a value and a number", "array_repeat(x, 3)", node)
    value, times = node.expressions
    need(times, type_of, INTEGERS, "array_repeat", "a whole number of times")
    return duckdb(
        "CASE WHEN ({n}) IS NOT NULL THEN list_transform(range(greatest({n}, 0)), LAMBDA __i : {x}) END",
        n=times,
        x=value,
    )
