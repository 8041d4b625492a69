"""The pace of a consumer of known capacity: one server that needs exactly 1 / capacity for each event.

The time at which the work taken on so far is done follows from the number of events alone, so what reading, computing,
sending or an overlong sleep cost is made good by the sleeps after it; only an idle server loses time.
"""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.events import US


class Pace:
    """When the server will be free. Times are microseconds of `now_us`'s clock; capacity is events per second."""

    def __init__(self, capacity_per_s: float, now_us: Callable[[], int]) -> None:
        self._capacity_per_s, self._now_us = capacity_per_s, now_us
        self._anchor_us, self._since_anchor = now_us(), 0
        self.worked = 0
        self.overrun_us_max = 0

    @property
    def free_us(self) -> int:
        """When the work taken on so far is done."""
        return self._anchor_us + round(self._since_anchor * US / self._capacity_per_s)

    def idle(self) -> None:
        """There was nothing to do until now: time that has passed is lost, as it is for any server."""
        now_us = self._now_us()
        if now_us > self.free_us:
            self._anchor_us, self._since_anchor = now_us, 0

    def take_on(self, events: int) -> None:
        self._since_anchor += events
        self.worked += events

    def note_overrun(self) -> None:
        """Called when own work is done, before sleeping: past `free_us`, the machine is slower than the capacity."""
        self.overrun_us_max = max(self.overrun_us_max, self._now_us() - self.free_us)
