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
from streamgauge.core.lineage_columns import INGEST_TIME
from streamgauge.transports.busy_time import BusyInterval, BusyTracker
from streamgauge.transports.read_log import Reader, ReadLog
from streamgauge.transports.spi import Chunk, Delivery, Overflow

SMALL_ROWS = 32_768
"""Batches smaller than this are merged before they are handed out: many small ones cost the reader its throughput."""
LARGE_ROWS = 262_144
"""Batches are cut to at most this many rows, so that a reader's copy stays in its cache."""


class FlightQueue:
    """All streams of one partition. Positions are event times; chunk borders are the only cuts there are.

    Args:
        streams: stream names.
        bound_us: how much event time may wait to be handed out first.
        bytes_max: how many bytes may be kept in all, forgotten ones excluded: those in flight count, and those that are
            kept for a repeat, so it may be reached while little waits (`memory_full_us`).
        now_us: the run's clock.

    `handing_out` is entered by who takes from it for a reader that waits.
    """

    def __init__(self, streams: tuple[str, ...], bound_us: int, bytes_max: int, now_us: Callable[[], int]) -> None:
        self._bound_us, self._bytes_max, self._now_us = bound_us, bytes_max, now_us
        self._lock = threading.Lock()
        self._borders: list[tuple[int, int]] = []
        self._batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in streams}
        self._sizes: list[int] = []
        self._bytes = 0
        self._frontier_us = 0
        self._committed_us = 0
        self._chunk_log: list[Chunk] = []
        self._hand_out_log: list[Delivery] = []
        self._aborted_log: list[int] = []
        self._reads = {name: ReadLog(name) for name in streams}
        self.handing_out = BusyTracker(now_us)
        self.overflowed = False
        self.memory_full_us: int | None = None

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Make a chunk available. One without events only moves the frontier, for which there is always room.

        Raises:
            Overflow: the bound in seconds or bytes is reached; nothing was added.
        """
        size = sum(batch.nbytes for batch in batches.values())
        events = sum(batch.num_rows for batch in batches.values())
        with self._lock:
            waiting_us = to_us - self._first_unread(from_us)
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

    def waiting_us(self, to_us: int) -> int:
        """How much event time would wait to be handed out, were the queue filled up to `to_us`."""
        with self._lock:
            return to_us - self._first_unread(to_us)

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
        """The events of [from_us, to_us) with `columns`, merged; `ingest_time` is added where it is asked for.

        Raises:
            DriverError: a part of the range was committed, or lies beyond the frontier, or it ends inside a chunk.
        """
        with self._lock:
            self._refuse_lost(stream, from_us, to_us)
            parts = self._log_hand_out(stream, from_us, to_us, batch, (query, reader))
            pieces = [(self._slice(stream, part.from_us, part.to_us), part.ingest_us) for part in parts]
        return [made for chunk, ingest_us in pieces for made in _merged(chunk, columns, ingest_us)]

    def positions(self) -> dict[str, int]:
        """Nothing: every hand-out is seen here."""
        return {}

    def handed_out(self, before_us: int) -> None:
        """Nothing is news here."""

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
        """What was logged since the last call."""
        with self._lock:
            chunks, self._chunk_log = self._chunk_log, []
            hand_outs, self._hand_out_log = self._hand_out_log, []
            return chunks, hand_outs

    def note_aborted(self) -> None:
        """A reader went before it had all that it had asked for."""
        with self._lock:
            self._aborted_log.append(self._now_us())

    def drain_aborted(self) -> list[int]:
        """When reads were aborted since the last call, microseconds."""
        with self._lock:
            aborted, self._aborted_log = self._aborted_log, []
            return aborted

    def drain_handing_out(self) -> list[BusyInterval]:
        """When at least one hand-out was under way since the last call."""
        return self.handing_out.news()

    def _first_unread(self, otherwise_us: int) -> int:
        """Where the first event lies that not every reader has had; a gap between two plans counts for nothing."""
        handed_us = min(reads.reached_us for reads in self._reads.values())
        index = bisect.bisect_right(self._borders, handed_us, key=lambda border: border[1])
        return max(handed_us, self._borders[index][0]) if index < len(self._borders) else otherwise_us

    def _refuse_lost(self, stream: str, from_us: int, to_us: int) -> None:
        if from_us < self._committed_us or to_us > self._frontier_us:
            kept = f"[{self._committed_us}, {self._frontier_us})"
            raise DriverError(f"{stream}: [{from_us}, {to_us}) was asked for; kept is {kept}")
        for cut_us in (from_us, to_us):
            index = bisect.bisect_right(self._borders, cut_us, key=lambda border: border[1])
            if index < len(self._borders) and self._borders[index][0] < cut_us:
                raise DriverError(f"{stream}: {cut_us} lies inside the chunk {self._borders[index]}; cut at borders")

    def _slice(self, stream: str, from_us: int, to_us: int) -> list[pa.RecordBatch]:
        first = bisect.bisect_left(self._borders, from_us, key=lambda border: border[0])
        last = bisect.bisect_right(self._borders, to_us, key=lambda border: border[1])
        return self._batches[stream][first:last]

    def _log_hand_out(self, stream: str, from_us: int, to_us: int, batch: int, reader: Reader) -> list[Delivery]:
        parts = self._reads[stream].note(from_us, to_us, batch, reader, self._now_us())
        counted = [replace(part, events=self._count(part)) for part in parts]
        self._hand_out_log += counted
        return counted

    def _count(self, part: Delivery) -> int:
        return sum(batch.num_rows for batch in self._slice(part.stream, part.from_us, part.to_us))


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
