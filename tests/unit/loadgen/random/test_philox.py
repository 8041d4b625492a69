"""Random lanes: readable from anywhere, different for every column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.loadgen.random.philox import BLOCK_EVENTS, PhiloxBits, empty

BITS = PhiloxBits(seed=7, stream=1, partition=2, field=3)


@given(st.integers(0, 2**43), st.integers(0, 200), st.integers(0, 200))
def test_lanes_are_a_function_of_their_number(first: int, skip: int, count: int) -> None:
    """A slice read alone equals the same slice of a longer one."""
    whole = BITS.lanes(first, first + skip + count)
    assert (BITS.lanes(first + skip, first + skip + count) == whole[skip:]).all()


@given(st.integers(0, 10**6), st.integers(0, 2 * BLOCK_EVENTS + 100), st.integers(1, 3))
def test_blocks_are_the_lanes_in_pieces(first: int, count: int, width: int) -> None:
    """Pieces lie side by side, cover every event, and hold the lanes that `lanes` gives."""
    pieces = list(BITS.blocks(first, first + count, width))
    joined = np.concatenate([lanes for _, lanes in pieces]) if pieces else np.empty(0, np.uint32)
    assert (joined == BITS.lanes(first * width, (first + count) * width)).all()
    assert [part.start for part, _ in pieces] + [count] == [0] + [part.stop for part, _ in pieces]


@pytest.mark.parametrize(
    "other", [PhiloxBits(8, 1, 2, 3), PhiloxBits(7, 0, 2, 3), PhiloxBits(7, 1, 3, 3), PhiloxBits(7, 1, 2, 0)]
)
def test_another_place_has_other_lanes(other: PhiloxBits) -> None:
    """Another seed, stream, partition or field shares no more lanes than chance gives."""
    assert (BITS.lanes(0, 10_000) == other.lanes(0, 10_000)).sum() <= 2


def test_bits_are_even() -> None:
    """Each of the 32 bits is set in half of the lanes (six standard deviations)."""
    lanes = BITS.lanes(0, 100_000)
    share = [float(((lanes >> np.uint32(bit)) & 1).mean()) for bit in range(32)]
    assert np.abs(np.array(share) - 0.5).max() < 6 * 0.5 / np.sqrt(100_000)


def test_empty_can_be_written() -> None:
    """`empty` gives a writable array of the type asked for, of no rows too."""
    array = empty(3, np.int64)
    array[:] = 5
    assert array.tolist() == [5, 5, 5]
    assert empty(0, np.int32).dtype == np.int32


def test_lanes_are_philox() -> None:
    """The lanes are NumPy's Philox under the key (seed, place), from counter 0 on."""
    philox = np.random.Philox(key=np.array([7, (1 << 40) | (2 << 16) | 3], dtype=np.uint64))
    assert (philox.random_raw(500).view(np.uint32) == BITS.lanes(0, 1000)).all()
