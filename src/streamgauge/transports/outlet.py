"""The endpoint of a generator: what waits there unread, and the logs of what was offered and delivered."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.transports.spi import BusyTracker, Chunk, Delivery, OutletConfig, Overflow

Item = TypeVar("Item")


class UnreadTime:
    """The chunks of one partition that were offered and not read: one definition for every outlet.

    Two plans of a test bed may lie apart in event time. What was never offered cannot wait, so a gap does not count: a
    generator that waited for a read of it would wait for ever.

    A chunk without events counts only behind one with events. At the front nothing of it can be read.
    """

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, int, int]] = deque()
        self._read_us = self._chunks_us = self.events = 0

    @property
    def us(self) -> int:
        """The event time of the chunks that wait, without the part of the first one that was read, microseconds."""
        if not self._chunks:
            return 0
        return self._chunks_us - max(0, self._read_us - self._chunks[0][0])

    def add(self, from_us: int, to_us: int, events: int) -> None:
        """A chunk was offered."""
        self._chunks.append((from_us, to_us, events))
        self._chunks_us += to_us - from_us
        self.events += events
        self._drop_read()

    def read(self, before_us: int) -> None:
        """Everything before `before_us` was read. Earlier times than before change nothing."""
        self._read_us = max(self._read_us, before_us)
        self._drop_read()

    def _drop_read(self) -> None:
        while self._chunks and (self._chunks[0][1] <= self._read_us or not self._chunks[0][2]):
            from_us, to_us, events = self._chunks.popleft()
            self._chunks_us -= to_us - from_us
            self.events -= events


def drained(log: deque[Item]) -> list[Item]:
    """Removes and returns what a log has. One by one, because other threads may append meanwhile."""
    return [log.popleft() for _ in range(len(log))]


class Outlet(ABC):
    """The endpoint of one generator: it delivers events and logs deliveries.

    The defaults are those of an outlet that does not observe reads.

    Args:
        config: the streams and the limits.
    """

    location: str
    """The address for the SUT."""

    def __init__(self, config: OutletConfig) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._chunks: deque[Chunk] = deque()
        self._deliveries: deque[Delivery] = deque()
        self.aborted_us: deque[int] = deque()
        """The times of aborted reads, until they are reported."""
        self.frontier_us = self._bytes = 0
        self.delivering = BusyTracker(config.now_us)
        """Entered while a reader waits for a delivery, other than until one is due."""
        self._unread = UnreadTime()
        self._sent = dict.fromkeys(config.schemas, 0)
        self.overflowed = False
        self.memory_full_us: int | None = None
        """After an overflow by bytes: the event time that waited for delivery, microseconds. Otherwise None."""

    def prepared(self, _: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a stream, encoded ahead of time; slices of the result are offered when they are due."""
        return batch

    @abstractmethod
    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Makes the events in [from_us, to_us) of every stream available. Raises Overflow at the limit.

        Without events, only the frontier moves, and nothing is raised.
        """

    def extra_columns(self, _: str) -> tuple[str, ...]:
        """Lineage columns of a stream that `prepared` takes in addition to those that messages hold."""
        return ()

    def waiting_us(self) -> int:
        """The event time that was offered and not read; 0 if everything was read, whatever the next plan's time."""
        with self._lock:
            return self._unread.us

    def positions(self) -> dict[str, int]:
        """Stream to the number of sent events."""
        with self._lock:
            return dict(self._sent)

    def mark_delivered(self, before_us: int) -> None:
        """Reports that everything before `before_us` was read, if the outlet does not observe reads."""
        with self._lock:
            self._unread.read(before_us)

    def commit(self, before_us: int) -> None:  # noqa: B027 - few store events
        """Drops events before `before_us`, which will not be read again. Sent events are not stored here."""

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """The chunks offered and the deliveries made since the last call.

        Without deliveries, the recorder reports what batches read.
        """
        with self._lock:
            return drained(self._chunks), drained(self._deliveries)

    def note_aborted(self) -> None:
        """Logs an aborted read."""
        self.aborted_us.append(self._config.now_us())

    def _refuse_beyond(self, from_us: int, to_us: int, new_bytes: int, waiting: str) -> None:
        """Raises Overflow if one more chunk exceeds a limit. `waiting`: the message, of `seconds` and `bytes`."""
        with self._lock:
            waiting_us, waiting_bytes = self._unread.us + to_us - from_us, self._bytes + new_bytes
        if waiting_us > self._config.bound_us or waiting_bytes > self._config.bytes_max:
            self._refuse_unkept()
            self.overflowed = True
            self.memory_full_us = waiting_us if waiting_us <= self._config.bound_us else None
            raise Overflow(waiting.format(seconds=waiting_us / US, bytes=waiting_bytes))

    def _refuse_unkept(self) -> None:  # noqa: B027 - few depend on a broker
        """Raises DriverError if others than the SUT are at fault that much is unread."""

    def _count(self, chunk: Chunk, batches: Mapping[str, pa.RecordBatch]) -> None:
        """Logs an offered chunk. The caller holds the lock."""
        self.frontier_us = chunk.to_us
        self._chunks.append(chunk)
        self._unread.add(chunk.from_us, chunk.to_us, chunk.events)
        for stream, batch in batches.items():
            self._sent[stream] += batch.num_rows
