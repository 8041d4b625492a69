"""A generator's end: its events go to a partition of each stream's topic, and are counted.

What the system under test reads is not seen here: it asks the broker. How far it has come is told by `handed_out`, as
soon as the recorder knows that a batch has begun.
"""

from __future__ import annotations

import threading
from collections import deque

import pyarrow as pa

from streamgauge.errors import DriverError
from streamgauge.events import US
from streamgauge.transports.busy import Spent
from streamgauge.transports.kafka.encodings import Encoding, columns_of, encoding
from streamgauge.transports.kafka.names import topic_of
from streamgauge.transports.kafka.producer import Producer
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.seam import Chunk, HandOut, Held, Listen, Overflow


class KafkaOutlet:
    """Fills the seam's `Outlet`.

    Args:
        at: the brokers, among the options, and the run's word in the place of a token.
        held: the streams, the bounds, and the partition of every topic which this generator's events go to.
    """

    def __init__(self, at: Listen, held: Held) -> None:
        self._settings, self._run, self._held = KafkaSettings.of(at.options), at.token, held
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._encodings: dict[str, Encoding] = {}
        self._chunks: list[Chunk] = []
        self._waiting: deque[tuple[int, int]] = deque()
        self._frontier_us = self._read_us = 0
        self._first_us: int | None = None
        self._sent = dict.fromkeys(held.schemas, 0)
        self.overflowed = False
        self.memory_full_us: int | None = None

    @property
    def location(self) -> str:
        return self._settings.brokers

    def prepared(self, stream: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events as messages, in one column."""
        if stream not in self._encodings:
            self._encodings[stream] = encoding(self._settings.encoding, columns_of(batch.schema))
        return pa.RecordBatch.from_arrays([self._encodings[stream].encode(batch)], names=["message"])

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Send a chunk of what was `prepared`. One without events only moves the frontier.

        Raises:
            Overflow: more event time than the bound was not read yet; nothing was sent.
            DriverError: the broker lost messages, takes too little, or has kept nothing for long.
        """
        events = sum(batch.num_rows for batch in batches.values())
        if self._first_us is None or from_us != self._frontier_us:
            self._first_us = from_us  # a gap between two plans counts for nothing
        waiting_us = self.waiting_us(to_us)
        if events and waiting_us > self._held.bound_us:
            self._refuse_unkept()
            self.overflowed = True
            raise Overflow(f"the broker holds {waiting_us / US:.1f} s that were not read")
        if events:
            self._producer = self._producer or self._opened()
            self._producer.send({stream: batch.column(0) for stream, batch in batches.items()})
        with self._lock:
            self._frontier_us = to_us
            self._chunks.append(Chunk(from_us, to_us, events, published_us))
            self._waiting.append((to_us, events))
            for stream, batch in batches.items():
                self._sent[stream] += batch.num_rows

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
        with self._lock:
            while self._waiting and self._waiting[0][0] <= self._read_us:
                self._waiting.popleft()

    def commit(self, before_us: int) -> None:
        """The broker keeps everything."""

    def drain_logs(self) -> tuple[list[Chunk], list[HandOut]]:
        """DriverError where the broker lost what was sent, which is also looked for after the last event."""
        if self._producer is not None:
            self._producer.check()
        with self._lock:
            chunks, self._chunks = self._chunks, []
            return chunks, []

    def drain_aborted(self) -> list[int]:
        return []

    def drain_handing_out(self) -> list[Spent]:
        return []

    def _refuse_unkept(self) -> None:
        """What the broker has not kept nobody can read: where that is most of what waits to be read, it is no fault of
        the system under test.
        """
        if self._producer is None:
            return
        self._producer.check()  # which also counts what was kept in the meantime
        with self._lock:
            unread = sum(events for to_us, events in self._waiting if to_us > self._read_us)
        if 2 * self._producer.waiting > unread:
            unkept = f"{self._producer.waiting} of the {unread} events that wait to be read"
            raise DriverError(f"the broker has not kept {unkept}")

    def _opened(self) -> Producer:
        """When all streams are known: every chunk has those that the first one has."""
        ways = {name: (topic_of(self._run, name), each.messages) for name, each in self._encodings.items()}
        return Producer(self._settings, self._held.partition, ways)
