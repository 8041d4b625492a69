"""Every allowed function and operator on its edge rows, on DuckDB, with answers worked out by hand (Spark's)."""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import duckdb
import pytest

from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.expressions.functions import FUNCTIONS
from streamgauge.dataflow.expressions.types import DUCKDB_TYPES
from tests.unit.helpers_duckdb import duckdb_session

COLUMNS = {"a": "int", "b": "bigint", "d": "double", "s": "string", "t": "string", "ok": "boolean", "ts": "timestamp"}
INT, LONG = 2**31 - 1, 2**63 - 1
STOPPED = "stopped"

BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999)
CLF = "unix_micros(try_to_timestamp(s, 'dd/MMM/yyyy:HH:mm:ss Z'))"

# (expression, values of the columns that it reads, what it gives)
EDGES: list[tuple[str, dict[str, Any], Any]] = [
    ("a + 1", {"a": None}, None), ("a + 1", {"a": INT}, STOPPED), ("a - 1", {"a": -INT - 1}, STOPPED),
    ("a * 2", {"a": -3}, -6), ("b + 1", {"b": LONG}, STOPPED), ("-a", {"a": -INT - 1}, STOPPED),
    ("-d", {"d": 0.5}, -0.5),
    ("a % 3", {"a": -7}, -1), ("a % 3", {"a": None}, None), ("a % b", {"a": 5, "b": 0}, STOPPED),
    ("a % b", {"a": -INT - 1, "b": -1}, 0), ("mod(a, 3)", {"a": 7}, 1),
    ("try_divide(a, b)", {"a": 1, "b": 0}, None), ("try_divide(a, b)", {"a": 1, "b": 2}, 0.5),
    ("try_divide(d, 0)", {"d": 1.0}, None), ("try_divide(d, 2)", {"d": None}, None),
    ("a = b", {"a": None, "b": None}, None), ("a <=> b", {"a": None, "b": None}, True), ("a <> 1", {"a": 2}, True),
    ("a < 1", {"a": None}, None), ("a >= b", {"a": 1, "b": 1}, True), ("d > 1", {"d": math.nan}, True),
    ("ok and a > 0", {"ok": False, "a": None}, False), ("ok or a > 0", {"ok": None, "a": 1}, True),
    ("not ok", {"ok": None}, None), ("ok is true", {"ok": None}, False), ("a is null", {"a": None}, True),
    ("case when a > 0 then 'up' end", {"a": None}, None), ("case a when 1 then 2 else 3 end", {"a": None}, 3),
    ("if(ok, 1, 2)", {"ok": None}, 2), ("coalesce(a, b, 7)", {"a": None, "b": None}, 7), ("ifnull(a, 1)", {"a": 2}, 2),
    ("nvl(s, '')", {"s": None}, ""), ("nullif(a, 0)", {"a": 0}, None), ("greatest(a, b)", {"a": None, "b": 3}, 3),
    ("least(a, b)", {"a": None, "b": None}, None), ("least(s, t)", {"s": "b", "t": ""}, ""),
    ("abs(a)", {"a": -INT - 1}, STOPPED), ("abs(d)", {"d": -0.5}, 0.5),
    ("ceil(d)", {"d": -0.5}, 0), ("ceil(d)", {"d": 1e30}, STOPPED), ("ceiling(d)", {"d": math.nan}, 0),
    ("floor(d)", {"d": -0.5}, -1), ("floor(d)", {"d": None}, None),
    ("upper(s)", {"s": "aä"}, "AÄ"), ("lower(s)", {"s": ""}, ""), ("ucase(s)", {"s": None}, None),
    ("lcase(s)", {"s": "AB"}, "ab"), ("length(s)", {"s": "äb"}, 2), ("char_length(s)", {"s": ""}, 0),
    ("concat(s, t)", {"s": "a", "t": None}, None), ("s || t", {"s": "", "t": "b"}, "b"),
    ("trim(s)", {"s": "  a\t "}, "a\t"), ("ltrim(s)", {"s": "  a "}, "a "), ("rtrim(s)", {"s": "  a "}, "  a"),
    ("substring(s, 2, 2)", {"s": "abcd"}, "bc"), ("substr(s, 9)", {"s": "abc"}, ""),
    ("substring(s, 1, 0)", {"s": "a"}, ""),
    ("s like 'a%'", {"s": ""}, False), ("s like ''", {"s": ""}, True), ("s not like '_'", {"s": "ab"}, True),
    ("startswith(s, t)", {"s": "a", "t": ""}, True), ("endswith(s, 'b')", {"s": None}, None),
    ("contains(s, '%')", {"s": "ab"}, False),
    ("a in (1, null)", {"a": 2}, None), ("a in (1, 2)", {"a": 2}, True), ("a not in (1)", {"a": None}, None),
    ("a between 1 and 2", {"a": 2}, True), ("a between 2 and 1", {"a": 2}, False),
    ("try_cast(s as int)", {"s": " 12 "}, 12), ("try_cast(s as int)", {"s": "2.5"}, None),
    ("try_cast(s as int)", {"s": "1_000"}, None), ("try_cast(s as int)", {"s": "99999999999"}, None),
    ("try_cast(s as bigint)", {"s": "-5"}, -5), ("try_cast(s as double)", {"s": "1e3"}, 1000.0),
    ("try_cast(s as double)", {"s": "x"}, None), ("try_cast(d as int)", {"d": 2.9}, 2),
    ("try_cast(d as int)", {"d": -2.9}, -2),
    ("try_cast(d as int)", {"d": math.nan}, None), ("try_cast(d as bigint)", {"d": 1e20}, None),
    ("try_cast(b as int)", {"b": LONG}, None), ("try_cast(ok as int)", {"ok": True}, 1),
    ("try_cast(ok as string)", {"ok": False}, "false"), ("try_cast(b as string)", {"b": -1}, "-1"),
    ("cast(5 as bigint) + a", {"a": 1}, 6),
    ("split(s, ',')", {"s": "a,b,"}, ["a", "b", ""]), ("split(s, ',')", {"s": ""}, [""]),
    ("split(s, ',')", {"s": None}, None), ("split(s, '[,;]+')", {"s": ",a;;b"}, ["", "a", "b"]),
    ("split(s, '\\\\s')", {"s": "a\vb c"}, ["a", "b", "c"]),
    ("regexp_extract(s, '([a-z])(x)?', 2)", {"s": "abc"}, ""), ("regexp_extract(s, '([a-z])')", {"s": "1"}, ""),
    ("regexp_extract(s, '[a-z]', 0)", {"s": None}, None), ("regexp_extract(s, '(a*)')", {"s": "b"}, ""),
    ("regexp_extract_all(s, '[a-z]+', 0)", {"s": "ab c"}, ["ab", "c"]),
    ("regexp_extract_all(s, '[a-z]+', 0)", {"s": ""}, []), ("regexp_extract_all(s, '(a)')", {"s": None}, None),
    ("regexp_extract_all(s, '([a-z])(x)?', 2)", {"s": "abx"}, ["", "x"]),
    ("regexp_replace(s, '[^a-z]+', ' ')", {"s": "a,.b"}, "a b"), ("regexp_replace(s, 'a', '')", {"s": None}, None),
    ("s rlike '^a.c\\\\z'", {"s": "a\rc"}, False), ("s rlike '^a.c\\\\z'", {"s": "abc"}, True),
    ("regexp_like(s, 'b')", {"s": None}, None), ("s rlike r'\\d'", {"s": "a1"}, True),
    ("size(split(s, ','))", {"s": None}, None), ("size(array(a, 1))", {"a": None}, 2),
    ("try_element_at(split(s, ','), 2)", {"s": "a"}, None), ("try_element_at(split(s, ','), 1)", {"s": "a,b"}, "a"),
    ("array_contains(array(a, 1), 2)", {"a": None}, None), ("array_contains(array(a, 1), 2)", {"a": 2}, True),
    ("array_contains(array(a, 1), 2)", {"a": 3}, False),
    ("array_repeat(s, b)", {"s": "x", "b": 2}, ["x", "x"]), ("size(array_repeat(a, b))", {"a": 1, "b": -2}, 0),
    ("array_repeat(s, a)", {"s": "x", "a": None}, None),
    ("get_json_object(s, '$.a.b')", {"s": '{"a":{"b":"x"}}'}, "x"),
    ("get_json_object(s, '$.a')", {"s": '{"a":'}, None), ("get_json_object(s, '$.a')", {"s": '{"a":null}'}, None),
    ("get_json_object(s, '$.a')", {"s": '{"a":true}'}, "true"), ("get_json_object(s, '$.a')", {"s": '{"a":-5}'}, "-5"),
    ("get_json_object(s, '$.a')", {"s": None}, None), ("get_json_object(s, '$.b')", {"s": '{"a":1}'}, None),
    ("replace(s, 'a', '')", {"s": "banana"}, "bnn"), ("replace(s, 'a', t)", {"s": "a", "t": None}, None),
    ("sqrt(d)", {"d": -1.0}, math.nan), ("sqrt(a)", {"a": 4}, 2.0), ("sqrt(d)", {"d": None}, None),
    ("unix_seconds(ts)", {"ts": BEFORE_1970}, -1), ("unix_millis(ts)", {"ts": BEFORE_1970}, -1),
    ("unix_micros(ts)", {"ts": BEFORE_1970}, -1), ("unix_micros(ts)", {"ts": None}, None),
    ("unix_micros(timestamp_seconds(b))", {"b": -1}, -1_000_000), ("timestamp_seconds(b)", {"b": LONG}, STOPPED),
    ("unix_micros(timestamp_millis(a))", {"a": -1}, -1000), ("unix_micros(timestamp_micros(b))", {"b": -1}, -1),
    ("unix_micros(date_trunc('minute', ts))", {"ts": BEFORE_1970}, -60_000_000),
    ("unix_micros(date_trunc('day', ts))", {"ts": BEFORE_1970}, -86_400_000_000),
    (CLF, {"s": "07/Mar/2004:16:05:49 -0800"}, 1_078_704_349_000_000), (CLF, {"s": "30/Feb/2004:16:05:49 -0800"}, None),
    (CLF, {"s": "7/Mar/2004:16:05:49 -0800"}, None), (CLF, {"s": "07/Mar/2004:24:05:49 +0000"}, None),
    (CLF, {"s": None}, None), (CLF, {"s": "07/Mar/2004:16:05:49 -0800 "}, None),
]  # fmt: skip

# (aggregate, values of a column, what it gives)
AGGREGATES: list[tuple[str, str, list[Any], Any]] = [
    ("count(*)", "a", [None, 1], 2), ("count(a)", "a", [None, 1], 1), ("sum(a)", "a", [INT, INT], 2 * INT),
    ("sum(a)", "a", [None], None), ("sum(b)", "b", [LONG, 1], STOPPED), ("sum(d)", "d", [0.5, -0.5], 0.0),
    ("avg(a)", "a", [1, 2, None], 1.5), ("avg(b)", "b", [None], None), ("min(a)", "a", [None, -1, 3], -1),
    ("max(s)", "s", ["", "a", None], "a"),
    ("max(d)", "d", [1.0, math.nan], math.nan), ("max(a) - min(a)", "a", [1, 5], 4),
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_session() as connection:
        yield connection


def _run(con: duckdb.DuckDBPyConnection, columns: dict[str, list[Any]], expression: str) -> Any:
    text = check.to_duckdb(expression, COLUMNS)
    rows = max(len(values) for values in columns.values())
    typed = {name: columns.get(name, [None] * rows) for name in COLUMNS}
    lists = ", ".join(f"unnest($%s::{DUCKDB_TYPES[COLUMNS[name]]}[]) AS {name}" % name for name in typed)
    try:
        return con.execute(f"SELECT {text} FROM (SELECT {lists})", typed).fetchone()[0]
    except duckdb.Error:
        return STOPPED


def _same(got: Any, wanted: Any) -> bool:
    both_nan = isinstance(got, float) and isinstance(wanted, float) and math.isnan(got) and math.isnan(wanted)
    return both_nan or (type(got) is type(wanted) and got == wanted)


@pytest.mark.parametrize(("expression", "row", "wanted"), EDGES, ids=[f"{e[0]} {list(e[1].values())}" for e in EDGES])
def test_edge_row(con: duckdb.DuckDBPyConnection, expression: str, row: dict[str, Any], wanted: Any) -> None:
    """A function gives on an edge row what it gives on Spark, or stops where Spark stops."""
    actual = _run(con, {name: [value] for name, value in row.items()}, expression)
    assert _same(actual, wanted), actual


@pytest.mark.parametrize(("expression", "column", "values", "wanted"), AGGREGATES)
def test_edge_group(
    con: duckdb.DuckDBPyConnection, expression: str, column: str, values: list[Any], wanted: Any
) -> None:
    """An aggregate gives over edge values what it gives on Spark, or stops where Spark stops."""
    actual = _run(con, {column: values}, expression)
    assert _same(actual, wanted), actual


def test_every_allowed_function_has_an_edge_row() -> None:
    """A function on the allowlist without an edge row here is an error."""
    words = " ".join([e[0] for e in EDGES] + [a[0] for a in AGGREGATES])
    assert [name for name in sorted(FUNCTIONS) if f"{name}(" not in words] == []
