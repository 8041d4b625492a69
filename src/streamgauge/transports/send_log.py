"""What outlets have in common that send events away and see no reads: an account of what was sent, and of how far it is
said to be read.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pyarrow as pa

from streamgauge.transports.busy_time import BusyInterval
from streamgauge.transports.spi import Chunk, Delivery, OutletConfig


class WriteOnlyOutlet:
    """Implements `Outlet` but for the way out: `location`, `prepared` and `offer`.

    Args:
        held: the streams and the bounds.
    """

    def __init__(self, held: OutletConfig) -> None:
        self._held = held
        self._lock = threading.RLock()
        self._chunks: list[Chunk] = []
        self._frontier_us = self._read_us = 0
        self._first_us: int | None = None
        self._sent = dict.fromkeys(held.schemas, 0)
        self.overflowed = False
        self.memory_full_us: int | None = None

    def waiting_us(self, to_us: int) -> int:
        """How much event time would wait to be read, were everything sent up to `to_us`."""
        begun_us = to_us if self._first_us is None else self._first_us
        return to_us - max(self._read_us, begun_us)

    def frontier(self) -> int:
        return self._frontier_us

    def positions(self) -> dict[str, int]:
        with self._lock:
            return dict(self._sent)

    def handed_out(self, before_us: int) -> None:
        self._read_us = max(self._read_us, before_us)

    def commit(self, before_us: int) -> None:
        """What was sent is not kept here."""

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """What was offered; what batches read is told by the recorder."""
        with self._lock:
            chunks, self._chunks = self._chunks, []
            return chunks, []

    def drain_aborted(self) -> list[int]:
        return []

    def drain_handing_out(self) -> list[BusyInterval]:
        """Nothing: nobody waits for us longer than until an event is due."""
        return []

    def _begin(self, from_us: int) -> None:
        """Before a chunk is held against the bound: a gap between two plans counts for nothing."""
        if self._first_us is None or from_us != self._frontier_us:
            self._first_us = from_us

    def _count(self, chunk: Chunk, batches: Mapping[str, pa.RecordBatch]) -> None:
        """A chunk that is on its way; the caller has the lock."""
        self._frontier_us = chunk.to_us
        self._chunks.append(chunk)
        for stream, batch in batches.items():
            self._sent[stream] += batch.num_rows
