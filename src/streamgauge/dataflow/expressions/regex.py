"""Rules of regular expressions and JSON (see `dataflow.expressions.functions`).

Spark matches with Java's regular expressions, DuckDB with RE2. A pattern may use what both have. If a symbol matches
different characters (`.`, `\\s`), DuckDB gets Java's character class. Patterns are literals.
"""

import re
from functools import lru_cache

from sqlglot import exp

from streamgauge.dataflow.expressions.rules import (
    STRING,
    TypeOf,
    duckdb,
    need,
    plain_number,
    plain_text,
)
from streamgauge.dataflow.expressions.types import Refused, allow

_SPACES = r" \t\n\x0B\f\r"
_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_QUANTIFIER = re.compile(r"([*+?]|\{[0-9]{1,3}(,[0-9]{0,3})?\})\??")
_PATH = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*)+")
"""Names only, because Spark and DuckDB differ for array indices."""


class _Differs(Exception):
    """A pattern that means something else on another engine."""


def split(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    allow(node.args.get("limit") is None, "split takes a text and a pattern", "split(x, ',')", node)
    pattern, _ = _pattern(node, type_of, "split", may_be_empty=False)
    return duckdb("string_split_regex({x}, {p})", x=node.this, p=pattern)


def extract(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """The group of the first match; empty if there is no match."""
    pattern, groups = _pattern(node, type_of, "regexp_extract", may_be_empty=True)
    return duckdb(f"regexp_extract({{x}}, {{p}}, {_group(node, groups)})", x=node.this, p=pattern)


def extract_all(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """The group of every match, as an array."""
    pattern, groups = _pattern(node, type_of, "regexp_extract_all", may_be_empty=False)
    quantifier = f"regexp_extract_all({{x}}, {{p}}, {_group(node, groups)})"
    if groups:  # a group that did not match is empty on Spark and null on DuckDB
        quantifier = f"list_transform({quantifier}, LAMBDA __group : coalesce(__group, ''))"
    return duckdb(quantifier, x=node.this, p=pattern)


def replace(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Replaces every match with a literal."""
    pattern, _ = _pattern(node, type_of, "regexp_replace", may_be_empty=False)
    by = plain_text(node.args.get("replacement"))
    is_plain = by is not None and not {"$", "\\"} & set(by) and node.args.get("position") is None
    rule = "regexp_replace takes a literal replacement without $ or backslash"
    allow(is_plain, rule, "regexp_replace(x, 'a+', '')", node)
    return duckdb("regexp_replace({x}, {p}, {r}, 'g')", x=node.this, p=pattern, r=exp.Literal.string(str(by)))


def matches(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`rlike`, `regexp_like`: whether the text contains a match."""
    pattern, _ = _pattern(node, type_of, "rlike", may_be_empty=True)
    return duckdb("regexp_matches({x}, {p})", x=node.this, p=pattern)


def json_value(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`get_json_object(text, '$.a.b')`: null if the text is not JSON or the path does not exist."""
    need(node.this, type_of, STRING, "get_json_object", "use it on a string")
    try:
        path = node.expression.sql("spark").strip("'")
    except ValueError:  # sqlglot raises it for a path that Spark does not support
        path = ""
    allow(_PATH.fullmatch(path), "get_json_object takes a path of names", "get_json_object(x, '$.user.name')", node)
    return duckdb(
        "CASE WHEN json_valid({x}) THEN json_extract_string({x}, {p}) END", x=node.this, p=exp.Literal.string(path)
    )


def _group(node: exp.Expression, groups: int) -> int:
    """The number of the requested group; Spark's default is 1."""
    group = node.args.get("group")
    number = 1 if group is None else plain_number(group)
    way_out = "a literal group number; 0 for the whole match"
    allow(number is not None and number <= groups, f"pattern has {groups} groups", way_out, node)
    return int(number or 0)


def _pattern(node: exp.Expression, type_of: TypeOf, function: str, may_be_empty: bool) -> tuple[exp.Expression, int]:
    """The pattern for DuckDB, and its number of groups."""
    need(node.this, type_of, STRING, function, "use it on a string")
    text = plain_text(node.expression)
    allow(text is not None, f"{function} takes a literal pattern", f"{function}(x, '[a-z]+')", node)
    try:
        re2_pattern = on_re2(str(text))
        compiled = re.compile(re2_pattern.replace(r"\z", r"\Z").replace(_DOT, "."))
    except _Differs as differs:
        raise Refused(
            f"pattern has {differs}", "[...], (...), |, * + ? {n,m}, \\\\w \\\\d \\\\s, ^, \\\\z", node
        ) from None
    except re.error as error:
        raise Refused(f"pattern cannot be read: {error}", "a regular expression such as '[a-z]+'", node) from None
    is_allowed = may_be_empty or compiled.search("") is None
    allow(is_allowed, f"{function} takes a pattern that does not match the empty string", "+ instead of *", node)
    return exp.Literal.string(re2_pattern), compiled.groups


@lru_cache(maxsize=1024)
def on_re2(pattern: str) -> str:
    """Translates a Java pattern to RE2. Raises _Differs if the two would differ."""
    converted, position = "", 0
    while position < len(pattern):
        char = pattern[position]
        if char == "[":
            part, position = _class(pattern, position + 1)
        elif char == "\\":
            part, position = _escape(pattern, position, "wWdDAz", rf"[{_SPACES}]"), position + 2
        elif char == "(" and pattern.startswith("(?", position) and not pattern.startswith("(?:", position):
            raise _Differs("(?, which only one engine supports")
        elif char == "$":
            raise _Differs("$, which stops before a line's end on one engine: write \\\\z")
        elif quantifier := _QUANTIFIER.match(pattern, position):
            part, position = quantifier[0], quantifier.end()
            if _QUANTIFIER.match(pattern, position):
                raise _Differs(f"{pattern[quantifier.start() : position + 1]}, which differs between engines")
        elif char in "{}]":
            raise _Differs(f"a lone {char}: write \\\\{char}")
        else:
            part, position = (_DOT if char == "." else char), position + 1
        converted += part
    return converted


def _escape(pattern: str, position: int, letters: str, spaces: str) -> str:
    char = pattern[position + 1 : position + 2]
    if char == "s":
        return spaces
    if char in letters or char in "tnrf" or (char.isascii() and not char.isalnum()):
        return "\\" + char
    raise _Differs(f"\\{char}, which differs between engines")


def _class(pattern: str, position: int) -> tuple[str, int]:
    """Reads `[...]` from after its bracket. Returns the class and the position after it."""
    converted = "[" + ("^" if pattern.startswith("^", position) else "")
    position += len(converted) - 1
    first = position
    while position < len(pattern):
        char = pattern[position]
        if char == "]" and position > first:
            return converted + "]", position + 1
        if char in "[]" or pattern.startswith("&&", position):
            raise _Differs(f"{char} inside [...]: write \\\\{char}")
        converted += _escape(pattern, position, "wWdD", _SPACES) if char == "\\" else char
        position += 2 if char == "\\" else 1
    raise _Differs("[ without ]")
