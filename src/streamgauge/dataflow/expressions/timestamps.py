"""Rules of functions on timestamps (see `dataflow.expressions.functions`): microseconds, always UTC.

Known limit: times beyond the year 294246 are none on DuckDB, and stop it.
"""

from __future__ import annotations

import re

from sqlglot import exp

from streamgauge.dataflow.expressions.rules import (
    INTEGERS,
    STRING,
    Refused,
    Rule,
    TypeOf,
    as_literal,
    duckdb,
    need,
    plain_text,
)

TIMESTAMP = frozenset({"timestamp"})
_UNITS = ("second", "minute", "hour", "day")

# A letter group of Spark's formats: what DuckDB calls it, and the text it stands for (DuckDB takes shorter text too).
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
    # No place is further than 18 hours from UTC, and Java takes no offset that is.
    "Z": ("%z", "[+-]((0[0-9]|1[0-7])[0-5][0-9]|1800)"),
}
_PIECE = re.compile(r"(?P<group>([a-zA-Z])\2*)|'(?P<quoted>[^']+)'|(?P<sign>[-/:. \[\],])")


def to_unix(unit_us: int) -> Rule:
    """`unix_micros`, `unix_millis`, `unix_seconds`: whole units since 1970, rounded down."""

    def rule(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
        need(node.this, type_of, TIMESTAMP, "it", "use it on a timestamp")
        if unit_us == 1:
            return duckdb("epoch_us({x})", x=node.this)
        rest = f"((epoch_us({{x}}) % {unit_us}) + {unit_us}) % {unit_us}"
        return duckdb(f"((epoch_us({{x}}) - {rest}) // {unit_us})", x=node.this)

    return rule


def from_unix(unit_us: int) -> Rule:
    """`timestamp_micros`, `timestamp_millis`, `timestamp_seconds` of whole numbers."""

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
    """`try_to_timestamp(text, format)`: null where the text is not of the format, or is no time."""
    if len(node.expressions) != 2 or (pattern := plain_text(node.expressions[1])) is None:
        way_out = "try_to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')"
        raise Refused("try_to_timestamp takes a text and a format that is written out", way_out, node)
    text = node.expressions[0]
    need(text, type_of, STRING, "try_to_timestamp", "use it on a string")
    theirs, shape = _format(pattern, node)
    value = "timezone('UTC', try_strptime({x}, {f}))" if "%z" in theirs else "try_strptime({x}, {f})"
    found = f"CASE WHEN regexp_full_match({{x}}, {{shape}}) THEN {value} END"
    return duckdb(found, x=text, f=as_literal(theirs), shape=as_literal(shape))


def _format(pattern: str, node: exp.Expression) -> tuple[str, str]:
    """A format of Spark's as DuckDB's, and as the regular expression of what it takes."""
    theirs, shape, place = "", "", 0
    while place < len(pattern):
        found = _PIECE.match(pattern, place)
        if found is None or (found["group"] and found["group"] not in _GROUPS):
            way_out = f"{', '.join(_GROUPS)}, and text in quotes"
            raise Refused(f"format has {pattern[place:]!r}, which differs between engines", way_out, node)
        name, text = _GROUPS[found["group"]] if found["group"] else ("", re.escape(found["quoted"] or found["sign"]))
        theirs += name or found["quoted"] or found["sign"]
        shape += text
        place = found.end()
    if "%Y" not in theirs:
        raise Refused("format has no year", "yyyy-MM-dd HH:mm:ss", node)
    return theirs, shape
