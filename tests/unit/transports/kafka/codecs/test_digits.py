"""Whole numbers as text of one width: the same as Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.transports.kafka.codecs.digits import write_numbers


def written(numbers: list[int], place: int, width: int, wide: int) -> list[str]:
    """Rows of `wide` bytes, blank but for the numbers."""
    rows = np.full((len(numbers), wide), ord(" "), np.uint8)
    write_numbers(np.array(numbers, np.uint64), rows, place, width)
    return [bytes(row).decode() for row in rows]


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20), st.integers(19, 22), st.integers(0, 5), st.integers(0, 5))
@example([0, 9999, 10_000, 10_001, 99_990_000, 100_000_000, 2**63 - 1], 19, 0, 0)
def test_they_stand_at_the_end_of_their_width(numbers: list[int], width: int, before: int, after: int) -> None:
    """With zeros inside and none before, whatever the others are; nothing beside the width is touched."""
    expected = [" " * before + f"{number:{width}d}" + " " * after for number in numbers]
    assert written(numbers, before, width, before + width + after) == expected


@pytest.mark.parametrize("width", range(1, 12))
def test_the_longest_of_each_width_fits(width: int) -> None:
    """Also where the width is no whole number of groups."""
    numbers = [0, 1, 10 ** (width - 1), 10**width - 1]
    assert written(numbers, 1, width, width + 2) == [f" {number:{width}d} " for number in numbers]
