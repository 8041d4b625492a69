"""What a long piece of work does at the moment, in words, for whoever shows its progress from another thread."""

from __future__ import annotations

from collections.abc import Callable


class Stage:
    """The text is the worker's own, or it is read from another process that works for it."""

    def __init__(self, text: str) -> None:
        self._read: Callable[[], str] = lambda: text

    def __call__(self) -> str:
        return self._read()

    def set(self, text: str) -> None:
        """From now on the work is this."""
        self._read = lambda: text

    def follow(self, read: Callable[[], str], otherwise: str) -> None:
        """From now on it is what `read` gives, and `otherwise` while that is empty."""
        self._read = lambda: read() or otherwise
