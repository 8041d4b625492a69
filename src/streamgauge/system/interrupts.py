"""Ctrl-C, or a request to end, that waits until something short is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_back() -> Iterator[None]:
    """A Ctrl-C within comes when the block has ended; a second one at once, for somebody whom that takes too long.

    Only the main thread is told of one, so that any other thread just passes through; and a signal that is ignored, or
    ends the process, still does.
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
