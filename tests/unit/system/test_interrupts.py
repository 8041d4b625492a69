"""Ctrl-C that waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.system.interrupts import delay_interrupts


@pytest.fixture(autouse=True)
def usual() -> Iterator[Any]:
    """Python's own handler, which stands again afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press(times: int, done: list[str], error: Exception | None = None) -> None:
    """Ctrl-C in the block, so often; then its error, or its end."""
    with delay_interrupts():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error
        done.append("whole")


@pytest.mark.parametrize(
    ("times", "error", "whole"),
    [(1, None, ["whole"]), (2, None, []), (1, ValueError("not forgotten over this"), [])],
    ids=["comes when the block has ended", "the second comes at once", "comes after an error too"],
)
def test_ctrl_c_waits(usual: Any, times: int, error: Exception | None, whole: list[str]) -> None:
    """Once, for a short block; then all is as it was."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        press(times, done, error)
    assert done == whole
    assert signal.getsignal(signal.SIGINT) is usual
    press(0, done)
    assert done == [*whole, "whole"]


def test_another_thread_passes_through(usual: Any) -> None:
    """It may not set a handler, and none is told there."""
    done: list[Any] = []

    def work() -> None:
        with delay_interrupts():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [usual]


def test_who_ignores_ctrl_c_still_does() -> None:
    """As a program started with nohup does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with delay_interrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
