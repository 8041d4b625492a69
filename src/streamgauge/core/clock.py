"""The one clock of a run, microseconds since the epoch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


US = 1_000_000
"""Microseconds in a second."""


@dataclass(frozen=True)
class Clock:
    """One clock for all processes of a run: the host's monotonic clock, shown as microseconds since the epoch.

    `offset_us` is fixed once, by the runner; a step of the wall clock during the run moves nothing.
    """

    offset_us: int

    @classmethod
    def fixed_now(cls) -> Clock:
        return cls(time.time_ns() // 1000 - time.monotonic_ns() // 1000)

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000 + self.offset_us

    def sleep_until(self, when_us: int) -> None:
        """Sleep until `when_us`; returns at once where that is past."""
        wait_us = when_us - self.now_us()
        if wait_us > 0:
            time.sleep(wait_us / US)
