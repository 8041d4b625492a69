"""The clock of a run, in microseconds since the epoch."""

from __future__ import annotations

import time
from dataclasses import dataclass

US = 1_000_000
"""Microseconds in a second."""


@dataclass(frozen=True)
class Clock:
    """The host's monotonic clock as microseconds since the epoch, the same in all processes of a run.

    The driver sets `offset_us` once, so a step of the wall clock has no effect.
    """

    offset_us: int

    @classmethod
    def fixed_now(cls) -> Clock:
        return cls(time.time_ns() // 1000 - time.monotonic_ns() // 1000)

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000 + self.offset_us

    def sleep_until(self, when_us: int) -> None:
        """Sleeps until `when_us`. Returns at once if it is past."""
        wait_us = when_us - self.now_us()
        if wait_us > 0:
            time.sleep(wait_us / US)
