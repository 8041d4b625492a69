"""Who was seen lately, in filters of rbloom: by hand, against exact memory, how often they err, and the SQL beside."""

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.workloads.helpers.decayed_sums import SHARDS, WORD, BloomFilter, RecentKeys, RecentKeysInBloom
from tests.unit.helpers_duckdb import duckdb_session

LARGE, SMALL = BloomFilter(100_000, 0.0001), BloomFilter(SHARDS, 0.3)
KEYS_MOST = 2**31 - 1


def pairs(*numbers: tuple[int, int]) -> np.ndarray:
    """Keys of two numbers."""
    return np.array([first * WORD + second for first, second in numbers], np.int64)


def times(*us: int) -> np.ndarray:
    return np.array(us, np.int64)


@pytest.mark.parametrize("seen", [RecentKeysInBloom(10, LARGE), RecentKeys(10)], ids=["bloom", "exact"])
def test_which_keys_are_new(seen: Any) -> None:
    """Known in the same span of ten and in the next one, new again in the one after, and when forgotten."""
    one, two = (1, 5), (2, 5)
    assert seen.add(pairs(one, two, one, one), times(0, 9, 9, 10)).tolist() == [True, True, False, False]
    assert seen.add(pairs(two, one), times(20, 29)).tolist() == [True, False]
    assert seen.add(pairs(one, two), times(50, 51)).tolist() == [True, True]
    assert seen.add(pairs(), times()).tolist() == []


PEOPLE = st.sampled_from([1, 2, 65, 66, 129])
ROWS = st.lists(st.tuples(PEOPLE, PEOPLE, st.integers(0, 9)), min_size=1, max_size=40)


@given(ROWS, st.integers(1, 12), st.integers(0, 40))
def test_a_filter_with_room_is_exact_and_no_filter_forgets(
    rows: list[tuple[int, int, int]], memory: int, border: int
) -> None:
    """Wherever batches end, and with its state carried to a fresh one there."""
    keys = pairs(*((first, second) for first, second, _ in rows))
    when = np.cumsum([step for *_, step in rows])
    exactly = RecentKeys(memory).add(keys, when)
    for size in (LARGE, SMALL):
        before = RecentKeysInBloom(memory, size)
        first = before.add(keys[:border], when[:border])
        after = pickle.loads(pickle.dumps(before))
        results = np.concatenate((first, after.add(keys[border:], when[border:])))
        assert not (results & ~exactly).any()
        assert size is SMALL or (results == exactly).all()


@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_a_filter_errs_as_often_as_it_states(rate: float) -> None:
    """Once it is full, of the keys that are new so many pass for known."""
    room = 20_000
    callers, callees = np.arange(2 * room) % 9973, np.arange(2 * room) * 7 % 1009
    seen = RecentKeysInBloom(10, BloomFilter(room, rate))
    keys = callers * WORD + callees
    assert len(np.unique(keys)) == len(keys)
    seen.add(keys[:room], np.zeros(room, np.int64))
    # Asked a few at a time, each time from the same state: what is asked for is added too.
    full = pickle.dumps(seen)
    known = 0
    for at in range(room, 2 * room, 500):
        known += int(np.count_nonzero(~pickle.loads(full).add(keys[at : at + 500], np.zeros(500, np.int64))))
    assert 0.5 * rate < known / room < 1.5 * rate


NUMBERS = st.sampled_from([0, 1, 63, 64, 12_345, KEYS_MOST]) | st.integers(0, KEYS_MOST)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20), st.sampled_from([SMALL, BloomFilter(180_000, 0.01)])
)
def test_sql_finds_the_cells_that_the_library_takes(numbers: list[tuple[int, int]], size: BloomFilter) -> None:
    """Cell by cell, of the saved bits: SQL restates what rbloom promises to nobody."""
    con = duckdb_session()
    rows = {name: pa.array(column, pa.int32()) for name, column in zip("ab", zip(*numbers, strict=True), strict=True)}
    con.register("given", pa.table(rows))
    for row, key in zip(
        con.sql(f"SELECT {', '.join(size.sql('3', 'a', 'b'))} FROM given").fetchall(), pairs(*numbers), strict=True
    ):
        filled = size.empty()
        filled.add(int(key))
        bits = np.unpackbits(np.frombuffer(filled.save_bytes()[8:], np.uint8), bitorder="little")
        assert set(np.flatnonzero(bits).tolist()) == {cell - 3 * size.width for cell in row}
        assert len(row) == size.hashes >= 1
