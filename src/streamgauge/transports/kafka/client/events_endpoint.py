"""The generator's endpoint for Kafka: sends events to one partition of each stream's topic.

It does not observe reads, because the SUT reads from the broker. `mark_delivered` reports progress when the recorder
knows that a batch has started.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import EVENT_TIME, ColumnTypes
from streamgauge.transports.kafka.encodings.api import ProgramFormat
from streamgauge.transports.kafka.encodings.choice import Encoding, columns_of, encoding, format_of
from streamgauge.transports.kafka.outlet import Producer
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.topics import topic_of
from streamgauge.transports.logs import WriteOnlyOutlet
from streamgauge.transports.spi import Chunk, Delivery, EndpointConfig, OutletConfig, Overflow

MS = 1000
"""Microseconds."""


class KafkaOutlet(WriteOnlyOutlet):
    """Implements `Outlet`.

    Args:
        at: the brokers (in its options), and the run id as its token.
        config: the streams, the limits, and the partition for this generator's events.
    """

    def __init__(self, at: EndpointConfig, config: OutletConfig) -> None:
        super().__init__(config)
        self._settings, self._run = KafkaSettings.from_options(at.options), at.token
        self._program = at.program
        self._planned = self._program.planned if self._program is not None else frozenset()
        self._producer: Producer | None = None
        self._encodings: dict[str, Encoding | ProgramFormat] = {}

    @property
    def location(self) -> str:
        return self._settings.brokers

    def extra_columns(self, stream: str) -> tuple[str, ...]:
        return (EVENT_TIME,) if stream in self._planned else ()

    def prepared(self, stream: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events as messages in one column, with columns of their keys and timestamps if the stream has them."""
        if stream not in self._encodings:
            extra = self.extra_columns(stream)
            held = pa.schema([each for each in batch.schema if each.name not in extra])
            self._encodings[stream] = self._encoding(stream, columns_of(held))
        columns = {"message": self._encodings[stream].encode(batch)}
        if (key := self._config.keys.get(stream)) is not None:
            columns["key"] = pc.cast(batch.column(key), pa.string())
        if stream in self._planned:
            columns["time_ms"] = pc.divide(batch.column(EVENT_TIME), MS)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Sends a chunk of `prepared` events. A chunk without events only moves the frontier.

        Raises:
            Overflow: more event time than the limit is unread; nothing was sent.
            DriverError: the broker lost messages, accepts too little, or has not stored messages for long.
        """
        events = sum(batch.num_rows for batch in batches.values())
        waiting_us = self._waiting_with(from_us, to_us)
        if events and waiting_us > self._config.bound_us:
            self._refuse_unkept()
            self.overflowed = True
            raise Overflow(f"the broker holds {waiting_us / US:.1f} s that were not read")
        if events:
            self._producer = self._producer or self._opened()
            keys = {stream: batch.column("key") for stream, batch in batches.items() if stream in self._config.keys}
            times_ms = {stream: batches[stream].column("time_ms") for stream in batches if stream in self._planned}
            messages = {stream: batch.column("message") for stream, batch in batches.items()}
            self._producer.send(messages, keys, times_ms)
        with self._lock:
            self._count(Chunk(from_us, to_us, events, published_us), batches)

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """Raises DriverError if the broker lost messages, also after the last event."""
        if self._producer is not None:
            self._producer.check()
        return super().drain_logs()

    def _refuse_unkept(self) -> None:
        """Raises DriverError if the broker did not store most unread events: then the SUT is not at fault."""
        if self._producer is None:
            return
        self._producer.check()  # also updates the number of pending messages
        if 2 * self._producer.pending > self._unread.events:
            unkept = f"{self._producer.pending} of the {self._unread.events} events that wait to be read"
            raise DriverError(f"the broker has not kept {unkept}")

    def _encoding(self, stream: str, columns: ColumnTypes) -> Encoding | ProgramFormat:
        if self._program is not None:
            return format_of(self._program.inputs[stream].format, columns)
        return encoding(self._settings.encoding, columns)

    def _opened(self) -> Producer:
        """Opens the producer at the first chunk with events; every chunk has the same streams."""
        topics = self._program.input_topics(self._run) if self._program is not None else {}
        streams = {
            name: (topics.get(name) or topic_of(self._run, name), each.messages)
            for name, each in self._encodings.items()
        }
        return Producer(self._settings, self._config.partition, streams)
