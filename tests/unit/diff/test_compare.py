"""Every kind of fault is planted in what arrived, and is counted exactly; right answers are found right."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import EngineError
from streamgauge.diff import compare as answers
from streamgauge.diff import sql
from streamgauge.diff.compare import Counts, compare
from streamgauge.results.run import Verification
from tests.unit.helpers_duckdb import compare_tables, duckdb_session

Row = dict[str, Any]
IDS = ("event_id",)
FIELDS = ("price", "event_time")


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def _rows(count: int = 100) -> list[Row]:
    return [{"price": i % 7, "event_time": 1000 + i, "event_id": i} for i in range(count)]


def _table(rows: list[Row], **types: pa.DataType) -> pa.Table:
    names = rows[0].keys() if rows else ("price", "event_time", "event_id")
    return pa.table({n: pa.array([row[n] for row in rows], types.get(n, pa.int64())) for n in names})


def _came(rows: list[Row]) -> list[Row]:
    """As the recorder has them: with an emission time."""
    return [row | {"emission_time": row["event_time"] + 50} for row in rows]


def _compare(con: duckdb.DuckDBPyConnection, expected: list[Row], came: list[Row], **rules: Any) -> Counts:
    wanted = _table(expected, __due=pa.bool_())
    none = wanted.slice(0, 0).append_column("emission_time", pa.array([], pa.int64()))
    got = _table(_came(came)) if came else none
    return compare_tables(con, wanted, got, rules.pop("ids", IDS), rules.pop("fields", FIELDS), **rules)


def _numbers(counts: Counts) -> Counts:
    return replace(counts, examples=())


def test_equal_answers_match_without_a_join(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows in another order match, and nothing is joined."""
    monkeypatch.setattr(answers, "_joined", None)
    assert _compare(con, _rows(), _rows()[::-1]) == Counts(expected=100, matched=100)


@pytest.mark.parametrize("ids", [IDS, ("event_id", "event_time")], ids=["ranges", "hashes"])
@pytest.mark.parametrize("float_price", [False, True], ids=["whole", "floats"])
def test_each_fault_is_counted(con: duckdb.DuckDBPyConnection, ids: tuple[str, ...], float_price: bool) -> None:
    """Dropped, doubled, altered, invented and late rows, all at once, by each way of comparing."""
    came = _came(_rows())
    came[20]["price"] = 99
    came[30]["emission_time"] = 9_999
    invented = {"price": 1, "event_time": 5, "event_id": 4000, "emission_time": 60}
    came = [*came[3:], came[40], came[40], came[41], invented, invented]
    price = pa.float64() if float_price else pa.int64()
    wanted, got = _table(_rows(), price=price), _table(came, price=price)
    comparison = compare_tables(con, wanted, got, ids, FIELDS, deadline_us=9_000)
    assert _numbers(comparison) == Counts(100, matched=95, missing=3, extra=1, duplicate=4, wrong=1, late=1)
    assert {example["fault"] for example in comparison.examples} == {"missing", "extra", "duplicate", "wrong", "late"}


def test_nothing_arrived(con: duckdb.DuckDBPyConnection) -> None:
    """All is missing, and examples say what."""
    counts = _compare(con, _rows(), [])
    assert _numbers(counts) == Counts(100, missing=100)
    assert len(counts.examples) == answers.EXAMPLES_MAX
    first = counts.examples[0]
    assert (first["fault"], first["received"], len(first["expected"])) == ("missing", [], 1)


def _changed(**rows: Row) -> list[Row]:
    """The rows with changes in some, by the number in their name."""
    return [row | rows.get(f"row_{number}", {}) for number, row in enumerate(_rows())]


RIGHT = _rows()
ODD = [{"price": 0, "event_time": 1, "event_id": id_} for id_ in (-5, 2**62, None)]


@pytest.mark.parametrize(("expected", "came", "rules", "counts"), [
    ([], _rows(3), {}, Counts(extra=3)),
    ([], [], {}, Counts()),
    (RIGHT, RIGHT + ODD, {}, Counts(100, matched=100, extra=3)),
    (RIGHT, _changed(row_5={"event_time": 9_999}), {"required": "event_time < 2000"},
     Counts(100, matched=99, wrong=1)),
    (RIGHT, _changed(row_1={"price": 2}, row_2={"price": 1}), {}, Counts(100, matched=98, wrong=2)),
    (RIGHT, [*RIGHT, {"price": 50, "event_time": 1003, "event_id": 3}], {},
     Counts(100, matched=100, duplicate=1, conflicting=1)),
])  # fmt: skip
def test_counts(
    con: duckdb.DuckDBPyConnection, expected: list[Row], came: list[Row], rules: Any, counts: Counts
) -> None:
    """What arrived though nothing was expected is extra, as are ids that no plan gives (negative, huge, null). Lineage
    that was altered does not hide a judged row, and sums of hashes do not cancel out where two rows have each other's
    value. An identity that came twice, once right and once wrong, is matched, and has a conflicting duplicate.
    """
    assert _numbers(_compare(con, expected, came, **rules)) == counts


def test_a_lost_end_is_counted_by_ranges(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a range of ids of which nothing came, rows are missing without a join; the range at the border is joined."""
    monkeypatch.setattr(sql, "RANGE_BITS", 4)
    comparison = _compare(con, _rows(), [*_rows()[:50], _rows()[10]])
    assert _numbers(comparison) == Counts(100, matched=50, missing=50, duplicate=1)
    assert {example["fault"] for example in comparison.examples} == {"missing", "duplicate"} or len(
        comparison.examples
    ) == 10


def _windows(start: pa.DataType) -> pa.Table:
    """Results of 1000 users in three windows of 1 s; window starts are of the type `start`."""
    starts = pa.array([1_000_000 * (n // 1000) for n in range(3000)], pa.timestamp("us"))
    users, numbers = pa.array([*range(1000)] * 3), pa.array(range(3000))
    return pa.table({"user_id": users, "window_start": starts.cast(start), "n": numbers})


@pytest.mark.parametrize(
    "start", [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms")], ids=str
)
def test_lost_windows_are_counted_without_a_join(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, start: pa.DataType
) -> None:
    """Windows that never closed leave the others alone, also where engines write window starts in another type."""
    wanted, ids = (
        _windows(pa.int64() if start == pa.int64() else pa.timestamp("us", "UTC")),
        ("user_id", "window_start"),
    )
    got = _windows(start)
    wrong = got.set_column(2, "n", pa.array([-1, *range(1, 3000)], pa.int64()))
    comparison = compare_tables(con, wanted, wrong, ids, ("n",))
    assert _numbers(comparison) == Counts(3000, matched=2999, wrong=1)
    monkeypatch.setattr(answers, "_joined", None)
    comparison = compare_tables(con, wanted, got.slice(0, 2000), ids, ("n",))
    assert _numbers(comparison) == Counts(3000, matched=2000, missing=1000)


def test_only_judged_rows_must_be_there(con: duckdb.DuckDBPyConnection) -> None:
    """Outside the judged span rows may be missing or of another value, but never invented or doubled."""
    came = [row for row in _rows() if row["event_time"] != 1095]
    came[90]["price"] = 77
    assert _numbers(_compare(con, _rows(), came, required="event_time < 1090")) == Counts(90, matched=90)
    came += [came[91], {"price": 0, "event_time": 1099, "event_id": 7777}]
    faulty = _compare(con, _rows(), came, required="event_time < 1090")
    assert _numbers(faulty) == Counts(90, matched=90, extra=1, duplicate=1)


@pytest.mark.parametrize(("value", "shown"), [(float("nan"), "NaN"), (float("-inf"), "-Infinity")])
def test_numbers_that_json_lacks_are_texts_in_examples(
    con: duckdb.DuckDBPyConnection, value: float, shown: str
) -> None:
    """Both sides of a wrong row would be null otherwise."""
    ids = pa.array([1])
    expected = pa.table({"event_id": ids, "x": pa.array([value])})
    came = pa.table({"event_id": ids, "x": pa.array([2.5]), "emission_time": ids})
    (example,) = compare_tables(con, expected, came, IDS, ["x"]).examples
    assert (example["expected"], example["received"]) == ([{"x": shown}], [{"x": 2.5}])


def test_columns_that_differ_are_counted(con: duckdb.DuckDBPyConnection) -> None:
    """Each by the wrong rows that have another value there, over slices, too; rows that are missing are in none."""
    came = _rows()
    came[3]["price"] += 1
    came[4]["price"], came[4]["event_time"] = 99, 7
    found = _compare(con, _rows(), came[:90])
    assert (found.wrong, found.missing, dict(found.wrong_columns)) == (2, 10, {"price": 2, "event_time": 1})
    assert dict((found + found).wrong_columns) == {"price": 4, "event_time": 2}
    assert not _compare(con, _rows(), _rows()).wrong_columns


def _cancelling(con: duckdb.DuckDBPyConnection) -> tuple[list[int], list[int]]:
    """(two event ids, two prices) whose exchange neither the sum nor the xor of DuckDB's plain row hashes notices.

    The last column's hash is added to a row's without carry, so the exchange changes the bits in which the prices'
    hashes differ; where the ids' hashes agree in all of these, one row loses what the other gains.
    """
    of_price = next(iter(con.execute("SELECT hash(range::BIGINT) FROM range(1024)").fetchnumpy().values()))
    first, second = np.triu_indices(len(of_price), 1)
    nearest = np.argmin(np.bitwise_count(of_price[first] ^ of_price[second]))
    prices = [int(first[nearest]), int(second[nearest])]
    differing = of_price[prices[0]] ^ of_price[prices[1]]
    rows = con.execute("SELECT hash(range::BIGINT, 0::BIGINT) FROM range(200000) ORDER BY range").fetchnumpy()
    _, places, alike = np.unique(next(iter(rows.values())) & differing, return_index=True, return_inverse=True)
    again = int(np.flatnonzero(places[alike] != np.arange(len(alike)))[0])
    return [int(places[alike[again]]), again], prices


def test_values_exchanged_where_plain_hashes_cancel_out_are_wrong(con: duckdb.DuckDBPyConnection) -> None:
    """Rows whose once hashed values have equal sums and xors after an exchange: the hash of the hash tells."""
    ids, prices = _cancelling(con)
    right, exchanged = (
        [{"event_id": id_, "price": price, "event_time": 0} for id_, price in zip(ids, given, strict=True)]
        for given in (prices, prices[::-1])
    )
    plain = "SELECT sum(hash(event_id, price)), bit_xor(hash(event_id, price)) FROM "
    sums = []
    for rows in (right, exchanged):
        con.register("rows", _table(rows))
        sums.append(con.execute(plain + "rows").fetchall())
    con.unregister("rows")
    assert sums[0] == sums[1], "DuckDB combines columns otherwise now: is the outer hash still needed?"
    assert _numbers(_compare(con, right, exchanged, fields=("price",))) == Counts(2, wrong=2)


NUMBERS = [
    ("1.0::DOUBLE", "1.0 + 1e-12::DOUBLE", True),
    ("1.0::DOUBLE", "1.0 + 1e-6::DOUBLE", False),
    ("1e300::DOUBLE", "1e300 * (1 + 1e-12::DOUBLE)", True),
    ("0.0::DOUBLE", "-0.0::DOUBLE", True),
    ("0.0::DOUBLE", "1e-300::DOUBLE", False),
    ("'NaN'::DOUBLE", "'NaN'::DOUBLE", True),
    ("'NaN'::DOUBLE", "1.0::DOUBLE", False),
    ("'inf'::DOUBLE", "'inf'::DOUBLE", True),
    ("'inf'::DOUBLE", "1.0::DOUBLE", False),
    ("'inf'::DOUBLE", "'-inf'::DOUBLE", False),
    ("NULL::DOUBLE", "NULL::DOUBLE", True),
    ("NULL::DOUBLE", "0.0::DOUBLE", False),
    ("123456789012345678901.23::DECIMAL(38,2)", "123456789012345678901.23::DECIMAL(23,2)", True),
    ("123456789012345678901.23::DECIMAL(38,2)", "123456789012345678901.24::DECIMAL(38,2)", False),
    ("99999999999999999999999999999999999999::DECIMAL(38,0)", "0.5::DECIMAL(38,38)", False),
    ("1.50::DECIMAL(10,2)", "1.5::DECIMAL(38,6)", True),
    ("100::DECIMAL(10,0)", "100.00::DECIMAL(10,2)", True),
    ("100::DECIMAL(10,0)", "1.00::DECIMAL(10,2)", False),
    ("-0.10::DECIMAL(4,2)", "-0.1::DECIMAL(4,1)", True),
    ("0.00::DECIMAL(4,2)", "0::DECIMAL(4,0)", True),
    ("NULL::DECIMAL(4,2)", "NULL::DECIMAL(4,2)", True),
    ("NULL::DECIMAL(4,2)", "0::DECIMAL(4,2)", False),
    ("1.00::DECIMAL(10,2)", "(1 + 1e-12)::DOUBLE", True),
    ("(1 + 1e-6)::DOUBLE", "1.00::DECIMAL(10,2)", False),
]


@pytest.mark.parametrize(("wanted", "got", "same"), NUMBERS)
def test_numbers_match_within_their_tolerance(
    con: duckdb.DuckDBPyConnection, wanted: str, got: str, same: bool
) -> None:
    """That of floats is relative; infinities, NaN and null equal themselves alone. Decimals match to the last digit,
    whatever their scales; beside a double they are one.
    """
    con.execute(f"CREATE TABLE wanted AS SELECT 1 AS k, {wanted} AS x")
    con.execute(f"CREATE TABLE came AS SELECT 1 AS k, {got} AS x")
    comparison = compare(con, "wanted", "came", ["k"], ["x"])
    assert _numbers(comparison) == (Counts(1, matched=1) if same else Counts(1, wrong=1))
    json.dumps(comparison.as_dict())


def test_examples_can_be_read_and_written_as_json(con: duckdb.DuckDBPyConnection) -> None:
    """Windows in ISO 8601, bytes in hexadecimal; the counts fit a Verification."""
    con.execute("CREATE TABLE wanted AS SELECT make_timestamp(8000000) AS window_start, 'ab'::BLOB AS b")
    con.execute("CREATE TABLE came AS SELECT make_timestamp(8000000) AS window_start, 'zz'::BLOB AS b")
    comparison = compare(con, "wanted", "came", ["window_start"], ["b"])
    assert comparison.examples == (
        {
            "fault": "wrong",
            "window_start": "1970-01-01T00:00:08+00:00",
            "expected": [{"b": "6162"}],
            "received": [{"b": "7a7a"}],
        },
    )
    verification = Verification(judged=True, independent=True, reference="test", **comparison.as_dict())
    assert not verification.right
    assert '"7a7a"' in verification.model_dump_json()


PREFIXES = [{"k": k, "n": n, "event_time": 10 * n} for k in (1, 2) for n in (1, 2, 3)]


def _updates(con: duckdb.DuckDBPyConnection, came: list[Row], due: tuple[int, ...] = (), **rules: Any) -> Counts:
    """`due` are places in PREFIXES."""
    expected = [row | {"__due": place in due} for place, row in enumerate(PREFIXES)]
    return _numbers(_compare(con, expected, came, ids=("k", "event_time"), fields=("n",), update=True, **rules))


def test_updates_may_skip_values_but_not_the_last(con: duckdb.DuckDBPyConnection) -> None:
    """Every update is a prefix's value; the last one of each key must be there, if it is judged up to its time."""
    assert _updates(con, [PREFIXES[0], PREFIXES[2], PREFIXES[5]]) == Counts(3, matched=3)
    assert _updates(con, [PREFIXES[0], PREFIXES[1], PREFIXES[5]]) == Counts(4, matched=3, missing=1)
    assert _updates(con, []) == Counts(2, missing=2)
    assert _updates(con, [PREFIXES[0]], required="event_time < 30") == Counts(1, matched=1)


def test_what_is_due_may_not_be_skipped(con: duckdb.DuckDBPyConnection) -> None:
    """The first of key 1 has to come, and is missing until it does."""
    last = [PREFIXES[2], PREFIXES[5]]
    assert _updates(con, last, due=(0,)) == Counts(3, matched=2, missing=1)
    assert _updates(con, [*last, PREFIXES[0]], due=(0,)) == Counts(3, matched=3)
    assert _updates(con, [*last, PREFIXES[1]], due=(0,), required="event_time > 10") == Counts(3, matched=3)


def test_faults_of_updates_are_counted(con: duckdb.DuckDBPyConnection) -> None:
    """A wrong value, one at a time that no event has, and one sent twice."""
    last = [PREFIXES[2], PREFIXES[5]]
    assert _updates(con, [*last, PREFIXES[0] | {"n": 9}]) == Counts(3, matched=2, wrong=1)
    assert _updates(con, [*last, PREFIXES[0] | {"event_time": 11}]) == Counts(2, matched=2, extra=1)
    assert _updates(con, [*last, last[0]]) == Counts(2, matched=2, duplicate=1)
    assert _updates(con, [last[0] | {"n": 4}, last[1]]) == Counts(2, matched=1, wrong=1)
    assert _updates(con, last, deadline_us=70) == Counts(2, late=2)


def test_columns_that_did_not_come_are_the_engines_error(con: duckdb.DuckDBPyConnection) -> None:
    """A missing column, or one of another kind, is said by name and never compared."""
    wanted = _table(_rows(2))
    without, text = wanted.drop_columns(["price"]), wanted.set_column(0, "price", pa.array(["a", "b"]))
    for came, message in ((without, "no column 'price'"), (text, "'price' as string"), (wanted, "emission_time")):
        with pytest.raises(EngineError, match=message):
            compare_tables(con, wanted, came, IDS, FIELDS, deadline_us=1 if came is wanted else None)


SMALL = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 9)), max_size=8)


@given(expected=SMALL, came=SMALL, border=st.integers(0, 10), floats=st.booleans())
def test_counts_are_their_plain_statement(
    expected: list[tuple[int, ...]], came: list[tuple[int, ...]], border: int, floats: bool
) -> None:
    """Of rows (id, value, time), judged before the border: each count as method 9 defines it, by either way."""
    wanted = {row[0]: row for row in expected}
    got: dict[int, list[tuple[int, ...]]] = {}
    for row in came:
        got.setdefault(row[0], []).append(row)
    judged = {id_ for id_, row in wanted.items() if row[2] < border}
    matched = sum(wanted[id_] in got.get(id_, []) for id_ in judged)
    missing = len(judged - got.keys())
    plain = Counts(
        expected=len(judged),
        matched=matched,
        missing=missing,
        extra=len(got.keys() - wanted.keys()),
        duplicate=sum(len(rows) - 1 for rows in got.values()),
        wrong=len(judged) - matched - missing,
        conflicting=sum(
            min(len(got[id_]) - 1, sum(row != wanted[id_] for row in got[id_])) for id_ in judged & got.keys()
        ),
    )
    types = {"v": pa.float64()} if floats else {}
    sides = [
        _table([{"event_id": i, "v": v, "event_time": t} for i, v, t in rows], **types) if rows else _none(floats)
        for rows in (list(wanted.values()), came)
    ]
    with duckdb_session() as con:
        comparison = compare_tables(con, sides[0], sides[1], IDS, ("v", "event_time"), f"event_time < {border}")
    assert _numbers(comparison) == plain


def _none(floats: bool) -> pa.Table:
    value = pa.float64() if floats else pa.int64()
    return pa.schema([("event_id", pa.int64()), ("v", value), ("event_time", pa.int64())]).empty_table()
