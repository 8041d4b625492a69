"""How fast the machine itself is at the moment: the same small piece of work, timed again and again.

A virtual machine shares its processors' turbo, caches and memory with machines that nothing inside it can see, and not
all of what it loses that way is reported as steal. Rates of two trials compare systems only as far as this figure is
the same in both; it decides nothing.
"""

from __future__ import annotations

import time

import numpy as np

_NUMBERS = 20_000
"""One or two milliseconds, once a second: as many thousandths of a core."""


class ReferenceWork:
    """Sorts the same numbers each time."""

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(1).integers(0, 2**62, _NUMBERS)

    def cpu_us(self) -> float:
        """CPU time that the work takes now, microseconds: without the time in which its thread waited for a core."""
        before_ns = time.thread_time_ns()
        np.sort(self._numbers, kind="stable")
        return (time.thread_time_ns() - before_ns) / 1000
