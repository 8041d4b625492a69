"""Events to a broker: one message each, in the order of the plan, every generator into a partition of its own.

The producer is idempotent, so that the n-th event of a partition is at offset n, whatever was sent again on the way:
offsets and the plan's times are functions of each other, as they are on every transport.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from itertools import repeat
from operator import setitem
from typing import Any

import pyarrow as pa

from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka.client.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings

SETTINGS: dict[str, Any] = {
    "socket.nagle.disable": True,
    # So many may go at once that the size of a batch decides.
    "batch.num.messages": 1_000_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
    # Without it a callback of Python's for every message that was kept.
    "delivery.report.only.error": True,
    "message.timeout.ms": 30_000,
    **ABSOLUTE_PATH_OPTIONS,
    "log_level": 0,
}
"""Of librdkafka's producer, beside what may be asked for."""
Messages = Callable[[pa.BinaryArray], list[bytes]]
"""Of events that were encoded, or of a part of them."""
WAITING_MAX = int(SETTINGS["queue.buffering.max.messages"])


class Producer:
    """One partition's producer, of all streams.

    Args:
        settings: what was asked for.
        partition: the one that all its messages go to.
        ways: of each stream, its topic and what makes messages of encoded events.
    """

    def __init__(self, settings: KafkaSettings, partition: int, streams: Mapping[str, tuple[str, Messages]]) -> None:
        from confluent_kafka import Producer as Client

        self._partition, self._streams = partition, dict(streams)
        self._lost: list[str] = []
        self._dicts: list[dict[str, bytes]] = []
        asked = {**SETTINGS, "bootstrap.servers": settings.brokers, **settings.producing}
        self._client: Any = Client({**asked, "error_cb": lambda _: None})

    def send(self, encoded: Mapping[str, pa.BinaryArray]) -> int:
        """Hands the events of each stream to the client, which sends them on its own; returns how many they were.

        Raises:
            DriverError: the broker lost or refused a message, or takes so little that the client's queue is full.
        """
        return sum(self._send(*self._streams[stream], events) for stream, events in encoded.items() if len(events))

    def flush(self, timeout_s: float) -> None:
        """Waits until the broker has kept everything.

        Raises:
            DriverError: it has not, after `timeout_s`.
        """
        left = self._client.flush(timeout_s)
        self._refuse_lost()
        if left:
            raise DriverError(f"the broker has not kept {left} messages after {timeout_s:g} s")

    def check(self) -> None:
        """DriverError where a message was lost since it was sent."""
        self._client.poll(0)
        self._refuse_lost()

    @property
    def waiting(self) -> int:
        """Messages that the broker has not kept yet."""
        self._client.poll(0)  # what it has kept counts until the client was asked for news
        return len(self._client)

    def _send(self, topic: str, messages_of: Messages, encoded: pa.BinaryArray) -> int:
        messages = self._wrapped(messages_of(encoded))
        waiting = self.waiting
        self._refuse_lost()
        if waiting + len(messages) > WAITING_MAX:
            raise DriverError(f"the broker takes too little: {waiting} messages wait to be sent")
        taken = self._client.produce_batch(topic, messages, self._partition, on_delivery=self._note)
        if taken != len(messages):
            raise DriverError(f"the client took {taken} of {len(messages)} messages for {topic}")
        return int(taken)

    def _wrapped(self, values: list[bytes]) -> list[dict[str, bytes]]:
        """As the client takes them, which copies the values. The same dicts every time: to make them took a tenth of
        the time, and the garbage collector looked at each.
        """
        self._dicts += [{} for _ in range(len(values) - len(self._dicts))]
        deque(map(setitem, self._dicts, repeat("value"), values), maxlen=0)
        return self._dicts[: len(values)]

    def _note(self, error: Any, message: Any) -> None:
        """Called for what was lost alone."""
        if error is not None:
            self._lost.append(f"{message.topic()}: {error.str()}")

    def _refuse_lost(self) -> None:
        if self._lost:
            raise DriverError(f"the broker lost {len(self._lost)} messages, the first of {self._lost[0]}")
