"""Values of any nested type: what differs in form alone matches, and one changed leaf is wrong."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import EngineError
from streamgauge.diff.compare import Counts
from streamgauge.results.run import Verification
from tests.unit.helpers_duckdb import compare_tables, duckdb_session

Shape = tuple[Any, ...]
"""A type: ("list", element), ("struct", fields), ("map", key, value), or a plain one by name."""

DAY = datetime(2026, 1, 1)
PLAIN: dict[str, tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any], Any]] = {
    "int": (pa.int64(), pa.int16(), st.integers(-9, 9), 77),
    "float": (pa.float64(), pa.float64(), st.floats(-1e300, 1e300, allow_subnormal=False), 7.25e305),
    "not finite": (pa.float64(), pa.float64(), st.sampled_from([float("nan"), float("inf"), 0.0]), 7.5),
    "decimal": (pa.decimal128(6, 2), pa.decimal128(38, 4), st.decimals(-9, 9, places=2), Decimal("7.77")),
    "decimal and float": (pa.decimal128(6, 2), pa.float64(), st.decimals(-9, 9, places=2), Decimal("7.77")),
    "time": (
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        st.integers(0, 9).map(lambda us: DAY + timedelta(microseconds=us)),
        DAY + timedelta(days=7),
    ),
    "text": (pa.string(), pa.string(), st.text("ab ,]'\"\\\0", max_size=3), "other"),
    "bytes": (pa.binary(), pa.binary(), st.binary(max_size=2), b"other"),
    "date": (pa.date32(), pa.date32(), st.integers(0, 9).map(lambda n: date(2026, 1, 1 + n)), date(2027, 1, 1)),
    "bool": (pa.bool_(), pa.bool_(), st.just(False), True),
}
"""Name to (type expected, type received, values, a value that is none of them)."""
KEYS = st.sampled_from([("int",), ("text",), ("time",), ("decimal",), ("whole float",)])
PLAIN["whole float"] = (pa.float64(), pa.float64(), st.integers(-9, 9).map(float), 77.0)
SHAPES = st.recursive(
    st.sampled_from([(name,) for name in PLAIN]),
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("struct"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("map"), KEYS, inner),
    ),
    max_leaves=6,
)


def _named(fields: list[Shape]) -> dict[str, Shape]:
    return {f"it's {number}": field for number, field in enumerate(fields)}


def _type(shape: Shape, came: bool) -> pa.DataType:
    match shape:
        case ("list", element):
            return pa.list_(_type(element, came))
        case ("struct", fields):  # in another order where they came
            of = [(name, _type(field, came)) for name, field in _named(fields).items()]
            return pa.struct(of[::-1] if came else of)
        case ("map", key, value):
            return pa.map_(_type(key, came), _type(value, came))
    return PLAIN[shape[0]][came]


def _values(shape: Shape) -> st.SearchStrategy[Any]:
    match shape:
        case ("list", element):
            values: st.SearchStrategy[Any] = st.lists(_values(element), max_size=3)
        case ("struct", fields):
            values = st.fixed_dictionaries({name: _values(field) for name, field in _named(fields).items()})
        case ("map", key, value):
            values = st.dictionaries(PLAIN[key[0]][2], _values(value), max_size=3)
        case _:
            values = PLAIN[shape[0]][2]
    return st.none() | values


def _in_another_form(shape: Shape, value: Any) -> Any:
    """The same: floats off in their last places, maps in another order, times with a zone."""
    if value is None:
        return None
    match shape:
        case ("list", element):
            return [_in_another_form(element, each) for each in value]
        case ("struct", fields):
            return {name: _in_another_form(field, value[name]) for name, field in _named(fields).items()}
        case ("map", key, of):
            return [(_in_another_form(key, each), _in_another_form(of, value[each])) for each in value][::-1]
        case ("float" | "whole float",):
            return value * (1 + 1e-12)
        case ("decimal and float",):
            return float(value)
        case ("time",):
            return value.replace(tzinfo=UTC)
    return value


def _plain(shape: Shape, value: Any) -> Any:
    """As Arrow takes it: maps as pairs."""
    if value is None:
        return None
    match shape:
        case ("list", element):
            return [_plain(element, each) for each in value]
        case ("struct", fields):
            return {name: _plain(field, value[name]) for name, field in _named(fields).items()}
        case ("map", _, of):
            return [(key, _plain(of, each)) for key, each in value.items()]
    return value


def _some(shape: Shape) -> Any:
    """A value that no other one is like."""
    match shape:
        case ("list", element):
            return [_some(element)]
        case ("struct", fields):
            return {name: _some(field) for name, field in _named(fields).items()}
        case ("map", key, value):
            return {_some(key): _some(value)}
    return PLAIN[shape[0]][3]


@st.composite
def _changed(draw: st.DrawFn, shape: Shape, value: Any) -> Any:
    """The value with one change in it, at any depth: a leaf, a null where none was or the reverse, an element more."""
    if value is None:
        return draw(st.sampled_from([_some(shape), _empty(shape)]))
    if draw(st.integers(0, 4)) == 0:
        return None
    match shape:
        case ("list", element):
            if not value or draw(st.booleans()):
                return [*value, draw(st.sampled_from([None, _some(element)]))]
            place = draw(st.integers(0, len(value) - 1))
            return [*value[:place], draw(_changed(element, value[place])), *value[place + 1 :]]
        case ("struct", fields):
            name, field = draw(st.sampled_from(list(_named(fields).items())))
            return value | {name: draw(_changed(field, value[name]))}
        case ("map", key, of):
            if not value or draw(st.booleans()):
                return value | {_some(key): None}
            name = draw(st.sampled_from(list(value)))
            return value | {name: draw(_changed(of, value[name]))}
    return _some(shape)


def _empty(shape: Shape) -> Any:
    """What is easily taken for null."""
    match shape:
        case ("list", _):
            return []
        case ("struct", fields):
            return dict.fromkeys(_named(fields))
        case ("map", _, _):
            return {}
    return _some(shape)


OPEN: list[duckdb.DuckDBPyConnection] = []


@pytest.fixture(scope="module", autouse=True)
def _database() -> Iterator[None]:
    with duckdb_session() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        OPEN.append(connection)
        yield
        OPEN.clear()


def _compare(shape: Shape, expected: list[Any], came: list[Any], by_value: bool = False) -> Counts:
    """Rows of a column of that shape, told apart by a number, or by the value itself."""
    keys = list(range(len(expected)))
    sides = [
        pa.table({"k": keys, "v": pa.array([_plain(shape, each) for each in expected], _type(shape, False))}),
        pa.table({"k": keys, "v": pa.array([_in_another_form(shape, each) for each in came], _type(shape, True))}),
    ]
    (con,) = OPEN
    names = ("v", "k") if by_value else ("k", "v")
    comparison = compare_tables(con, sides[0], sides[1], names[:1], names[1:])
    Verification(judged=True, independent=True, reference="test", **comparison.as_dict()).model_dump_json()
    return comparison


CASES = SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), _values(shape), _values(shape)))


@given(case=CASES)
def test_what_differs_in_form_alone_matches(case: tuple[Shape, Any, Any]) -> None:
    """Last places of floats, widths, scales, zones, the order of maps and of fields; null at every level."""
    shape, *values = case
    assert _compare(shape, values, values) == Counts(2, matched=2)


@given(data=st.data(), case=CASES)
def test_one_changed_leaf_is_wrong(data: st.DataObject, case: tuple[Shape, Any, Any]) -> None:
    """However deep it lies, and whether the column has floats, which are joined, or not, which are hashed."""
    shape, first, second = case
    comparison = _compare(shape, [first, second], [first, data.draw(_changed(shape, second))])
    assert (comparison.matched, comparison.wrong) == (1, 1)
    assert comparison.examples[0]["expected"] != comparison.examples[0]["received"]


ALIKE_TO_DUCKDB = [
    ([], None),
    ([None], []),
    ([None], None),
    ([[1], [2]], [[1, 2]]),
    ([[1, 2], []], [[1], [2]]),
    ([None, [1]], [[], [1]]),
]


@pytest.mark.parametrize(("expected", "came"), ALIKE_TO_DUCKDB)
def test_what_duckdb_hashes_alike_is_wrong(expected: Any, came: Any) -> None:
    """Lists whose hashes are equal, or were in some version, and which are not."""
    deep = any(isinstance(each, list) for each in (expected or came or []))
    shape = ("list", ("list", ("int",))) if deep else ("list", ("int",))
    assert _compare(shape, [expected], [came]).wrong == 1


def test_nested_values_may_tell_results_apart() -> None:
    """A session's window is one; examples name what is missing by it, in times that can be read."""
    window = ("struct", [("time",), ("time",)])
    values = [{"it's 0": DAY, "it's 1": DAY + timedelta(seconds=n)} for n in range(3)]
    assert _compare(window, values, values, by_value=True) == Counts(3, matched=3)
    comparison = _compare(window, values, [*values[:2], values[0]], by_value=True)
    assert (comparison.matched, comparison.missing, comparison.duplicate) == (2, 1, 1)
    assert comparison.examples[0]["v"]["it's 1"] == "2026-01-01T00:00:02+00:00"


def test_keys_of_a_map_have_the_tolerance_of_floats() -> None:
    """Their order is then none to rely on: what stands beside the float would decide it."""
    con, type_ = OPEN[0], pa.map_(pa.struct([("x", pa.float64()), ("y", pa.int64())]), pa.int64())
    sides = [
        pa.table({"k": [1], "v": pa.array([[({"x": x, "y": 2}, 5), ({"x": 1.0, "y": 1}, last)]], type_)})
        for x, last in ((1.0, 6), (1.0 - 1e-12, 6), (1.0, 7))
    ]
    assert compare_tables(con, sides[0], sides[1], ["k"], ["v"]) == Counts(1, matched=1)
    assert compare_tables(con, sides[0], sides[2], ["k"], ["v"]).wrong == 1


@pytest.mark.parametrize(
    ("expected", "came", "message"),
    [
        ("{'a': 1, 'b': 2}", "{'a': 1}", "'v' as struct<a: int>, and struct<a: int, b: int> is expected"),
        ("[{'a': 1}]", "[{'a': 'x'}]", "'v.element.a' as string, and int is expected"),
        ("map{'k': 1}", "map{1: 1}", "'v.key' as int, and string is expected"),
        ("[1]", "1", "'v' as int, and array<int> is expected"),
        ("union_value(a := 1)", "union_value(a := 1)", "'v' as union, which cannot be compared"),
    ],
)
def test_types_that_differ_are_named_by_their_place(expected: str, came: str, message: str) -> None:
    (con,) = OPEN
    sides = [con.sql(f"SELECT 1 AS k, {each} AS v").to_arrow_table() for each in (expected, came)]
    with pytest.raises(EngineError, match=re.escape(message)):
        compare_tables(con, sides[0], sides[1], ["k"], ["v"])
