"""How fast the machine itself is at the moment: the same small piece of work, timed again and again.

A virtual machine shares its processors' turbo, caches and memory with machines that nothing inside it can see, and not
all of what it loses that way is reported as steal. Rates of two trials compare systems only as far as this figure is
the same in both; it decides nothing.

The work is bound by the core (a sort that fits in the second-level cache) and by the memory (a pass over more than a
shared cache holds), because generators and systems need both. Seen on two cores of an AMD EPYC with 32 MB of shared
cache, beside a neighbour that copies memory without end: this work took 21, 26, 31 and 23 % longer (2.2 ms alone), a
generator's events 4, 13, 7 and -3 %, a copy of memory 25 to 73 %; a sort alone 2 to 4 %, also in an hour in which that
neighbour cost the generators 35 to 42 %. A neighbour that makes events as fast as it can moved it by 3 % at most. What
passes over memory without end shows, then, and so does a system under test that does that itself.
"""

from __future__ import annotations

import time

import numpy as np

_NUMBERS = 20_000
"""160 KB, sorted in about 0.9 ms."""
_PASSED = 6_000_000
"""48 MB, added up in about 1.7 ms. They stay while a trial is conducted, and count as memory of the driver."""


class MachineSpeed:
    """Sorts the same numbers each time, and adds up the same others: two or three milliseconds, so once a second it
    takes as many thousandths of a core.
    """

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(1).integers(0, 2**62, _NUMBERS)
        self._passed = np.ones(_PASSED)

    def cpu_us(self) -> float:
        """CPU time that the work takes now, microseconds: without the time in which its thread waited for a core."""
        before_ns = time.thread_time_ns()
        np.sort(self._numbers, kind="stable")
        self._passed.sum()
        return (time.thread_time_ns() - before_ns) / 1000
