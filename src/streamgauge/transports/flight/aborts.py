"""Detects aborted reads: the reader died or gave up.

The server sees remaining batches or a cancelled call. The cancellation may become visible only after the call, so both
are checked. A short range that was already sent is not always detected, but a retried task is seen as a redelivery.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

WATCH = "aborts"


class Watch(flight.ServerMiddleware):
    """Watches one call. `read` marks it as a read; at its end, `aborted` is called if it was incomplete."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        super().__init__()
        self._aborted = aborted
        self._read: tuple[Any, pa.RecordBatchReader] | None = None

    def read(self, context: Any, batches: pa.RecordBatchReader) -> None:
        self._read = context, batches

    def call_completed(self, exception: Any) -> None:
        # The context is only valid until this returns.
        read, self._read = self._read, None
        if read is not None and (read[0].is_cancelled() or _has_more(read[1])):
            self._aborted()


def _has_more(batches: pa.RecordBatchReader) -> bool:
    return next(iter(batches), None) is not None


class WatchReads(flight.ServerMiddlewareFactory):
    """Calls `aborted` for every aborted read."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        super().__init__()
        self._aborted = aborted

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> flight.ServerMiddleware:
        return Watch(self._aborted)
