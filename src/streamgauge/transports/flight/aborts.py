"""Reads that ended before the reader had all of them: it died, or it gave up.

A cancelled call is all that the server sees of it. A range so short that it was on its way whole before the reader went
is not seen here; where the task is run again, its reading again is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.flight as flight

WATCH = "aborts"


class Watch(flight.ServerMiddleware):
    """Of one call: `read` names it as one that hands out events; at its end it is told whether it was cut off."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        super().__init__()
        self._aborted = aborted
        self._context: Any = None

    def read(self, context: Any) -> None:
        self._context = context

    def call_completed(self, exception: Any) -> None:
        # The context is valid until this returns, and no longer.
        context, self._context = self._context, None
        if context is not None and context.is_cancelled():
            self._aborted()


class WatchReads(flight.ServerMiddlewareFactory):
    """Calls `aborted` for every read that its reader cut off."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        super().__init__()
        self._aborted = aborted

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> flight.ServerMiddleware:
        return Watch(self._aborted)
