"""The arrays that Smart Grid's classes work with: numbers of rows, medians of counted values and of pieces."""

import math

import numpy as np
import pytest

from streamgauge.workloads.dspbench.sensors.smart_grid import group_numbers, medians_between, twice_the_medians


def test_numbers_of_rows() -> None:
    """Equal in all columns, and none left out; of no rows there are none."""
    ones, twos = np.array([7, 5, 7, 7]), np.array([1, 1, 2, 1])
    assert group_numbers(ones, twos).tolist() == [1, 0, 2, 1]
    assert group_numbers(ones).tolist() == [1, 0, 1, 1]
    assert group_numbers(np.empty(0)).tolist() == []


def test_medians_of_counted_values() -> None:
    """9 9 9 1 of one group and 2 4 of another; then 5 counted two times."""
    groups, values, counts = np.array([0, 1, 0, 1]), np.array([9, 4, 1, 2]), np.array([3, 1, 1, 1])
    assert twice_the_medians(groups, values, counts).tolist() == [18, 6]
    assert twice_the_medians(np.array([0]), np.array([5]), np.array([2])).tolist() == [10]
    nothing = np.empty(0, np.int64)
    assert twice_the_medians(nothing, nothing, nothing).tolist() == []


def test_medians_of_pieces() -> None:
    """In any order, overlapping, and empty."""
    values = np.array([3.0, 1.0, 2.0, 8.0])
    results = medians_between(values, np.array([0, 1, 2, 0]), np.array([3, 4, 2, 4]))
    assert results.tolist() == pytest.approx([2.0, 2.0, math.nan, 2.5], nan_ok=True)
