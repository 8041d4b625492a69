"""The queue of one generator: chunks of Arrow batches, replayable until committed, bounded in seconds and in bytes."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import INGEST_TIME
from streamgauge.transports.logs import Reader, ReadLog, UnreadTime
from streamgauge.transports.spi import BusyInterval, BusyTracker, Chunk, Delivery, Overflow

SMALL_ROWS = 32_768
"""Smaller batches are merged before delivery, because many small ones slow the reader down."""
LARGE_ROWS = 262_144
"""Batches are split to at most this many rows, so that a reader's copy fits into its cache."""


class FlightQueue:
    """All streams of one partition. Positions are event times; cuts are only possible at chunk borders.

    Args:
        streams: stream names.
        bound_us: the limit of event time that waits for its first delivery.
        bytes_max: the limit of stored bytes. Events in flight and events stored for redelivery count, so it may be
            reached while little waits (`memory_full_us`).
        now_us: the run's clock.

    Enter `delivering` while a reader waits for `take`.
    """

    def __init__(self, streams: tuple[str, ...], bound_us: int, bytes_max: int, now_us: Callable[[], int]) -> None:
        self._bound_us, self._bytes_max, self._now_us = bound_us, bytes_max, now_us
        self._lock = threading.Lock()
        self._borders: list[tuple[int, int]] = []
        self._batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in streams}
        self._sizes: list[int] = []
        self._bytes = 0
        self._unread = UnreadTime()
        self._frontier_us = 0
        self._committed_us = 0
        self._chunk_log: list[Chunk] = []
        self._delivery_log: list[Delivery] = []
        self._aborted_log: list[int] = []
        self._reads = {name: ReadLog(name) for name in streams}
        self.delivering = BusyTracker(now_us)
        self.overflowed = False
        self.memory_full_us: int | None = None

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Makes a chunk available. A chunk without events only moves the frontier and never overflows.

        Raises:
            Overflow: the limit in seconds or bytes is reached; nothing was added.
        """
        size = sum(batch.nbytes for batch in batches.values())
        events = sum(batch.num_rows for batch in batches.values())
        with self._lock:
            waiting_us = self._unread.with_chunk(from_us, to_us)
            if events and (waiting_us > self._bound_us or self._bytes + size > self._bytes_max):
                self.overflowed = True
                self.memory_full_us = waiting_us if waiting_us <= self._bound_us else None
                raise Overflow(f"queue full: {waiting_us / US:.1f} s or {self._bytes + size} bytes waiting")
            self._borders.append((from_us, to_us))
            for name, batch in batches.items():
                self._batches[name].append(batch)
            self._sizes.append(size)
            self._bytes += size
            self._frontier_us = to_us
            self._chunk_log.append(Chunk(from_us, to_us, events, published_us))
            self._unread.add(from_us, to_us, events)

    def waiting_us(self) -> int:
        """The event time of what not every reader has read."""
        with self._lock:
            return self._unread.us

    def frontier(self) -> int:
        return self._frontier_us

    def take(
        self,
        stream: str,
        from_us: int,
        to_us: int,
        columns: tuple[str, ...],
        batch: int,
        query: str = "",
        reader: int = 0,
    ) -> list[pa.RecordBatch]:
        """The events in [from_us, to_us) with `columns`, merged; `ingest_time` is added if requested.

        Raises:
            DriverError: the range is committed in part, lies beyond the frontier, or ends inside a chunk.
        """
        with self._lock:
            self._refuse_lost(stream, from_us, to_us)
            parts = self._log_deliveries(stream, from_us, to_us, batch, (query, reader))
            pieces = [(self._slice(stream, part.from_us, part.to_us), part.ingest_us) for part in parts]
        return [merged for chunk, ingest_us in pieces for merged in _merged(chunk, columns, ingest_us)]

    def positions(self) -> dict[str, int]:
        """Empty: the queue observes every delivery."""
        return {}

    def mark_delivered(self, before_us: int) -> None:
        """Not needed: the queue observes every delivery."""

    def commit(self, before_us: int) -> None:
        with self._lock:
            count = bisect.bisect_right(self._borders, before_us, key=lambda border: border[1])
            self._bytes -= sum(self._sizes[:count])
            del self._borders[:count], self._sizes[:count]
            for batches in self._batches.values():
                del batches[:count]
            self._committed_us = max(self._committed_us, before_us)
            for reads in self._reads.values():
                reads.forget(before_us)

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """The log entries since the last call."""
        with self._lock:
            chunks, self._chunk_log = self._chunk_log, []
            deliveries, self._delivery_log = self._delivery_log, []
            return chunks, deliveries

    def note_aborted(self) -> None:
        """Logs an aborted read."""
        with self._lock:
            self._aborted_log.append(self._now_us())

    def drain_aborted(self) -> list[int]:
        """The times of aborted reads since the last call, microseconds."""
        with self._lock:
            aborted, self._aborted_log = self._aborted_log, []
            return aborted

    def drain_delivering(self) -> list[BusyInterval]:
        """The intervals since the last call with at least one delivery in progress."""
        return self.delivering.news()

    def _refuse_lost(self, stream: str, from_us: int, to_us: int) -> None:
        if from_us < self._committed_us or to_us > self._frontier_us:
            available = f"[{self._committed_us}, {self._frontier_us})"
            raise DriverError(f"{stream}: [{from_us}, {to_us}) was requested, but only {available} is stored")
        for cut_us in (from_us, to_us):
            index = bisect.bisect_right(self._borders, cut_us, key=lambda border: border[1])
            if index < len(self._borders) and self._borders[index][0] < cut_us:
                raise DriverError(f"{stream}: {cut_us} lies inside the chunk {self._borders[index]}; cut at borders")

    def _slice(self, stream: str, from_us: int, to_us: int) -> list[pa.RecordBatch]:
        first = bisect.bisect_left(self._borders, from_us, key=lambda border: border[0])
        last = bisect.bisect_right(self._borders, to_us, key=lambda border: border[1])
        return self._batches[stream][first:last]

    def _log_deliveries(self, stream: str, from_us: int, to_us: int, batch: int, reader: Reader) -> list[Delivery]:
        parts = self._reads[stream].note(from_us, to_us, batch, reader, self._now_us())
        self._unread.read(min(reads.reached_us for reads in self._reads.values()))
        deliveries = [
            replace(part, events=sum(chunk.num_rows for chunk in self._slice(stream, part.from_us, part.to_us)))
            for part in parts
        ]
        self._delivery_log += deliveries
        return deliveries


def _merged(chunks: list[pa.RecordBatch], columns: tuple[str, ...], ingest_us: int) -> list[pa.RecordBatch]:
    chunks = [chunk for chunk in chunks if chunk.num_rows]
    if not chunks:
        return []
    table = pa.Table.from_batches(chunks)
    if table.num_rows < SMALL_ROWS * len(chunks):
        table = table.combine_chunks()
    return [_shaped(batch, columns, ingest_us) for batch in table.to_batches(max_chunksize=LARGE_ROWS)]


def _shaped(batch: pa.RecordBatch, columns: tuple[str, ...], ingest_us: int) -> pa.RecordBatch:
    def column(name: str) -> pa.Array:
        if name == INGEST_TIME:
            return pa.array(np.full(batch.num_rows, ingest_us, dtype=np.int64))
        return batch.column(name)

    return pa.RecordBatch.from_arrays([column(name) for name in columns], names=list(columns))
