"""Whether a process of ours ran at all: what it stamps while it stands still is late, and nobody else can know."""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamgauge.core.clock import US
from streamgauge.metrics.records import STILL_US_MIN

BEAT_US = 20_000


class Heartbeat:
    """When this process stood still: stopped, starved, or one of its threads held the interpreter for itself.

    A thread sleeps a beat at a time, and how late it wakes is how late every stamp of that time may be. Nothing is kept
    of a process that runs.
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
        """The process runs now; what lies between this and the beat before is a standstill where it is too long."""
        with self._lock:
            now_us = self._now_us()
            late_us = now_us - self._last_us - BEAT_US
            if late_us > STILL_US_MIN:
                self._stood_still.append((now_us, late_us))
            self._last_us = now_us

    def news(self) -> list[tuple[int, int]]:
        """(when it ended, how long it was) of each standstill since the last call, microseconds."""
        self.beat()  # whoever asks may be awake before the thread is, and not ask again
        with self._lock:
            stood_still, self._stood_still = self._stood_still, []
            return stood_still

    def _run(self) -> None:
        while not self._ended.wait(BEAT_US / US):
            self.beat()
