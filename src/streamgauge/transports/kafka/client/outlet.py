"""A generator's end: its events go to a partition of each stream's topic, and are counted.

What the system under test reads is not seen here: it asks the broker. How far it has come is told by `handed_out`, as
soon as the recorder knows that a batch has begun.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka.client.producer import Producer
from streamgauge.transports.kafka.client.settings import KafkaSettings
from streamgauge.transports.kafka.codecs.api import Encoding, columns_of, encoding
from streamgauge.transports.kafka.topic_names import topic_of
from streamgauge.transports.send_log import WriteOnlyOutlet
from streamgauge.transports.spi import Chunk, Delivery, EndpointConfig, OutletConfig, Overflow


class KafkaOutlet(WriteOnlyOutlet):
    """Implements `Outlet`.

    Args:
        at: the brokers, among the options, and the run's word in the place of a token.
        held: the streams, the bounds, and the partition of every topic which this generator's events go to.
    """

    def __init__(self, at: EndpointConfig, held: OutletConfig) -> None:
        super().__init__(held)
        self._settings, self._run = KafkaSettings.of(at.options), at.token
        self._producer: Producer | None = None
        self._encodings: dict[str, Encoding] = {}
        self._waiting: deque[tuple[int, int]] = deque()

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
        self._begin(from_us)
        waiting_us = self.waiting_us(to_us)
        if events and waiting_us > self._held.bound_us:
            self._refuse_unkept()
            self.overflowed = True
            raise Overflow(f"the broker holds {waiting_us / US:.1f} s that were not read")
        if events:
            self._producer = self._producer or self._opened()
            self._producer.send({stream: batch.column(0) for stream, batch in batches.items()})
        with self._lock:
            self._count(Chunk(from_us, to_us, events, published_us), batches)
            self._waiting.append((to_us, events))

    def handed_out(self, before_us: int) -> None:
        super().handed_out(before_us)
        with self._lock:
            while self._waiting and self._waiting[0][0] <= self._read_us:
                self._waiting.popleft()

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """DriverError where the broker lost what was sent, which is also looked for after the last event."""
        if self._producer is not None:
            self._producer.check()
        return super().drain_logs()

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
        streams = {name: (topic_of(self._run, name), each.messages) for name, each in self._encodings.items()}
        return Producer(self._settings, self._held.partition, streams)
