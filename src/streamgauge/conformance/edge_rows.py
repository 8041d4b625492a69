"""Every allowed function and operator over edge rows: as expressions, as a stream of such rows, and as flows over it.

Edge rows: null, empty, zero, negative, smallest and largest, NaN and infinities, texts of other alphabets, lines of a
log, times before 1970.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.nodes import Flow
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.fitted import Fitted

COLUMNS = {
    "g": "int", "a": "int", "b": "bigint", "d": "double", "s": "string", "t": "string", "ok": "boolean", "j": "string",
    "ts": "timestamp",
}  # fmt: skip
INT, LONG = 2**31 - 1, 2**63 - 1
# of j and ts: JSON, lines of a log, words between signs; times before 1970, on a border, of a leap day
TEXTS = [
    None, "", '{"a": {"b": ["x", 2, null]}, "c": "ü\\u00e4"}', '{"a": {"b": []}, "c": -5}', '{"a": ',
    "the cow, the;moon", "07/Mar/2004:16:05:49 -0800", "30/Feb/2004:16:05:49 -0800", "2020-11-20T04:32:55.123Z",
    "07/mAR/2004:16:05:49 +1800", "07/Mar/2004:16:05:49 -1801", "07/Mar/2004:16:05:49 +0060",
]  # fmt: skip
TIMES = [
    None, datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, 15, 500_000, tzinfo=UTC), *[datetime(1900, 1, 1, 0, 0, 1, tzinfo=UTC)] * 8,
]  # fmt: skip
PLAIN_ROWS: list[tuple[Any, ...]] = [
    (1, None, None, None, None, None, None),
    (1, 0, 0, 0.0, "", "", False),
    (1, 1, 2, 2.5, "abc", "b", True),
    (2, -7, 3, -2.5, "  Ab c ", "a%", True),
    (2, 7, -3, 1e20, "12", " -3 ", False),
    (3, INT, LONG, float("inf"), "2.5", "1e3", None),
    (4, -INT - 1, -LONG - 1, float("-inf"), "1_000", "+5", False),
    (5, 100, -1, float("nan"), "\tx", "99999999999", True),
    (6, -INT - 1, 5, -1e-300, "äÖ", ".5", True),
    *[(7, number, 5, 0.5, "s", "t", True) for number in range(3)],
]
ROWS = [(*row, text, time) for row, text, time in zip(PLAIN_ROWS, TEXTS, TIMES, strict=True)]
CLF, ISO = "'dd/MMM/yyyy:HH:mm:ss Z'", "'yyyy-MM-dd\\'T\\'HH:mm:ss.SSS\\'Z\\''"
VALUES = [
    "a + 1", "a - 1", "a * 2", "a + b", "b - 1", "b * 2", "d * 2", "a + d", "a * 1.5e0", "a * 1.5D", "b + 10L", "-a",
    "-b", "-d", "abs(a)", "abs(b)", "abs(d)", "a % 3", "a % b", "b % 3", "mod(a, 7)", "a % -1", "a % a", "b % a",
    "try_divide(a, b)", "try_divide(a, a)", "try_divide(d, a)", "try_divide(1, d)",
    "a = b", "a == 1", "a <> b", "a != 1", "a < b", "a <= d", "a > d", "a >= 0", "a <=> b", "d <=> d", "d = d", "s = t",
    "s < t", "ok = true", "a <=> null",
    "ok and a > 0", "ok or a > 0", "not ok", "ok is true", "a is null", "s is not null", "ok is not false",
    "case when a > 0 then 'up' when a < 0 then 'down' else s end", "case when ok then a end",
    "case a when 1 then 2 else 3 end", "if(ok, a, 0)", "if(ok, a, b)", "case when ok then a else d end",
    "coalesce(a, b)", "coalesce(s, t, 'none')", "ifnull(a, 5)", "nvl(s, 'x')", "nullif(a, 0)", "nullif(s, '')",
    "greatest(a, b)", "greatest(a, 5, null)", "least(a, b)", "least(s, t)", "greatest(d, a)", "least(d, 0)",
    "ceil(d)", "floor(d)", "ceiling(d)", "ceil(-d)",
    "upper(s)", "lower(s)", "ucase(t)", "lcase(s)", "length(s)", "char_length(s)", "concat(s, t)", "s || t",
    "concat(s, '-', t)", "'it\\'s'", "'a' || s", "trim(s)", "ltrim(s)", "rtrim(s)", "substring(s, 1, 2)",
    "substring(s, 3)", "substr(s, 2, 100)", "substring(s, 1, 0)",
    "s like '%b%'", "s like 'a_c'", "t like 'a%'", "s not like '%c%'", "s like ''",
    "startswith(s, 'a')", "startswith(s, t)", "endswith(s, 'c')", "contains(s, 'b')", "contains(s, '')",
    "a in (1, 7, 100)", "a not in (1, null)", "s in ('abc', '')", "a between -7 and 7", "a not between 0 and b",
    "d between -3 and 3",
    "try_cast(s as int)", "try_cast(t as int)", "try_cast(t as bigint)", "try_cast(s as double)",
    "try_cast(t as double)", "try_cast(d as int)", "try_cast(d as bigint)", "try_cast(b as int)",
    "try_cast(a as bigint)", "try_cast(a as double)",
    "try_cast(b as double)", "try_cast(ok as int)", "try_cast(a as string)", "try_cast(b as string)",
    "try_cast(ok as string)", "try_cast(a as int)", "cast(5 as bigint)",
    "split(j, ' ')", "split(j, '[,; ]+')", "split(s, 'c')", "split(j, '\\\\s')", "split(s, r'[\\s]')",
    "size(split(j, ','))",
    "regexp_extract(j, '([a-z]+), ([a-z]+)', 2)", "regexp_extract(j, '([a-z]+)(x)?', 2)", "regexp_extract(s, '(a*)')",
    "regexp_extract_all(j, '[a-z]+', 0)", "regexp_extract_all(j, '([a-z])(x)?', 2)", "regexp_extract_all(j, '(o)')",
    "regexp_replace(j, '[^a-z]+', ' ')", "regexp_replace(s, '\\\\w', '-')", "s rlike '^a.c\\\\z'",
    "regexp_like(j, 'co?w')", "j rlike '.'", "s rlike '[\\\\s]'", "s rlike 'a|c{1,2}'",
    "replace(j, 'the ', '')", "replace(s, 'a', t)", "replace(s, 'a', 'b')",
    "array(a, 1)", "array(s, t)", "array_contains(array(a, 1), 7)", "array_contains(array(s, t), 'b')",
    "array_repeat(s, 2)", "array_repeat(a, a % 3)", "try_element_at(split(j, ' '), 2)", "try_element_at(array(b), 1)",
    "get_json_object(j, '$.a.b')", "get_json_object(j, '$.c')", "get_json_object(j, '$.none')",
    "get_json_object(s, '$.c')",
    "sqrt(d)", "sqrt(a)",
    "unix_micros(ts)", "unix_millis(ts)", "unix_seconds(ts)", "unix_micros(date_trunc('second', ts))",
    "unix_micros(date_trunc('minute', ts))", "unix_micros(date_trunc('hour', ts))",
    "unix_micros(date_trunc('day', ts))", "unix_micros(timestamp_seconds(a))", "unix_micros(timestamp_millis(a))",
    "unix_micros(timestamp_micros(a))",
    f"unix_micros(try_to_timestamp(j, {CLF}))", f"unix_micros(try_to_timestamp(j, {ISO}))",
    "(a + 1) % 3", "1", "3000000000", "true", "1e0", "a + b * 2 - 1", "not (a > 0 and ok)",
]  # fmt: skip
AGGREGATES = [
    "count(*)", "count(a)", "sum(a)", "sum(b)", "sum(d)", "avg(a)", "avg(b)", "avg(d)", "min(a)", "max(a)", "min(b)",
    "max(d)", "min(d)", "min(s)", "max(s)", "max(ok)", "sum(a) * 2 + count(*)", "try_divide(sum(a), count(a))",
    "max(a) - min(a)", "coalesce(sum(a), 0)", "sum(case when ok then a else 0 end)", "max(length(s))",
]  # fmt: skip
STOPPING = frozenset({
    "a + 1", "a - 1", "a * 2", "a + b", "b - 1", "b * 2", "b + 10L", "-a", "-b", "abs(a)", "abs(b)", "a % b", "a % a",
    "b % a", "ceil(d)", "floor(d)", "ceiling(d)", "ceil(-d)", "(a + 1) % 3", "a + b * 2 - 1",
})  # fmt: skip
"""Those that stop an engine on some edge row: by overflow, or a division by zero."""
UNSURE = ("sum(b)", "avg(b)", "max(a) - min(a)")
"""Aggregates that overflow, or depend on the order of rows, where many edge rows come together."""
STREAM = StreamSpec(
    "edges",
    tuple(
        Fitted(name, kind, values, (1.0,) * len(values))
        for (name, kind), column in zip(COLUMNS.items(), zip(*ROWS, strict=True), strict=True)
        for values in [tuple(dict.fromkeys(column))]
    ),
)
"""Each column takes any of its edge values, whatever the others have."""
EXACT = replace(STREAM, name="exact_edges", fields=tuple(each for each in STREAM.fields if each.sql_type != "double"))
"""Without doubles, whose text an engine may leave to a slower decoder of messages."""
EDGES = source(STREAM.name, STREAM.schema)


def every_function() -> Flow:
    """One column for each expression; of an array, its size and its first element."""
    columns: dict[str, str] = {}
    for number, each in enumerate(each for each in VALUES if each not in STOPPING):
        if expressions.check(each, COLUMNS, "test").startswith("array"):
            columns |= {f"size_{number}": f"size({each})", f"first_{number}": f"try_element_at({each}, 1)"}
        else:
            columns[f"x_{number}"] = each
    return EDGES.select(columns).sink("out")


def exact_rows() -> Flow:
    """Every column as its message has it."""
    return source(EXACT.name, EXACT.schema).select({name: name for name in EXACT.schema.names}).sink("out")


def every_aggregate() -> Flow:
    """Every aggregate over windows, each with several hundred edge rows of a key."""
    columns = {f"x_{number}": each for number, each in enumerate(AGGREGATES) if each not in UNSURE}
    return EDGES.window(tumble("1s"), keys="g").aggregate(columns).sink("out")


def odd_keys() -> Flow:
    """Null, empty, and of other alphabets."""
    return EDGES.window(tumble("1s"), keys=("s", "ok")).aggregate(n="count(*)", t="max(t)").sink("out")
