"""Sends events to a broker: one message per event, in planned order, one writer per partition.

The producer is idempotent, so the n-th event of a partition is at offset n despite retries. So offsets and planned
times determine each other, as on every transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from itertools import repeat
from operator import setitem
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka.client.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings

SETTINGS: dict[str, Any] = {
    "socket.nagle.disable": True,
    # Large, so that only the batch size in bytes matters.
    "batch.num.messages": 1_000_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
    # Avoids a Python callback per delivered message.
    "delivery.report.only.error": True,
    "message.timeout.ms": 30_000,
    **ABSOLUTE_PATH_OPTIONS,
    "log_level": 0,
}
"""Fixed settings of librdkafka's producer."""
Messages = Callable[[pa.BinaryArray], list[bytes]]
"""Converts encoded events to a list of messages."""
NO_KEYS: Mapping[str, pa.StringArray] = MappingProxyType({})
NO_TIMES: Mapping[str, pa.Int64Array] = MappingProxyType({})
WAITING_MAX = int(SETTINGS["queue.buffering.max.messages"])


class Producer:
    """The producer of one partition, for all streams.

    Args:
        settings: the transport's settings.
        partition: the partition of all messages.
        streams: stream to (topic, function that converts encoded events to messages).
    """

    def __init__(self, settings: KafkaSettings, partition: int, streams: Mapping[str, tuple[str, Messages]]) -> None:
        from confluent_kafka import Producer as Client

        self._partition, self._streams = partition, dict(streams)
        self._lost: list[str] = []
        self._dicts: list[dict[str, Any]] = []
        self._dicts_with_keys: list[dict[str, Any]] = []
        client_settings = {**SETTINGS, "bootstrap.servers": settings.brokers, **settings.producing}
        self._client: Any = Client({**client_settings, "error_cb": lambda _: None})

    def send(
        self,
        encoded: Mapping[str, pa.BinaryArray],
        keys: Mapping[str, pa.StringArray] = NO_KEYS,
        times_ms: Mapping[str, pa.Int64Array] = NO_TIMES,
    ) -> int:
        """Queues the events of each stream in the client, which sends asynchronously. Returns their number.

        - `keys`: the keys of the events, of streams that have one. A null is a message without a key.
        - `times_ms`: the timestamps of records, of streams that set them. Without one it is the time of sending.

        Raises:
            DriverError: the broker lost or refused a message, or the client's queue is full.
        """
        streams = {stream: events for stream, events in encoded.items() if len(events)}
        return sum(
            self._send(*self._streams[stream], events, keys.get(stream), times_ms.get(stream))
            for stream, events in streams.items()
        )

    def flush(self, timeout_s: float) -> None:
        """Waits until the broker has stored everything.

        Raises:
            DriverError: messages are pending after `timeout_s`.
        """
        pending = self._client.flush(timeout_s)
        self._refuse_lost()
        if pending:
            raise DriverError(f"the broker has not kept {pending} messages after {timeout_s:g} s")

    def check(self) -> None:
        """Raises DriverError if a sent message was lost."""
        self._client.poll(0)
        self._refuse_lost()

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
        pending = self.pending
        self._refuse_lost()
        if pending + len(values) > WAITING_MAX:
            raise DriverError(
                f"the broker is slower than the plan: {pending:,} messages wait. Lower --rate, or use faster brokers"
            )
        if times_ms is not None:
            return self._send_timed(topic, values, keys, times_ms)
        messages = self._wrapped(values, keys)
        accepted = self._client.produce_batch(topic, messages, self._partition, on_delivery=self._note)
        if accepted != len(messages):
            raise DriverError(f"the client took {accepted} of {len(messages)} messages for {topic}")
        return int(accepted)

    def _send_timed(self, topic: str, values: list[bytes], keys: pa.StringArray | None, times_ms: pa.Int64Array) -> int:
        """Queues messages one by one, because batches of the client take no timestamps. `map` spares a Python loop."""
        from confluent_kafka import KafkaException

        texts = repeat(None) if keys is None else keys.to_pylist()
        same = repeat(self._partition), repeat(self._note), repeat(None)
        try:
            deque(map(self._client.produce, repeat(topic), values, texts, *same, times_ms.to_pylist()), maxlen=0)
        except (BufferError, KafkaException) as error:
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

    def _refuse_lost(self) -> None:
        if self._lost:
            raise DriverError(
                f"the broker lost {len(self._lost)} messages, the first of {self._lost[0]}. Read the broker's log; "
                "acks=all sends messages again, acks=1 does not"
            )
