"""Detects standstills of a driver process, because its stamps are late while it does not run."""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamgauge.core.clock import US
from streamgauge.metrics.records import STILL_US_MIN

BEAT_US = 20_000


class Heartbeat:
    """Standstills of this process: it was stopped or starved, or one thread held the interpreter lock.

    A thread sleeps for one beat at a time. Stamps may be as late as the thread wakes. Only long standstills are stored.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._last_us = now_us()
        self._stood_still: list[tuple[int, int]] = []
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def beat(self) -> None:
        """Notes that the process runs now. A long gap since the previous beat is a standstill."""
        with self._lock:
            now_us = self._now_us()
            late_us = now_us - self._last_us - BEAT_US
            if late_us > STILL_US_MIN:
                self._stood_still.append((now_us, late_us))
            self._last_us = now_us

    def news(self) -> list[tuple[int, int]]:
        """(end, duration) of each standstill since the last call, microseconds."""
        self.beat()  # the caller may wake up before the thread, and this may be its last call
        with self._lock:
            stood_still, self._stood_still = self._stood_still, []
            return stood_still

    def _run(self) -> None:
        while not self._ended.wait(BEAT_US / US):
            self.beat()
