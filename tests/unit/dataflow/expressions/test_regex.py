"""Patterns: what both engines read alike passes, in RE2's words; the rest is refused with a way out."""

import pytest

from streamgauge.core.errors import ExpressionError
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.expressions.regex import on_re2

COLUMNS = {"s": "string", "n": "int"}


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("[a-z0-9_]+", "[a-z0-9_]+"),
        (r"(a|b)*?\.c{2,3}", r"(a|b)*?\.c{2,3}"),
        (r"\w\s", r"\w[ \t\n\x0B\f\r]"),
        (r"[^\s,\]]", r"[^ \t\n\x0B\f\r,\]]"),
        ("a.b", r"a[^\n\r\x{85}\x{2028}\x{2029}]b"),
        (r"^(?:x)\z", r"^(?:x)\z"),
    ],
)
def test_what_both_read_alike(pattern: str, wanted: str) -> None:
    """Signs that stand for other characters in Java become classes."""
    assert on_re2(pattern) == wanted


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a$", "\\$, which stops"), ("(?i)a", "only one engine supports"), ("(?=a)", "only one engine supports"),
        (r"\\bword", "b, which differs"), ("a++", "differs between engines"), ("a**", "differs between engines"),
        ("[a&&b]", "inside"), ("[[a]]", "inside"), ("a{", "a lone {"), ("a]", "a lone ]"), ("[a", "without ]"),
        ("(a", "cannot be read"), (r"(a)\\1", "1, which differs"), ("[]a]", "inside"),
    ],
)  # fmt: skip
def test_what_is_refused(pattern: str, what: str) -> None:
    """One problem with the sign that differs."""
    with pytest.raises(ExpressionError, match=what):
        expressions.check(f"s rlike '{pattern}'", COLUMNS, "where")


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("split(s, 'a*')", "does not match the empty string"),
        ("regexp_extract_all(s, '^', 0)", "does not match the empty string"),
        ("regexp_replace(s, '(a|)', 'b')", "does not match the empty string"),
        ("regexp_replace(s, '(a)', '$1')", "literal replacement"),
        ("regexp_extract(s, 'a', 1)", "pattern has 0 groups"),
        ("regexp_extract(s, '(a)', 2)", "pattern has 1 groups"),
        ("regexp_extract(s, s, 0)", "literal pattern"),
        ("split(n, ',')", "split takes string, not int"),
        ("split(s, ',', 2)", "a text and a pattern"),
        ("get_json_object(s, '$.*')", "a path of names"),
        ("get_json_object(s, '$..a')", "a path of names"),
        ("try_to_timestamp(s, 'yy-MM-dd')", "differs between engines"),
        ("try_to_timestamp(s, 'HH:mm')", "no year"),
        ("try_to_timestamp(s)", "a text and a literal format"),
        ("unix_micros(s)", "takes timestamp"),
        ("date_trunc('week', timestamp_seconds(n))", "date_trunc takes"),
        ("timestamp_seconds(s)", "takes bigint or int"),
        ("try_element_at(split(s, ','), 0)", "a literal index from 1"),
        ("element_at(split(s, ','), 1)", "element_at"),
        ("split(s, ',')[0]", "a missing element"),
        ("size(s)", "takes an array"),
        ("array(1, 'a')", "one plain type"),
        ("array(array(1))", "one plain type"),
        ("array_contains(array(1), 'a')", "takes bigint or double or int"),
        ("array_repeat(s, s)", "takes bigint or int"),
        ("array(1) = array(1)", "arrays differs between engines"),
        ("sqrt(s)", "sqrt takes"),
        ("replace(s, '', 'a')", "two literal strings"),
    ],
)
def test_functions_are_refused_where_engines_differ(expression: str, rule: str) -> None:
    """The rule that is broken is said."""
    with pytest.raises(ExpressionError, match=rule):
        expressions.check(expression, COLUMNS, "select")
