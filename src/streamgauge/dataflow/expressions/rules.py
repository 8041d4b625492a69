"""Building blocks of the rules in `dataflow.expressions.functions`, and the rules of arrays and timestamps.

A rule returns a node's DuckDB form, or raises `Refused`. Elements of arrays are plain values of one type. Timestamps
are microseconds, always UTC. Limit: DuckDB fails for times beyond the year 294246.
"""

import re
from collections.abc import Callable

import sqlglot
from sqlglot import exp

from streamgauge.dataflow.expressions.types import Refused, allow, element_type

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
    allow(type_ in types, f"{operation} takes {' or '.join(sorted(types))}, not {type_}", way_out, node)


def operands(types: frozenset[str], way_out: str) -> Rule:
    """The rule of an operation that is the same on both, if all its arguments have one of these types."""

    def rule(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
        for argument in node.iter_expressions():
            need(argument, type_of, types, type(node).__name__.lower(), way_out)
        return node

    return rule


def plain_number(node: exp.Expression | None) -> int | None:
    """The value of an integer literal, else None."""
    whole = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    return int(node.this) if whole and node is not None else None


def plain_text(node: exp.Expression | None) -> str | None:
    """The value of a string literal, else None."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _need_array(node: exp.Expression, type_of: TypeOf, function: str) -> str:
    """The type of the array's elements."""
    type_ = type_of(node)
    element = element_type(type_)
    allow(element, f"{function} takes an array, not {type_}", "split(x, ' '), or array(a, b)", node)
    return str(element)


def array(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`array(a, b)`: values of one type."""
    types = {type_of(part) for part in node.expressions if not isinstance(part, exp.Null)}
    is_plain = len(types) == 1 and element_type(min(types)) is None
    allow(is_plain, "array takes values of one plain type", "try_cast them to one type: array(1, 2)", node)
    return node


def array_size(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    _need_array(node.this, type_of, "size")
    return duckdb("CAST(len({x}) AS INTEGER)", x=node.this)


def array_element(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`try_element_at(array, n)` with a literal n >= 1; null if the array is shorter."""
    way_out, rule = "try_element_at(array, 1)", "a missing element stops the job on one engine and not on the other"
    allow(node.args.get("safe"), rule, way_out, node)
    _need_array(node.this, type_of, "try_element_at")
    position = plain_number(node.expressions[0]) if len(node.expressions) == 1 else None
    allow(position, "try_element_at takes a literal index from 1", way_out, node)
    return duckdb(f"list_extract({{x}}, {position})", x=node.this)


def array_contains(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
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


def array_repeat(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`array_repeat(x, n)`: an empty array if n < 1."""
    allow(len(node.expressions) == 2, "array_repeat takes a value and a number", "array_repeat(x, 3)", node)
    value, times = node.expressions
    need(times, type_of, INTEGERS, "array_repeat", "a whole number of times")
    return duckdb(
        "CASE WHEN ({n}) IS NOT NULL THEN list_transform(range(greatest({n}, 0)), LAMBDA __i : {x}) END",
        n=times,
        x=value,
    )


TIMESTAMP = frozenset({"timestamp"})
_UNITS = ("second", "minute", "hour", "day")

# A letter group of Spark's formats: its DuckDB form, and the text it matches (DuckDB alone would accept shorter text).
_GROUPS = {
    "yyyy": ("%Y", "[0-9]{4}"),
    "MMM": ("%b", "((?i)Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"),
    "MM": ("%m", "[0-9]{2}"),
    "dd": ("%d", "[0-9]{2}"),
    "HH": ("%H", "[0-9]{2}"),
    "mm": ("%M", "[0-9]{2}"),
    "ss": ("%S", "[0-9]{2}"),
    "SSSSSS": ("%f", "[0-9]{6}"),
    "SSS": ("%g", "[0-9]{3}"),
    # Java accepts offsets of at most 18 hours.
    "Z": ("%z", "[+-]((0[0-9]|1[0-7])[0-5][0-9]|1800)"),
}
_PIECE = re.compile(r"(?P<group>([a-zA-Z])\2*)|'(?P<quoted>[^']+)'|(?P<sign>[-/:. \[\],])")


def to_unix(unit_us: int) -> Rule:
    """`unix_micros`, `unix_millis`, `unix_seconds`: units since 1970, rounded down."""

    def rule(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
        need(node.this, type_of, TIMESTAMP, "it", "use it on a timestamp")
        if unit_us == 1:
            return duckdb("epoch_us({x})", x=node.this)
        remainder_us = f"((epoch_us({{x}}) % {unit_us}) + {unit_us}) % {unit_us}"
        return duckdb(f"((epoch_us({{x}}) - {remainder_us}) // {unit_us})", x=node.this)

    return rule


def from_unix(unit_us: int) -> Rule:
    """`timestamp_micros`, `timestamp_millis`, `timestamp_seconds` of integers."""

    def rule(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
        allow(len(node.expressions) == 1, f"{node.this} takes one argument", f"{node.this}(x)", node)
        need(node.expressions[0], type_of, INTEGERS, str(node.this), "a whole number")
        return duckdb(f"make_timestamp(CAST({{x}} AS BIGINT) * {unit_us})", x=node.expressions[0])

    return rule


def truncated_time(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`date_trunc('minute', x)`."""
    need(node.this, type_of, TIMESTAMP, "date_trunc", "use it on a timestamp")
    unit = node.text("unit").lower()
    allow(unit in _UNITS, f"date_trunc takes {', '.join(_UNITS)}", "date_trunc('minute', x)", node)
    return duckdb(f"date_trunc('{unit}', {{x}})", x=node.this)


def parsed_time(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`try_to_timestamp(text, format)`: null if the text does not match the format or is not a valid time."""
    patterns = [plain_text(each) for each in node.expressions[1:]]
    allow(
        len(patterns) == 1 and patterns[0] is not None,
        "try_to_timestamp takes a text and a literal format",
        "try_to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
        node,
    )
    text = node.expressions[0]
    need(text, type_of, STRING, "try_to_timestamp", "use it on a string")
    duckdb_format, shape = _format(str(patterns[0]), node)
    value = "timezone('UTC', try_strptime({x}, {f}))" if "%z" in duckdb_format else "try_strptime({x}, {f})"
    parsed_value = f"CASE WHEN regexp_full_match({{x}}, {{shape}}) THEN {value} END"
    return duckdb(parsed_value, x=text, f=exp.Literal.string(duckdb_format), shape=exp.Literal.string(shape))


def _format(pattern: str, node: exp.Expression) -> tuple[str, str]:
    """A Spark format as a DuckDB format, and as the regular expression of the text it accepts."""
    duckdb_format, shape, position = "", "", 0
    while position < len(pattern):
        piece = _PIECE.match(pattern, position)
        if piece is None or (piece["group"] and piece["group"] not in _GROUPS):
            way_out = f"{', '.join(_GROUPS)}, and text in quotes"
            raise Refused(f"format has {pattern[position:]!r}, which differs between engines", way_out, node)
        name, text = _GROUPS[piece["group"]] if piece["group"] else ("", re.escape(piece["quoted"] or piece["sign"]))
        duckdb_format += name or piece["quoted"] or piece["sign"]
        shape += text
        position = piece.end()
    allow("%Y" in duckdb_format, "format has no year", "yyyy-MM-dd HH:mm:ss", node)
    return duckdb_format, shape
