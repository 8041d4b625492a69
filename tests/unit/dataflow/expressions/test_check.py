"""Expressions: what is refused and how, types, and the DuckDB texts of aggregates."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import ExpressionError, InputError
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.expressions.types import DUCKDB_TYPES
from tests.unit.helpers_refusals import problem_of

COLUMNS = {"price": "int", "total": "bigint", "d": "double", "s": "string", "at": "timestamp", "ok": "boolean"}

REFUSED = [
    ("prise + 1", "column prise at character 1", "price?"),
    ("price + prise", "column prise at character 9", "price (int)"),
    ("t.price", "column t.price", "price"),
    ("Price", "column Price", "price?"),
    ("1 + nosuch(price)", "function nosuch at character 5", "one of abs"),
    ("starts_with(s, 'a')", "function starts_with at character 1", "startswith?"),
    ("sum(price) over (partition by s)", "function over", "one of"),
    ("price / 2", "division", "try_divide"),
    ("price div 2", "division", "try_divide"),
    ("cast(s as int)", "cast stops", "try_cast"),
    ("try_cast(at as string)", "from timestamp to string", "one of"),
    ("try_cast(price as smallint)", "from int to smallint", "one of"),
    ("price * 1.5", "number 1.5 is a decimal at character 9".replace(" at", " (at") + ")", "1.5e0"),
    ("99999999999999999999", "above the largest bigint", "1e20"),
    ("price +", "cannot be read at character 7", "one Spark SQL expression"),
    ("price price price", "cannot be read", "one Spark SQL expression"),
    ("", "cannot be read", "one Spark SQL expression"),
    ("'open", "cannot be read", "one Spark SQL expression"),
    ("price; drop table x", "not allowed", "operators"),
    ("price as p", "alias is not allowed", "operators"),
    ("(select 1)", "not allowed", "operators"),
    ("price in (select 1)", "not allowed", "operators"),
    ("price[0]", "a missing element", "try_element_at"),
    ("s ilike 'a'", "ilike is not allowed", "operators"),
    ("'it''s'", "two adjacent strings at character 1", "concat"),
    ("*", "is not a value", "name a column"),
    ("count(distinct s)", "distinct", "count(*)"),
    ("sum(distinct price)", "distinct", "count(*)"),
    ("count(price, s)", "count takes one argument", "count(*)"),
    ("sum(s)", "sum takes", "sum a number"),
    ("avg(ok)", "avg takes", "average of a number"),
    ("sum(price) + price", "price at character 14 stands outside", "keys"),
    ("sum(max(price))", "inside another", "second aggregate"),
    ("d % 2", "% takes", "whole numbers"),
    ("ceil(price)", "ceil takes double, not int", "leave ceil away"),
    ("upper(price)", "upper takes string, not int", "try_cast"),
    ("s || price", "takes string, not int", "try_cast"),
    ("trim(both 'x' from s)", "trim takes one argument", "trim(x)"),
    ("substring(s, 0, 2)", "start of 1 or more", "substring(x, 1, 3)"),
    ("substring(s, -1)", "start of 1 or more", "substring(x, 1, 3)"),
    ("substring(s, price)", "start of 1 or more", "substring(x, 1, 3)"),
    (r"s like 'a\\_%'", "without backslash", "contains"),
    ("s like s", "literal pattern", "contains"),
    ("price = '5'", "mixes int and string", "try_cast"),
    ("coalesce(price, s)", "mixes int and string", "try_cast"),
    ("case when ok then price else s end", "mixes int and string", "try_cast"),
    ("if(ok, 1, 'a')", "mixes int and string", "try_cast"),
    ("s + 1", "not string", "numbers on both sides"),
    ("ok + 1", "not boolean", "numbers on both sides"),
    ("price and ok", "not int", "comparison"),
    ("not price", "not int", "comparison"),
    ("at - at", "not timestamp", "numbers"),
    ("null", "not a type of a flow", "int, bigint"),
]


@pytest.mark.parametrize(("expression", "rule", "way_out"), REFUSED, ids=[each[0] for each in REFUSED])
def test_refusal_names_rule_and_way_out(expression: str, rule: str, way_out: str) -> None:
    """What is not allowed is refused with the setting, the rule, the text itself and a way out."""
    problem = problem_of(expressions.check, expression, COLUMNS, "where 'big'")
    assert (problem.setting, problem.got) == ("where 'big'", expression)
    assert rule in problem.rule
    assert way_out in problem.way_out


TYPES = [
    ("price", "int"), ("price + 1", "int"), ("price + total", "bigint"), ("price * 2e0", "double"), ("at", "timestamp"),
    ("3000000000", "bigint"), ("10L", "bigint"), ("1.5D", "double"), ("price > 1", "boolean"), ("s || 'x'", "string"),
    ("try_divide(price, 2)", "double"), ("length(s)", "int"), ("ceil(d)", "bigint"),
    ("coalesce(price, total)", "bigint"),
    ("sum(price)", "bigint"), ("sum(total)", "bigint"), ("sum(d)", "double"), ("count(*)", "bigint"),
    ("avg(price)", "double"), ("max(at)", "timestamp"), ("min(s)", "string"), ("sum(price) * 2", "bigint"),
    ("try_cast(s as double)", "double"), ("case when ok then 1 end", "int"), ("price is null", "boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "type_"), TYPES)
def test_type_is_sparks(expression: str, type_: str) -> None:
    """An expression has the type it has on Spark, by its Spark name."""
    assert expressions.check(expression, COLUMNS, "test") == type_


def test_columns_of_names_every_column_once() -> None:
    """The columns that an expression reads are its names, whatever stands around them."""
    assert expressions.columns_of("case when ok then price + total else price end") == {"ok", "price", "total"}
    assert expressions.columns_of("count(*)") == set()
    assert expressions.columns_of("`odd name` + 1") == {"odd name"}
    with pytest.raises(ExpressionError):  # the parser's own error does not come out
        expressions.columns_of("price +")


def test_sum_of_whole_numbers_is_cast_back() -> None:
    """DuckDB's sum is wider than Spark's, so it is cast; a sum of doubles is not."""
    assert expressions.to_duckdb("sum(price)", COLUMNS) == 'CAST(SUM("price") AS BIGINT)'
    assert expressions.to_duckdb("sum(d)", COLUMNS) == 'SUM("d")'


def test_parts_of_one_aggregate() -> None:
    """One sum, count, min or max can be computed in parts; anything more cannot."""
    actual = {
        e: expressions.checked(e, COLUMNS, "t") for e in ("sum(price)", "count(*)", "max(d)", "avg(d)", "sum(d)+1")
    }
    assert (actual["sum(price)"].partial, actual["count(*)"].partial) == ('SUM("price")', "COUNT(*)")
    assert [each.combine for each in actual.values()] == ["sum", "sum", "max", None, None]


def test_every_aggregate_is_taken_over_the_window() -> None:
    """The running form puts the window on each aggregate, and on nothing else."""
    text = expressions.checked("sum(price) * 2 + count(*)", COLUMNS, "t").over
    assert text == 'CAST(SUM("price") OVER running AS BIGINT) * 2 + COUNT(*) OVER running'


def test_names_are_quoted() -> None:
    """A column may be called anything; it never becomes SQL."""
    odd = 'a"b; drop'
    assert expressions.to_duckdb(f"`{odd}` + 1", {odd: "int"}) == '"a""b; drop" + 1'
    assert expressions.check("`order`", {"order": "int"}, "t") == "int"


@given(st.text(max_size=30))
def test_any_text_is_refused_or_typed(text: str) -> None:
    """No text whatever lets anything but an InputError out."""
    with contextlib.suppress(InputError):
        assert expressions.check(text, COLUMNS, "test") in DUCKDB_TYPES
