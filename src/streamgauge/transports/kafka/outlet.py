"""The generator's endpoint for Kafka: sends events to one partition of each stream's topic, in planned order.

The producer is idempotent, so the n-th event of a partition is at offset n despite retries. So offsets and planned
times determine each other, as on every transport.

The endpoint does not observe reads, because the SUT reads from the broker. `mark_delivered` reports progress when the
recorder knows that a batch has started.
"""

from collections import deque
from collections.abc import Callable, Mapping
from itertools import repeat
from operator import setitem
from types import MappingProxyType
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError
from streamgauge.core.schema import EVENT_TIME
from streamgauge.transports.kafka.encodings.api import Encoding
from streamgauge.transports.kafka.encodings.choice import columns_of, encoding, format_of
from streamgauge.transports.kafka.settings import ABSOLUTE_PATH_OPTIONS, MESSAGE_BYTES_MAX, KafkaSettings
from streamgauge.transports.outlet import Outlet
from streamgauge.transports.spi import Chunk, Delivery, EndpointConfig, OutletConfig
from streamgauge.transports.topic_names import topic_of

SETTINGS: dict[str, Any] = {
    "socket.nagle.disable": True,
    # Large, so that only the batch size in bytes matters.
    "batch.num.messages": 1_000_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
    "message.max.bytes": MESSAGE_BYTES_MAX,
    # Avoids a Python callback per delivered message.
    "delivery.report.only.error": True,
    "message.timeout.ms": 30_000,
    **ABSOLUTE_PATH_OPTIONS,
    "log_level": 0,
}
"""Fixed settings of librdkafka's producer."""
Messages = Callable[[pa.BinaryArray], list[bytes]]
"""Converts encoded events to a list of messages."""
NO_ARRAYS: Mapping[str, pa.Array] = MappingProxyType({})
"""No keys, or no timestamps."""
WAITING_MAX = int(SETTINGS["queue.buffering.max.messages"])


class Producer:
    """The producer of one partition, for all streams.

    Args:
        settings: the transport's settings.
        partition: the partition of all messages.
        streams: stream to (topic, function that converts encoded events to messages).
    """

    def __init__(self, settings: KafkaSettings, partition: int, streams: Mapping[str, tuple[str, Messages]]) -> None:
        self._partition, self._streams = partition, dict(streams)
        self._lost: list[str] = []
        self._dicts: list[dict[str, Any]] = []
        self._dicts_with_keys: list[dict[str, Any]] = []
        self._client: Any = confluent_kafka.Producer({**SETTINGS, **settings.producing, "error_cb": lambda _: None})

    def send(
        self,
        encoded: Mapping[str, pa.BinaryArray],
        keys: Mapping[str, pa.StringArray] = NO_ARRAYS,
        times_ms: Mapping[str, pa.Int64Array] = NO_ARRAYS,
    ) -> int:
        """Queues the events of each stream in the client, which sends asynchronously. Returns their number.

        - `keys`: the keys of the events, of streams that have one. A null is a message without a key.
        - `times_ms`: the timestamps of records, of streams that set them. Without one it is the time of sending.

        Raises:
            DriverError: the broker lost or refused a message, or the client's queue is full.
        """
        return sum(
            self._send(*self._streams[stream], events, keys.get(stream), times_ms.get(stream))
            for stream, events in encoded.items()
            if len(events)
        )

    def check(self) -> None:
        """Raises DriverError if a sent message was lost."""
        self._client.poll(0)
        if self._lost:
            raise DriverError(
                f"the broker lost {len(self._lost)} messages, the first of {self._lost[0]}. Read the broker's log; "
                "acks=all sends messages again, acks=1 does not"
            )

    @property
    def pending(self) -> int:
        """The number of messages that the broker has not stored yet."""
        self._client.poll(0)  # updates the count
        return len(self._client)

    def _send(
        self, topic: str, messages_of: Messages, encoded: pa.BinaryArray, keys: pa.StringArray | None,
        times_ms: pa.Int64Array | None,
    ) -> int:  # fmt: skip
        values = messages_of(encoded)
        self.check()
        if (pending := len(self._client)) + len(values) > WAITING_MAX:
            raise DriverError(
                f"the broker is slower than the plan: {pending:,} messages wait. Lower --rate, or use faster brokers"
            )
        if times_ms is not None:
            return self._send_timed(topic, values, keys, times_ms)
        messages = self._wrapped(values, keys)
        accepted = self._client.produce_batch(topic, messages, self._partition, on_delivery=self._note)
        if accepted != len(messages):
            raise DriverError(
                f"the client took {accepted} of {len(messages)} messages for {topic}; the largest has "
                f"{max(map(len, values)):,} bytes, of {MESSAGE_BYTES_MAX:,} that it may have"
            )
        return int(accepted)

    def _send_timed(self, topic: str, values: list[bytes], keys: pa.StringArray | None, times_ms: pa.Int64Array) -> int:
        """Queues messages one by one, because batches of the client take no timestamps. `map` spares a Python loop."""
        texts = repeat(None) if keys is None else keys.to_pylist()
        same = repeat(self._partition), repeat(self._note), repeat(None)
        try:
            deque(map(self._client.produce, repeat(topic), values, texts, *same, times_ms.to_pylist()), maxlen=0)
        except (BufferError, confluent_kafka.KafkaException) as error:
            raise DriverError(f"the client refused a message for {topic}: {error}") from None
        return len(values)

    def _wrapped(self, values: list[bytes], keys: pa.StringArray | None) -> list[dict[str, Any]]:
        """Messages in the client's format. Dicts are reused, because creating them took 10 % of the time and burdened
        the garbage collector. The client copies the values. Those with keys have dicts of their own.
        """
        dicts = self._dicts if keys is None else self._dicts_with_keys
        dicts += [{} for _ in range(len(values) - len(dicts))]
        deque(map(setitem, dicts, repeat("value"), values), maxlen=0)
        if keys is not None:
            deque(map(setitem, dicts, repeat("key"), keys.to_pylist()), maxlen=0)
        return dicts[: len(values)]

    def _note(self, error: Any, message: Any) -> None:
        """Called only for lost messages."""
        if error is not None:
            self._lost.append(f"{message.topic()}: {error.str()}")


class KafkaOutlet(Outlet):
    """The outlet.

    Args:
        at: the brokers (in its options), and the run id as its token.
        config: the streams, the limits, and the partition for this generator's events.
    """

    def __init__(self, at: EndpointConfig, config: OutletConfig) -> None:
        super().__init__(config)
        self._settings, self._run = KafkaSettings(**at.options), at.token
        self.location = self._settings.brokers
        self._program = at.program
        self._planned = self._program.planned if self._program is not None else frozenset()
        self._producer: Producer | None = None
        self._encodings: dict[str, Encoding] = {}

    def extra_columns(self, stream: str) -> tuple[str, ...]:
        return (EVENT_TIME,) if stream in self._planned else ()

    def prepared(self, stream: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events as messages in one column, with columns of their keys and timestamps if the stream has them."""
        if stream not in self._encodings:
            extra = self.extra_columns(stream)
            columns = columns_of(pa.schema([each for each in batch.schema if each.name not in extra]))
            if self._program is not None:
                self._encodings[stream] = format_of(self._program.inputs[stream].format, columns)
            else:
                self._encodings[stream] = encoding(self._settings.encoding, columns)
        arrays = {"message": self._encodings[stream].encode(batch)}
        if (key := self._config.keys.get(stream)) is not None:
            arrays["key"] = pc.cast(batch.column(key), pa.string())
        if stream in self._planned:
            arrays["time_ms"] = pc.divide(batch.column(EVENT_TIME), 1000)  # of microseconds
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Sends a chunk of `prepared` events. A chunk without events only moves the frontier.

        Raises:
            Overflow: more event time than the limit is unread; nothing was sent.
            DriverError: the broker lost messages, accepts too little, or has not stored messages for long.
        """
        events = sum(batch.num_rows for batch in batches.values())
        if events:
            self._refuse_beyond(from_us, to_us, 0, "the broker holds {seconds:.1f} s that were not read")
            self._producer = self._producer or self._opened()
            self._producer.send(
                {stream: batch.column("message") for stream, batch in batches.items()},
                keys={stream: batches[stream].column("key") for stream in batches if stream in self._config.keys},
                times_ms={stream: batches[stream].column("time_ms") for stream in batches if stream in self._planned},
            )
        with self._lock:
            self._count(Chunk(from_us, to_us, events, published_us), batches)

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """Raises DriverError if the broker lost messages, also after the last event."""
        if self._producer is not None:
            self._producer.check()
        return super().drain_logs()

    def _refuse_unkept(self) -> None:
        """Raises DriverError if the broker did not store most unread events."""
        if self._producer is None:
            return
        self._producer.check()
        if 2 * (pending := self._producer.pending) > self._unread.events:
            raise DriverError(
                f"the broker has not kept {pending} of the {self._unread.events} events that wait to be read"
            )

    def _opened(self) -> Producer:
        """Opens the producer at the first chunk with events; every chunk has the same streams."""
        topics = self._program.input_topics(self._run) if self._program is not None else {}
        streams = {
            name: (topics.get(name) or topic_of(self._run, name), each.messages)
            for name, each in self._encodings.items()
        }
        return Producer(self._settings, self._config.partition, streams)
