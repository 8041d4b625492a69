"""How long an endpoint kept the SUT waiting, because a slow transport would look like a slow SUT."""

from __future__ import annotations

import threading
from collections.abc import Callable

BusyInterval = tuple[int, int]
"""(since, until), microseconds of the run's clock, until exclusive."""


class BusyTracker:
    """A context manager that records when at least one thread was inside. Overlapping threads count once.

    Each use reads the clock twice, so use it per batch, not per event.
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
        """The intervals since the last call, ascending and disjoint. An open interval is reported up to now."""
        with self._lock:
            if self._inside:
                now_us = self._now_us()
                self._spent.append((self._since_us, now_us))
                self._since_us = now_us
            spent, self._spent = self._spent, []
            return spent
