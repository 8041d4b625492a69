"""Delays Ctrl-C and SIGTERM until a short block has ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delivers a Ctrl-C when the block has ended, and a second one at once, for a user who does not want to wait.

    Only the main thread receives signals, so the block changes nothing on other threads. Signals without a handler
    in Python keep their effect.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    usual = {number: handler for number, handler in handlers.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread():
        usual = {}
    came: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        if len(came) > 1:
            usual[signal.Signals(number)](number, frame)

    for number in usual:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        if len(came) == 1:
            usual[signal.Signals(came[0][0])](*came[0])
