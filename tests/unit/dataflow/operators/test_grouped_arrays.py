"""Patterns of keyed processes: windows by count against plain Python, codes, and state that comes back whole."""

import math
import pickle
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.dataflow.operators.grouped_arrays import (
    KeyDictionary,
    Recent,
    RowKeyDictionary,
    group_by_key,
    group_starts,
    groups,
    last_sums_sql,
    load,
    save,
    sliding_reduce,
)
from tests.unit.helpers_duckdb import duckdb_session

READINGS = st.lists(st.tuples(st.integers(0, 3), st.integers(-100, 100)), max_size=60)


@given(READINGS, st.integers(1, 7), st.lists(st.integers(0, 60), max_size=4))
def test_recent_is_the_last_values_of_each_key(readings: list[tuple[int, int]], size: int, cuts: list[int]) -> None:
    """Wherever the batches end, every window is the list's own tail; so are its sum and count."""
    recent = Recent(size)
    actual: list[list[float]] = []
    for low, high in pairwise(sorted({0, len(readings), *(min(cut, len(readings)) for cut in cuts)})):
        codes, values = (np.array([one[place] for one in readings[low:high]]) for place in (0, 1))
        windows = recent.add(codes.astype(np.int64), values.astype(np.float64))
        new = [windows.values[first:end].tolist() for first, end in zip(windows.first, windows.end, strict=True)]
        assert windows.sums.tolist() == [sum(window) for window in new]
        assert windows.counts.tolist() == [len(window) for window in new]
        actual += new
    seen: dict[int, list[float]] = {}
    for (key, value), window in zip(readings, actual, strict=True):
        seen.setdefault(key, []).append(float(value))
        assert window == seen[key][-size:]


def test_recent_goes_on_from_its_state() -> None:
    """A restored one gives the same windows; more than the last `size` values of a key are never kept."""
    codes, values = np.array([0, 1, 0, 0, 0]), np.array([1.0, 9.0, 2.0, 3.0, 4.0])
    recent = Recent(3)
    recent.add(codes, values)
    assert len(recent._values) == 4
    resumed = pickle.loads(pickle.dumps(recent))
    assert resumed.add(np.array([0]), np.array([5.0])).sums.tolist() == [12.0]


ANY = st.floats(allow_nan=False, allow_infinity=False)
"""What a user's column of doubles may hold: of either sign, tiny, and up to the end of doubles."""


@given(st.lists(st.tuples(st.integers(0, 3), ANY), max_size=60), st.integers(1, 20))
def test_a_sum_is_of_its_own_window_alone(readings: list[tuple[int, float]], size: int) -> None:
    """To the last bit that of the window's values by themselves, whatever came before and beside them."""
    windows = Recent(size).add(np.array([key for key, _ in readings], np.int64), np.array([one for _, one in readings]))
    separate = [
        sliding_reduce(np.add, windows.values[first:end], np.array([0]), np.array([end - first]), 0.0)[0]
        for first, end in zip(windows.first, windows.end, strict=True)
    ]
    np.testing.assert_array_equal(windows.sums, separate)


@given(st.lists(st.tuples(st.integers(0, 3), ANY), min_size=1, max_size=60), st.integers(1, 20))
def test_sql_adds_up_in_the_same_order(readings: list[tuple[int, float]], size: int) -> None:
    """Sums of the last rows, and how many there are, are those of `Windows` to the last bit."""
    keys, values = np.array([key for key, _ in readings], np.int64), np.array([one for _, one in readings])
    windows = Recent(size).add(keys, values)
    with duckdb_session() as connection:
        connection.register("readings", pa.table({"key": keys, "value": values, "_row": np.arange(len(keys))}))
        summed = last_sums_sql("readings", "key", {"total": "value", "twice": "2 * value"}, size)
        actual = connection.sql(f"SELECT total, twice, counted FROM ({summed}) ORDER BY _row").fetchnumpy()
    np.testing.assert_array_equal(actual["total"], windows.sums)
    np.testing.assert_array_equal(actual["counted"], windows.counts)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(actual["twice"], Recent(size).add(keys, 2 * values).sums)


@pytest.mark.parametrize(("kind", "keys", "codes", "more", "more_codes"), [
    (pa.string(), ["b", "a", None, "b"], [0, 1, 2, 0], ["c", None, "a"], [3, 2, 1]),
    (pa.float64(), [math.nan, 1.0, math.nan], [0, 1, 0], [2.0, 1.0, math.nan], [2, 1, 0]),
])  # fmt: skip
def test_codes_are_given_in_the_order_of_meeting(
    kind: pa.DataType, keys: list[Any], codes: list[int], more: list[Any], more_codes: list[int]
) -> None:
    """Strings and null are keys; NaN equals nothing, itself neither, and has one code all the same. A restored book
    goes on where it ended.
    """
    book = KeyDictionary(kind)
    assert book.encode(pa.array(keys)).tolist() == codes
    again = pickle.loads(pickle.dumps(book))
    assert again.encode(pa.array(more)).tolist() == book.encode(pa.array(more)).tolist() == more_codes
    assert len(again) == max(more_codes) + 1


def test_codes_of_rows_tell_every_column() -> None:
    """Equal only where all columns are, null included; a restored book goes on where it ended."""
    book = RowKeyDictionary([pa.string(), pa.int32(), pa.int32()])
    columns = [pa.array(["a", "a", None, "a", None]), pa.array([1, 2, 1, 1, 1]), pa.array([0, 0, 0, 0, 0])]
    assert book.encode(columns).tolist() == [0, 1, 2, 0, 2]
    again = pickle.loads(pickle.dumps(book))
    assert again.encode([pa.array(["a", "a"]), pa.array([2, 1]), pa.array([0, 7])]).tolist() == [1, 3]
    assert len(again) == 4


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.data())
def test_over_takes_what_is_in_each_window(values: list[int], data: st.DataObject) -> None:
    """Of any length, empty ones too, in any order."""
    places = st.integers(0, len(values))
    windows = data.draw(st.lists(st.tuples(places, places).map(sorted), max_size=9))
    first, end = (np.array([window[side] for window in windows], np.int64) for side in (0, 1))
    inside = [values[low:high] for low, high in windows]
    assert sliding_reduce(np.add, np.array(values), first, end, 0).tolist() == [sum(part) for part in inside]
    assert sliding_reduce(np.maximum, np.array(values), first, end, -10).tolist() == [
        max(part, default=-10) for part in inside
    ]


def test_state_keeps_types_and_lengths() -> None:
    """Arrays of different lengths and types, empty ones too."""
    saved = load(save(a=np.arange(3), b=pa.array(["x", None]), c=np.empty(0)))
    assert [array.to_pylist() for array in saved.values()] == [[0, 1, 2], ["x", None], []]
    assert saved["c"].type == pa.float64()


def test_by_key_keeps_the_order_within_a_key() -> None:
    """For small codes and for large ones, which are sorted in another way."""
    for codes in ([2, 0, 2, 0, 1], [70_000, 0, 70_000, 0, 1]):
        assert group_by_key(np.array(codes)).tolist() == [1, 3, 4, 0, 2]


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), max_size=30))
def test_groups_are_runs_of_equal_rows(rows: list[tuple[int, int]]) -> None:
    """By all columns together; a number that stands for nothing elsewhere (-1) begins one too; no rows, no groups."""
    rows.sort()
    columns = [np.array([row[place] for row in rows], np.int64) for place in (0, 1)]
    first, group = groups(*columns)
    runs = [len(list(run)) for _, run in groupby(rows)]
    assert first.tolist() == list(accumulate(runs, initial=0))[:-1]
    assert group.tolist() == [number for number, length in enumerate(runs) for _ in range(length)]
    assert np.flatnonzero(group_starts(*columns)).tolist() == first.tolist()
