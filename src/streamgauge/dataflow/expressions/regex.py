"""Rules of regular expressions and JSON (see `dataflow.expressions.functions`).

Spark matches with Java's regular expressions, DuckDB with RE2. A pattern may use what both have; where one sign stands
for different characters (`.`, `\\s`), DuckDB gets a class of Java's. Patterns are written out, never computed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp

from streamgauge.dataflow.expressions.rules import (
    STRING,
    Refused,
    TypeOf,
    as_literal,
    duckdb,
    need,
    plain_number,
    plain_text,
)

_SPACES = r" \t\n\x0B\f\r"
_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_QUANTIFIER = re.compile(r"([*+?]|\{[0-9]{1,3}(,[0-9]{0,3})?\})\??")
_PATH = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*)+")
"""Names only: of places in arrays, Spark and DuckDB give different values (a number, or a row beyond the end)."""


class _Differs(Exception):
    """A pattern that means something else on another engine."""


def split(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    if node.args.get("limit") is not None:
        raise Refused("split takes a text and a pattern", "split(x, ',')", node)
    pattern, _ = _pattern(node, type_of, "split", may_be_empty=False)
    return duckdb("string_split_regex({x}, {p})", x=node.this, p=pattern)


def extract(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """The group of the first match; empty where there is no match."""
    pattern, groups = _pattern(node, type_of, "regexp_extract", may_be_empty=True)
    return duckdb(f"regexp_extract({{x}}, {{p}}, {_group(node, groups)})", x=node.this, p=pattern)


def extract_all(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """The group of every match, as an array."""
    pattern, groups = _pattern(node, type_of, "regexp_extract_all", may_be_empty=False)
    found = f"regexp_extract_all({{x}}, {{p}}, {_group(node, groups)})"
    if groups:  # a group that took no part is empty on Spark and null on DuckDB
        found = f"list_transform({found}, LAMBDA __group : coalesce(__group, ''))"
    return duckdb(found, x=node.this, p=pattern)


def replace(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Every match by a text that is written out."""
    pattern, _ = _pattern(node, type_of, "regexp_replace", may_be_empty=False)
    by = plain_text(node.args.get("replacement"))
    if by is None or "$" in by or "\\" in by or node.args.get("position") is not None:
        raise Refused(
            "regexp_replace takes a plain replacement without $ or backslash", "regexp_replace(x, 'a+', '')", node
        )
    return duckdb("regexp_replace({x}, {p}, {r}, 'g')", x=node.this, p=pattern, r=as_literal(by))


def matches(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`rlike`, `regexp_like`: a match anywhere in the text."""
    pattern, _ = _pattern(node, type_of, "rlike", may_be_empty=True)
    return duckdb("regexp_matches({x}, {p})", x=node.this, p=pattern)


def json_value(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`get_json_object(text, '$.a.b')`: null where the text is no JSON or the path is not there."""
    need(node.this, type_of, STRING, "get_json_object", "use it on a string")
    try:
        path = node.expression.sql("spark").strip("'")
    except ValueError:  # sqlglot's word for a path that Spark has none of
        path = ""
    if not _PATH.fullmatch(path):
        raise Refused("get_json_object takes a path of names", "get_json_object(x, '$.user.name')", node)
    return duckdb("CASE WHEN json_valid({x}) THEN json_extract_string({x}, {p}) END", x=node.this, p=as_literal(path))


def _group(node: exp.Expression, groups: int) -> int:
    """Which group is asked for; Spark's default is the first."""
    given = node.args.get("group")
    number = 1 if given is None else plain_number(given)
    if number is None or number > groups:
        rule = f"pattern has {groups} groups"
        raise Refused(rule, "a group as a plain number; 0 for the whole match", node)
    return number


def _pattern(node: exp.Expression, type_of: TypeOf, function: str, may_be_empty: bool) -> tuple[exp.Expression, int]:
    """The pattern as DuckDB needs it, and how many groups it has."""
    need(node.this, type_of, STRING, function, "use it on a string")
    text = plain_text(node.expression)
    if text is None:
        raise Refused(f"{function} takes a pattern that is written out", f"{function}(x, '[a-z]+')", node)
    try:
        theirs = on_re2(text)
        known = re.compile(theirs.replace(r"\z", r"\Z").replace(_DOT, "."))
    except _Differs as differs:
        raise Refused(
            f"pattern has {differs}", "[...], (...), |, * + ? {n,m}, \\\\w \\\\d \\\\s, ^, \\\\z", node
        ) from None
    except re.error as error:
        raise Refused(f"pattern cannot be read: {error}", "a regular expression such as '[a-z]+'", node) from None
    if not may_be_empty and known.search("") is not None:
        raise Refused(f"{function} takes a pattern that never matches nothing", "+ instead of *", node)
    return as_literal(theirs), known.groups


@lru_cache(maxsize=1024)
def on_re2(pattern: str) -> str:
    """A Java pattern in RE2's words; raises where the two would differ."""
    made, place = "", 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "[":
            part, place = _class(pattern, place + 1)
        elif sign == "\\":
            part, place = _escape(pattern, place, "wWdDAz", rf"[{_SPACES}]"), place + 2
        elif sign == "(" and pattern.startswith("(?", place) and not pattern.startswith("(?:", place):
            raise _Differs("(?, which only one engine knows")
        elif sign == "$":
            raise _Differs("$, which stops before a line's end on one engine: write \\\\z")
        elif found := _QUANTIFIER.match(pattern, place):
            part, place = found[0], found.end()
            if _QUANTIFIER.match(pattern, place):
                raise _Differs(f"{pattern[found.start() : place + 1]}, which differs between engines")
        elif sign in "{}]":
            raise _Differs(f"a lone {sign}: write \\\\{sign}")
        else:
            part, place = (_DOT if sign == "." else sign), place + 1
        made += part
    return made


def _escape(pattern: str, place: int, letters: str, spaces: str) -> str:
    sign = pattern[place + 1 : place + 2]
    if sign == "s":
        return spaces
    if sign in letters or sign in "tnrf" or (sign.isascii() and not sign.isalnum()):
        return "\\" + sign
    raise _Differs(f"\\{sign}, which differs between engines")


def _class(pattern: str, place: int) -> tuple[str, int]:
    """`[...]` from after its bracket, and the place after it."""
    made = "[" + ("^" if pattern.startswith("^", place) else "")
    place += len(made) - 1
    first = place
    while place < len(pattern):
        sign = pattern[place]
        if sign == "]" and place > first:
            return made + "]", place + 1
        if sign in "[]" or pattern.startswith("&&", place):
            raise _Differs(f"{sign} inside [...]: write \\\\{sign}")
        step = 2 if sign == "\\" else 1
        made += _escape(pattern, place, "wWdD", _SPACES) if sign == "\\" else sign
        place += step
    raise _Differs("[ without ]")
