"""Rules of timestamp functions (see `dataflow.expressions.functions`): microseconds, always UTC.

Limit: DuckDB fails for times beyond the year 294246.
"""

from __future__ import annotations

import re

from sqlglot import exp

from streamgauge.dataflow.expressions.refused import Refused
from streamgauge.dataflow.expressions.rules import (
    INTEGERS,
    STRING,
    Rule,
    TypeOf,
    as_literal,
    duckdb,
    need,
    plain_text,
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
        if len(node.expressions) != 1:
            raise Refused(f"{node.this} takes one argument", f"{node.this}(x)", node)
        need(node.expressions[0], type_of, INTEGERS, str(node.this), "a whole number")
        return duckdb(f"make_timestamp(CAST({{x}} AS BIGINT) * {unit_us})", x=node.expressions[0])

    return rule


def truncated(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`date_trunc('minute', x)`."""
    need(node.this, type_of, TIMESTAMP, "date_trunc", "use it on a timestamp")
    unit = node.text("unit").lower()
    if unit not in _UNITS:
        raise Refused(f"date_trunc takes {', '.join(_UNITS)}", "date_trunc('minute', x)", node)
    return duckdb(f"date_trunc('{unit}', {{x}})", x=node.this)


def parsed(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`try_to_timestamp(text, format)`: null if the text does not match the format or is not a valid time."""
    if len(node.expressions) != 2 or (pattern := plain_text(node.expressions[1])) is None:
        way_out = "try_to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')"
        raise Refused("try_to_timestamp takes a text and a literal format", way_out, node)
    text = node.expressions[0]
    need(text, type_of, STRING, "try_to_timestamp", "use it on a string")
    duckdb_format, shape = _format(pattern, node)
    value = "timezone('UTC', try_strptime({x}, {f}))" if "%z" in duckdb_format else "try_strptime({x}, {f})"
    parsed_value = f"CASE WHEN regexp_full_match({{x}}, {{shape}}) THEN {value} END"
    return duckdb(parsed_value, x=text, f=as_literal(duckdb_format), shape=as_literal(shape))


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
    if "%Y" not in duckdb_format:
        raise Refused("format has no year", "yyyy-MM-dd HH:mm:ss", node)
    return duckdb_format, shape
