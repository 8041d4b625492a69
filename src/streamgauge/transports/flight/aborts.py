"""Reads that ended before the reader had all of them: it died, or it gave up.

The server sees of it that batches were left over, or that the call was cancelled: the second may come to be known a
moment after the call has ended, so the first is asked too. A range so short that it was on its way whole before the
reader went is not always seen here; where the task is run again, its reading again is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

WATCH = "aborts"


class Watch(flight.ServerMiddleware):
    """Of one call: `read` names it as one that hands out events; at its end it is told whether it was cut off."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        super().__init__()
        self._aborted = aborted
        self._read: tuple[Any, pa.RecordBatchReader] | None = None

    def read(self, context: Any, batches: pa.RecordBatchReader) -> None:
        self._read = context, batches

    def call_completed(self, exception: Any) -> None:
        # The context is valid until this returns, and no longer.
        read, self._read = self._read, None
        if read is not None and (read[0].is_cancelled() or _has_more(read[1])):
            self._aborted()


def _has_more(batches: pa.RecordBatchReader) -> bool:
    return next(iter(batches), None) is not None


class WatchReads(flight.ServerMiddlewareFactory):
    """Calls `aborted` for every read that its reader cut off."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        super().__init__()
        self._aborted = aborted

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> flight.ServerMiddleware:
        return Watch(self._aborted)
