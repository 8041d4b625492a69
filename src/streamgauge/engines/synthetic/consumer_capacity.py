"""The pace of a consumer of known capacity: one server that needs exactly 1 / capacity per event.

The completion time depends only on the number of events. Later sleeps compensate for reading, computing, sending and
overlong sleeps. Only idle time is lost.

With `jitter`, each batch ends early or late at random, by at most this share of its duration. The next batch starts
from the nominal end, so the noise does not accumulate.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from streamgauge.core.clock import US

_SEED = 1


class Pace:
    """Tracks when the server is free. Times are microseconds of the clock `now_us`; capacity in events per second."""

    def __init__(self, capacity_per_s: float, now_us: Callable[[], int], jitter: float = 0.0) -> None:
        self._capacity_per_s, self._now_us, self._jitter = capacity_per_s, now_us, jitter
        self._anchor_us, self._since_anchor = now_us(), 0
        self._chance, self._noise_us = random.Random(_SEED), 0.0
        self.worked = 0
        self.overrun_us_max = 0

    @property
    def free_us(self) -> int:
        """When the accepted work is done."""
        return self._anchor_us + round(self._since_anchor * US / self._capacity_per_s + self._noise_us)

    def idle(self) -> None:
        """Marks the time until now as idle, which is lost."""
        now_us = self._now_us()
        if now_us > self.free_us:
            self._anchor_us, self._since_anchor, self._noise_us = now_us, 0, 0.0

    def take_on(self, events: int, extra_us: int = 0) -> None:
        """Accepts one batch; `extra_us` is added to the time of its events."""
        self._since_anchor += events
        self._anchor_us += extra_us
        self.worked += events
        if self._jitter:
            self._noise_us = self._jitter * self._chance.uniform(-1, 1) * events * US / self._capacity_per_s

    def note_overrun(self) -> None:
        """Call it after the real work, before sleeping. Past `free_us` the machine is slower than the capacity."""
        self.overrun_us_max = max(self.overrun_us_max, self._now_us() - self.free_us)
