"""The current step of a long task as text, which another thread shows as progress."""

from __future__ import annotations

from collections.abc import Callable


class ProgressText:
    """The current step as text, set by the worker or read from a process that works for it."""

    def __init__(self, text: str) -> None:
        self._read: Callable[[], str] = lambda: text

    def __call__(self) -> str:
        return self._read()

    def set(self, text: str) -> None:
        """Sets the current step."""
        self._read = lambda: text

    def follow(self, read: Callable[[], str], otherwise: str) -> None:
        """Shows the result of `read`, or `otherwise` while that is empty."""
        self._read = lambda: read() or otherwise
