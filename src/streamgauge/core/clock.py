"""The clock of a run, in microseconds since the epoch, and work that is repeated at a fixed pace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

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


@contextmanager
def repeated(action: Callable[[], object], seconds: float, thread_name: str) -> Iterator[None]:
    """Calls `action` at once and then every `seconds`, from its own thread, until the end of the block."""
    over = Event()

    def repeat() -> None:
        action()
        while not over.wait(seconds):
            action()

    thread = Thread(target=repeat, name=thread_name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
