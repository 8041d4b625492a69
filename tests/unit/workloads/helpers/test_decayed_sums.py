"""Sums that forget and what was seen lately: closed forms, long pauses, filters, and the SQL that judges them."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.workloads.helpers.decayed_sums import (
    HASHES_MAX,
    MULTIPLIERS,
    SHARDS,
    DecayedSums,
    Exact,
    Filter,
    RecentKeys,
)
from tests.unit.helpers_duckdb import duckdb_session

KEYS_MOST = 2**31 - 1


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def cells(*numbers: int) -> np.ndarray:
    """A cell of its own for each."""
    return Exact().addresses(ints(), ints(*numbers))


def test_a_sum_by_hand() -> None:
    """Halved every microsecond, of two keys, in two batches; what another key adds changes nothing."""
    sums = DecayedSums((1 / math.log(2),))
    first = sums.add(cells(1, 2, 1), ints(0, 0, 1), np.array([[8.0, 100.0, 4.0]]))
    assert first.tolist() == [[8, 100, pytest.approx(8 / 2 + 4)]]
    second = sums.add(cells(1, 1), ints(3, 3), np.array([[1.0, 1.0]]))
    assert second.tolist() == [[pytest.approx(8 / 4 + 1), pytest.approx(8 / 4 + 2)]]


def test_each_sum_has_a_decay_of_its_own() -> None:
    """The same amounts, forgotten at two paces."""
    results = DecayedSums((10, 20)).add(cells(1, 1), ints(0, 10), np.ones((2, 2)))
    assert results[:, 1].tolist() == pytest.approx([1 + math.exp(-1), 1 + math.exp(-0.5)])


def test_a_key_with_many_rows() -> None:
    """A thousand and one: the sum of a geometric series, at each of them; an even number of doublings is not enough."""
    rows = 1001
    results = DecayedSums((10,)).add(cells(*[7] * rows), np.arange(rows), np.ones((1, rows)))
    left = math.exp(-0.1)
    assert results[0].tolist() == pytest.approx([(1 - left ** (n + 1)) / (1 - left) for n in range(rows)], rel=1e-12)


def test_after_a_long_pause_nothing_is_left() -> None:
    """No overflow, and no nan, where a key was silent for a billion decays, in a batch or between two."""
    sums = DecayedSums((1,))
    assert sums.add(cells(1, 1), ints(0, 10**9), np.ones((1, 2))).tolist() == [[1, 1]]
    assert sums.add(cells(1), ints(10**18), np.ones((1, 1))).tolist() == [[1]]


def test_no_rows() -> None:
    """An instance that only the watermark moved."""
    assert DecayedSums((1, 1)).add(cells(), ints(), np.ones((2, 0))).shape == (2, 0)
    assert RecentKeys(1).add(ints(), ints()).shape == (0,)


def test_what_is_forgotten_takes_no_room() -> None:
    """State is of the last two spans."""
    seen = RecentKeys(10)
    seen.add(ints(1, 2, 3), ints(0, 10, 20))
    assert seen.addresses.tolist() == [2, 3]


def sums_of(places: Exact | Filter, keys: list[int]) -> np.ndarray:
    """How often each key came so far, by places."""
    keys_ = ints(*keys)
    ones = np.ones((1, len(keys)))
    return DecayedSums((10**15,)).add(places.addresses(keys_ % SHARDS, keys_), np.zeros(len(keys), np.int64), ones)[0]


@given(st.lists(st.integers(0, KEYS_MOST), min_size=1, max_size=60), st.integers(1, HASHES_MAX), st.integers(1, 50))
def test_a_filter_never_counts_too_little(keys: list[int], hashes: int, width: int) -> None:
    """Keys that share all cells with others count these too, and none counts less than its own."""
    assert (sums_of(Filter(hashes, width), keys) >= sums_of(Exact(), keys)).all()


def test_a_large_filter_is_exact_and_a_small_one_is_not() -> None:
    """A thousand keys in a filter for ten times as many; the same in one cell for each shard."""
    keys = list(range(1000)) * 2
    assert sums_of(Filter(7, 20_000), keys).tolist() == sums_of(Exact(), keys).tolist()
    assert sums_of(Filter(1, 1), keys)[-1] == keys.count(39) * len([key for key in range(1000) if key % SHARDS == 39])


def test_a_filter_errs_as_often_as_its_size_says() -> None:
    """Seven hashes and 10 cells for each key: in about one key in a hundred all cells are others' too."""
    keys = 20_000
    place, known, others = Filter(7, math.ceil(keys / math.log(2) / SHARDS)), np.arange(keys), np.arange(keys, 2 * keys)
    taken = np.isin(place.addresses(others % SHARDS, others), place.addresses(known % SHARDS, known))
    assert 0.002 < taken.all(axis=0).mean() < 0.03


def test_multipliers_are_good_ones() -> None:
    """Odd, of 32 bits, and all different."""
    assert len(set(MULTIPLIERS.tolist())) == HASHES_MAX
    assert all(number % 2 == 1 and 0 < number < 2**32 for number in MULTIPLIERS.tolist())


NUMBERS = st.sampled_from([0, 1, 63, 64, 12_345, KEYS_MOST]) | st.integers(0, KEYS_MOST)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from([1, 13, 4018]))
def test_sql_finds_the_same_cells(numbers: list[int], width: int) -> None:
    """Of 32-bit integers, up to the largest."""
    keys = ints(*numbers)
    con = duckdb_session()
    con.register("given", pa.table({"key": pa.array(keys, pa.int32())}))
    for place in (Exact(), Filter(HASHES_MAX, width)):
        results = con.sql(f"SELECT {', '.join(place.sql(f'(key % {SHARDS})', 'key'))} FROM given").fetchall()
        assert results == [tuple(row) for row in place.addresses(keys % SHARDS, keys).T.tolist()]
