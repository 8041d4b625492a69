"""The pace of a consumer of known capacity: one server that needs exactly 1 / capacity for each event.

The time at which the work taken on so far is done follows from the number of events alone, so what reading, computing,
sending or an overlong sleep cost is made good by the sleeps after it; only an idle server loses time.

With `jitter` each batch ends early or late at random, by at most that share of its own time. The batch after it begins
from where it should have ended, so the noise never adds up: over any second or so the pace is the stated one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from streamgauge.core.clock import US

_SEED = 1


class Pace:
    """When the server will be free. Times are microseconds of `now_us`'s clock; capacity is events per second."""

    def __init__(self, capacity_per_s: float, now_us: Callable[[], int], jitter: float = 0.0) -> None:
        self._capacity_per_s, self._now_us, self._jitter = capacity_per_s, now_us, jitter
        self._anchor_us, self._since_anchor = now_us(), 0
        self._chance, self._noise_us = random.Random(_SEED), 0.0
        self.worked = 0
        self.overrun_us_max = 0

    @property
    def free_us(self) -> int:
        """When the work taken on so far is done."""
        return self._anchor_us + round(self._since_anchor * US / self._capacity_per_s + self._noise_us)

    def idle(self) -> None:
        """There was nothing to do until now: time that has passed is lost, as it is for any server."""
        now_us = self._now_us()
        if now_us > self.free_us:
            self._anchor_us, self._since_anchor, self._noise_us = now_us, 0, 0.0

    def take_on(self, events: int, extra_us: int = 0) -> None:
        """One batch; `extra_us`: what it takes besides its events."""
        self._since_anchor += events
        self._anchor_us += extra_us
        self.worked += events
        if self._jitter:
            self._noise_us = self._jitter * self._chance.uniform(-1, 1) * events * US / self._capacity_per_s

    def note_overrun(self) -> None:
        """Called when own work is done, before sleeping: past `free_us`, the machine is slower than the capacity."""
        self.overrun_us_max = max(self.overrun_us_max, self._now_us() - self.free_us)
