"""Every allowed function and operator gives the same type and the same values on Spark (batch) and on DuckDB.

Rows are edge rows: null, empty, zero, negative, smallest and largest, NaN and infinities. Where an expression stops one
engine, rows are tried one by one, and both must stop on the same ones.
"""

import math
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamgauge.core.schema import arrow_type
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.expressions.functions import FUNCTIONS
from streamgauge.workloads.dspbench.text import sentiment_analysis, spam_filter, trending_topics, word_count
from streamgauge.workloads.dspbench.web import log_processing

pytestmark = pytest.mark.spark

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


FOREIGN = [
    None, "", "İstanbul'da İYİ bir gün #İyi", "ΟΔΟΣ #ΣΟΦΟΣ ΣΑΣ", "273 \u212aelvin, 5 \u212bngström", "STRASSE Straße ﬀ",
    "I ı İ i", "Ǆ ǅ ǆ", "ẞ 𐐀 𐐨 #𐐀", "日本 #語 ne 'quote’s end’",
]  # fmt: skip
"""Text whose lower case has another length, depends on what follows, or has letters of ASCII."""
CUT = {
    "word_count": word_count.WORDS, "trending_topics": trending_topics.TOPICS,
    "sentiment_analysis": sentiment_analysis.CLEAN, "spam_filter": spam_filter.TOKENS,
}  # fmt: skip
"""How workloads cut the texts that they are given, which may be recorded ones of any language."""


@pytest.fixture(scope="module")
def frames(spark: Any) -> list[Any]:
    """The whole table first, then one a row."""
    schema = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    return [spark.createDataFrame(rows, schema) for rows in [ROWS, *([row] for row in ROWS)]]


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    return [_table(rows) for rows in [ROWS, *([row] for row in ROWS)]]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table({n: pa.array(c, arrow_type(t)) for (n, t), c in zip(COLUMNS.items(), columns, strict=True)})


def _duckdb(table: pa.Table, query: str) -> list[Any] | str:
    try:
        with duckdb.connect() as con:
            con.register("edge", table)
            return con.execute(query).fetchall()
    except duckdb.Error:
        return "stopped"


def _spark(frame: Any, query: str) -> list[Any] | str:
    from pyspark.errors import PySparkException

    try:
        return [tuple(row) for row in frame.sparkSession.sql(query, edge=frame).collect()]
    except PySparkException:
        return "stopped"


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-12)
    return type(left) is type(right) and left == right


def _equal(left: list[Any] | str, right: list[Any] | str) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    pairs = [(a, b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True)]
    return all(_same(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def together(frames: list[Any], tables: list[pa.Table]) -> dict[str, tuple[str, list[Any] | str]]:
    """Expression to its type and values on Spark over the whole table, in one query for all that DuckDB can answer."""
    calm = [e for e in VALUES if _duckdb(tables[0], f"SELECT {_on_duckdb(e)} FROM edge") != "stopped"]
    whole = "SELECT " + ", ".join(f"{_braced(e)} AS x{i}" for i, e in enumerate(calm)) + " FROM {edge}"
    types = [type_ for _, type_ in frames[0].sparkSession.sql(whole, edge=frames[0]).dtypes]
    rows = _spark(frames[0], whole)
    assert rows != "stopped", "an expression that DuckDB answers stops Spark"
    return {e: (types[i], [(row[i],) for row in rows]) for i, e in enumerate(calm)}


def _braced(expression: str) -> str:
    """Braces doubled: the query is a format for Spark."""
    return expression.replace("{", "{{").replace("}", "}}")


def _on_duckdb(expression: str) -> str:
    return expressions.to_duckdb(expression, COLUMNS)


@pytest.mark.parametrize("expression", VALUES)
def test_values_agree(
    expression: str, frames: list[Any], tables: list[pa.Table], together: dict[str, tuple[str, list[Any] | str]]
) -> None:
    """A row-wise expression has the same type and values on both engines, and stops both on the same rows."""
    type_ = expressions.check(expression, COLUMNS, "test")
    on_duckdb = f"SELECT {_on_duckdb(expression)} AS x FROM edge"
    if expression in together:
        assert together[expression][0] == type_
        assert _equal(_duckdb(tables[0], on_duckdb), together[expression][1])
        return
    on_spark = f"SELECT {_braced(expression)} AS x FROM {{edge}}"
    assert frames[0].sparkSession.sql(on_spark, edge=frames[0]).dtypes == [("x", type_)]
    for row, (table, frame) in enumerate(zip(tables[1:], frames[1:], strict=True)):
        pair = _duckdb(table, on_duckdb), _spark(frame, on_spark)
        assert _equal(*pair), (ROWS[row], pair)


@pytest.mark.parametrize("workload", CUT)
def test_texts_of_any_language_are_cut_alike(workload: str, spark: Any) -> None:
    """A right engine is not called wrong on a replayed text in Turkish or Greek."""
    columns = {"text": "string", "message": "string"}
    rows = [(text, text) for text in FOREIGN]
    table = pa.table({name: pa.array(FOREIGN, pa.string()) for name in columns})
    on_duckdb = expressions.to_duckdb(CUT[workload], columns)
    frame = spark.createDataFrame(rows, "text string, message string")
    found = _spark(frame, f"SELECT {_braced(CUT[workload])} AS x FROM {{edge}}")
    assert found != "stopped"
    assert _equal(_duckdb(table, f"SELECT {on_duckdb} AS x FROM edge"), found)


@pytest.mark.parametrize("expression", [log_processing.TIME, log_processing.STATUS], ids=["time", "status"])
def test_lines_with_escaped_quotes_are_read_alike(expression: str, spark: Any) -> None:
    """Backslashes go through two dialects of SQL; a line that is long is as good as a short one."""
    requests = ["GET /", r"a \"q\" b", "a\\", r"a\\", r"a\\\"", r'a\\" 200 1 "', r"\x16\x03", r"\"" * 20_000]
    lines = [None, "", *(f'h - - [07/Mar/2004:16:05:49 -0800] "{each}" 401 1' for each in requests)]
    seen = expression if expression == log_processing.STATUS else f"unix_micros({expression})"
    on_duckdb = expressions.to_duckdb(seen, {"line": "string"})
    expected = _duckdb(pa.table({"line": pa.array(lines, pa.string())}), f"SELECT {on_duckdb} AS x FROM edge")
    assert isinstance(expected, list)
    assert sum(value is not None for (value,) in expected) == 7
    frame = spark.createDataFrame([(line,) for line in lines], "line string")
    assert _equal(expected, _spark(frame, f"SELECT {_braced(seen)} AS x FROM {{edge}}"))


@pytest.mark.parametrize("expression", AGGREGATES)
def test_aggregates_agree(expression: str, frames: list[Any], tables: list[pa.Table]) -> None:
    """An aggregate has the same type and values on both engines, over groups with nulls, one row, and extremes."""
    on_spark = f"SELECT {expression} AS x FROM {{edge}} GROUP BY g ORDER BY g"
    on_duckdb = f"SELECT {_on_duckdb(expression)} AS x FROM edge GROUP BY g ORDER BY g"
    type_ = expressions.check(expression, COLUMNS, "test")
    assert frames[0].sparkSession.sql(on_spark, edge=frames[0]).dtypes == [("x", type_)]
    pair = _duckdb(tables[0], on_duckdb), _spark(frames[0], on_spark)
    assert _equal(*pair), pair


def test_sum_overflow_stops_both(frames: list[Any], tables: list[pa.Table]) -> None:
    """A sum beyond the largest bigint stops both engines; it never wraps around."""
    checked = expressions.checked("sum(b)", {"b": "bigint"}, "test")
    table = pa.table({"b": pa.array([LONG, 1], pa.int64())})
    frame = frames[0].sparkSession.createDataFrame([(LONG,), (1,)], "b bigint")
    assert _duckdb(table, f"SELECT {checked.duckdb} FROM edge") == "stopped"
    assert _spark(frame, "SELECT sum(b) FROM {edge}") == "stopped"


def test_every_allowed_function_is_compared() -> None:
    """No function is allowed that is not compared above."""
    words = " ".join(VALUES + AGGREGATES)
    assert [name for name in sorted(FUNCTIONS) if f"{name}(" not in words] == []
