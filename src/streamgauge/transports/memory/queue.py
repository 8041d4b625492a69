"""The queue of one generator: chunks of Arrow batches, replayable until committed, bounded in seconds and in bytes."""

import bisect
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pyarrow as pa

from streamgauge.core.errors import DriverError
from streamgauge.core.schema import INGEST_TIME
from streamgauge.transports.delivery_log import ReadLog
from streamgauge.transports.outlet import Outlet
from streamgauge.transports.spi import Chunk, OutletConfig

SMALL_ROWS = 32_768
"""Smaller batches are merged before delivery, because many small ones slow the reader down."""
LARGE_ROWS = 262_144
"""Batches are split to at most this many rows, so that a reader's copy fits into its cache."""
END_US = attrgetter("to_us")
"""The end of a chunk."""


class FlightQueue(Outlet):
    """All streams of one partition. Positions are event times; cuts are only possible at chunk borders.

    The limit in event time is of what waits for its first delivery. The limit in bytes is of stored events, also those
    in flight and those kept for redelivery, so it may be reached while little waits (`memory_full_us`).

    Enter `delivering` while a reader waits for `take`.
    """

    def __init__(self, config: OutletConfig) -> None:
        super().__init__(config)
        self._stored: list[Chunk] = []
        self._batches: list[dict[str, pa.RecordBatch]] = []
        self._committed_us = 0
        self._reads = {name: ReadLog(name) for name in config.schemas}

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Makes a chunk available. A chunk without events only moves the frontier and never overflows.

        Raises:
            Overflow: the limit in seconds or bytes is reached; nothing was added.
        """
        size = sum(batch.nbytes for batch in batches.values())
        chunk = Chunk(from_us, to_us, sum(batch.num_rows for batch in batches.values()), published_us)
        with self._lock:
            if chunk.events:
                self._refuse_beyond(from_us, to_us, size, "queue full: {seconds:.1f} s or {bytes} bytes waiting")
            self._stored.append(chunk)
            self._batches.append(batches)
            self._bytes += size
            self._count(chunk, batches)

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
            parts = self._reads[stream].note(from_us, to_us, batch, (query, reader), self._config.now_us())
            self._unread.read(min(reads.reached_us for reads in self._reads.values()))
            pieces = [(part, self._slice(stream, part.from_us, part.to_us)) for part in parts]
            self._deliveries += [
                replace(part, events=sum(chunk.num_rows for chunk in chunks)) for part, chunks in pieces
            ]
        return [merged for part, chunks in pieces for merged in _merged(chunks, columns, part.ingest_us)]

    def frontier_within(self, position_us: int = 0, events_max: int | None = None) -> int:
        """The frontier, or the last border up to which at most so many events lie behind a position.

        At least one chunk with events is within, so that a reader goes on.
        """
        if events_max is None:
            return self.frontier_us
        with self._lock:
            events, first = 0, bisect.bisect_left(self._stored, position_us, key=attrgetter("from_us"))
            for chunk in self._stored[first:]:
                if events and events + chunk.events > events_max:
                    return chunk.from_us
                events += chunk.events
            return self.frontier_us

    def commit(self, before_us: int) -> None:
        with self._lock:
            count = bisect.bisect_right(self._stored, before_us, key=END_US)
            self._bytes -= sum(batch.nbytes for batches in self._batches[:count] for batch in batches.values())
            del self._stored[:count], self._batches[:count]
            self._committed_us = max(self._committed_us, before_us)
            for reads in self._reads.values():
                reads.forget(before_us)

    def _refuse_lost(self, stream: str, from_us: int, to_us: int) -> None:
        if from_us < self._committed_us or to_us > self.frontier_us:
            raise DriverError(
                f"{stream}: [{from_us}, {to_us}) was requested, but only [{self._committed_us}, {self.frontier_us}) "
                "is stored"
            )
        for cut_us in (from_us, to_us):
            index = bisect.bisect_right(self._stored, cut_us, key=END_US)
            if index < len(self._stored) and (chunk := self._stored[index]).from_us < cut_us:
                borders = chunk.from_us, chunk.to_us
                raise DriverError(f"{stream}: {cut_us} lies inside the chunk {borders}; cut at borders")

    def _slice(self, stream: str, from_us: int, to_us: int) -> list[pa.RecordBatch]:
        first = bisect.bisect_left(self._stored, from_us, key=attrgetter("from_us"))
        last = bisect.bisect_right(self._stored, to_us, key=END_US)
        return [batches[stream] for batches in self._batches[first:last]]


def _merged(chunks: list[pa.RecordBatch], columns: tuple[str, ...], ingest_us: int) -> list[pa.RecordBatch]:
    chunks = [chunk for chunk in chunks if chunk.num_rows]
    if not chunks:
        return []
    table = pa.Table.from_batches(chunks)
    if table.num_rows < SMALL_ROWS * len(chunks):
        table = table.combine_chunks()
    if INGEST_TIME in columns:
        table = table.append_column(INGEST_TIME, pa.array(np.full(table.num_rows, ingest_us, np.int64)))
    return table.select(columns).to_batches(max_chunksize=LARGE_ROWS)
