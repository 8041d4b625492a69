"""Base of outlets that do not observe reads: logs what was sent, and how far it was reported as read."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pyarrow as pa

from streamgauge.transports.busy_time import BusyInterval
from streamgauge.transports.spi import Chunk, Delivery, OutletConfig
from streamgauge.transports.unread_time import UnreadTime


class WriteOnlyOutlet:
    """Implements `Outlet` except `location`, `prepared` and `offer`.

    Args:
        config: the streams and the limits.
    """

    def __init__(self, config: OutletConfig) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._chunks: list[Chunk] = []
        self._frontier_us = 0
        self._unread = UnreadTime()
        self._sent = dict.fromkeys(config.schemas, 0)
        self.overflowed = False
        self.memory_full_us: int | None = None

    def extra_columns(self, _: str) -> tuple[str, ...]:
        return ()

    def waiting_us(self) -> int:
        with self._lock:
            return self._unread.us

    def frontier(self) -> int:
        return self._frontier_us

    def positions(self) -> dict[str, int]:
        with self._lock:
            return dict(self._sent)

    def mark_delivered(self, before_us: int) -> None:
        with self._lock:
            self._unread.read(before_us)

    def commit(self, before_us: int) -> None:
        """Nothing to drop: sent events are not stored here."""

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """The offered chunks. The recorder reports what batches read."""
        with self._lock:
            chunks, self._chunks = self._chunks, []
            return chunks, []

    def drain_aborted(self) -> list[int]:
        return []

    def drain_delivering(self) -> list[BusyInterval]:
        """Empty: readers only wait until an event is due."""
        return []

    def _waiting_with(self, from_us: int, to_us: int) -> int:
        """The event time that would wait to be read with one more chunk."""
        with self._lock:
            return self._unread.with_chunk(from_us, to_us)

    def _count(self, chunk: Chunk, batches: Mapping[str, pa.RecordBatch]) -> None:
        """Logs a sent chunk. The caller holds the lock."""
        self._frontier_us = chunk.to_us
        self._chunks.append(chunk)
        self._unread.add(chunk.from_us, chunk.to_us, chunk.events)
        for stream, batch in batches.items():
            self._sent[stream] += batch.num_rows
