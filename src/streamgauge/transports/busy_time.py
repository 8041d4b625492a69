"""How long an end of the transport kept the system under test waiting: what is slow there looks like a slow system."""

from __future__ import annotations

import threading
from collections.abc import Callable

BusyInterval = tuple[int, int]
"""(since, until), microseconds of the run's clock, until exclusive."""


class BusyTracker:
    """When at least one thread was inside; a context manager. Threads that are inside together count once.

    Twice a reading of the clock for each time inside, so that it is for work on thousands of events, not on each one.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._inside = 0
        self._since_us = 0
        self._spent: list[BusyInterval] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._since_us = self._now_us()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._spent.append((self._since_us, self._now_us()))

    def news(self) -> list[BusyInterval]:
        """The times since the last call, ascending and apart; one that goes on is given as far as it is known."""
        with self._lock:
            if self._inside:
                now_us = self._now_us()
                self._spent.append((self._since_us, now_us))
                self._since_us = now_us
            spent, self._spent = self._spent, []
            return spent
