"""Which events of a stream go to which partition. Any slice of a partition can be made alone.

Each assignment gives the m-th event of a partition a number n on the stream's own scale, which the plan turns into an
event time. Numbers never fall within a partition, so offset and event time determine each other.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Shares = npt.NDArray[np.float64]


class Assignment(Protocol):
    """How the events of one stream are split into partitions."""

    exact: bool
    """Whether numbers are whole, and each of 0, 1, ... is that of exactly one event."""
    shares: Shares
    """The share of the stream's events in each partition, shape (partitions,)."""

    def numbers(self, partition: int, first: int, last: int) -> Numbers:
        """The numbers of the partition's events [first, last), shape (last - first,)."""

    def count(self, partition: int, number: float) -> int:
        """The number of the partition's events below a number; up to rounding, unless numbers are whole."""


class RoundRobin:
    """Event n goes to partition n modulo their number."""

    exact = True

    def __init__(self, partitions: int) -> None:
        self._step = partitions
        self.shares = np.full(partitions, 1 / partitions)

    def numbers(self, partition: int, first: int, last: int) -> Numbers:
        return np.arange(first * self._step + partition, last * self._step + partition, self._step, dtype=np.float64)

    def count(self, partition: int, number: float) -> int:
        return max(-(-(int(number) - partition) // self._step), 0)


class ByKeyShare:
    """Each partition has the events whose keys hash to it, evenly spaced at its share of the rate.

    Partitions begin one after the other, so that their events do not come at the same times.
    """

    exact = False

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self._phases = np.arange(len(shares)) / len(shares)

    def numbers(self, partition: int, first: int, last: int) -> Numbers:
        if first >= last:
            return np.empty(0)
        return np.asarray((np.arange(first, last) + self._phases[partition]) / self.shares[partition])

    def count(self, partition: int, number: float) -> int:
        return max(math.ceil(number * self.shares[partition] - self._phases[partition]), 0)


class ByRow:
    """Event n is row n of a file, again from its beginning, and each row goes to one partition.

    `of_rows` has the partition of each row, shape (rows,).
    """

    exact = True

    def __init__(self, of_rows: npt.NDArray[np.int16], partitions: int) -> None:
        self._rows = [np.flatnonzero(of_rows == partition) for partition in range(partitions)]
        self._round = len(of_rows)
        self.shares = np.array([len(rows) / len(of_rows) for rows in self._rows])

    def numbers(self, partition: int, first: int, last: int) -> Numbers:
        if first >= last:
            return np.empty(0)
        rounds, places = np.divmod(np.arange(first, last), len(self._rows[partition]))
        return (rounds * self._round + self._rows[partition][places]).astype(np.float64)

    def count(self, partition: int, number: float) -> int:
        rounds, row = divmod(max(int(number), 0), self._round)
        return rounds * len(self._rows[partition]) + int(np.searchsorted(self._rows[partition], row))
