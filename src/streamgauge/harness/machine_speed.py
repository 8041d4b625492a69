"""Measures the machine's current speed: the CPU time of one small piece of reference work.

Virtual machines share turbo, caches and memory bandwidth with invisible neighbours. Steal time does not show all of
that. Two trials compare systems only if this figure is the same in both. No verdict depends on it.

The work has two parts, because generators and engines need both: a sort that fits in the second-level cache, and a
pass over more memory than a shared cache holds. A neighbour that copies memory made it 21 to 31 % slower on two cores
of an AMD EPYC; a sort alone slowed by 2 to 4 %. A system under test that streams through memory also slows it.
"""

from __future__ import annotations

import time

import numpy as np

_NUMBERS = 20_000
"""160 KB, sorted in about 0.9 ms."""
_PASSED = 6_000_000
"""48 MB, added up in about 1.7 ms. They stay allocated during a trial, and count as the driver's memory."""


class MachineSpeed:
    """Sorts and adds the same numbers each time: 2 to 3 ms, so 0.2 to 0.3 % of a core at one call a second."""

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(1).integers(0, 2**62, _NUMBERS)
        self._passed = np.ones(_PASSED)

    def cpu_us(self) -> float:
        """The CPU time of the work, microseconds; time spent waiting for a core does not count."""
        before_ns = time.thread_time_ns()
        np.sort(self._numbers, kind="stable")
        self._passed.sum()
        return (time.thread_time_ns() - before_ns) / 1000
