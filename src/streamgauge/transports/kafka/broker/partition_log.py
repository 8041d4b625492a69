"""The log of one partition: messages by offset, and their append times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from streamgauge.core.errors import DriverError

CONSUMER_SETTINGS = {"group.id": "streamgauge-asks", "enable.auto.commit": False, "enable.partition.eof": True}
SMALL_FETCH = {"max.partition.fetch.bytes": 1}
"""Fetches as few bytes as possible, to read single messages."""
SCAN_MESSAGES = 2_000
"""The log is scanned if there is at most this number of messages per requested one; otherwise each is fetched."""
CONSUME_MAX = 20_000
"""The largest number of messages per consume call."""
MS = 1000
"""Microseconds."""


@dataclass(frozen=True)
class PartitionLog:
    """A partition's log. `settings`: librdkafka's connection settings. `patience_s`: timeout per request."""

    settings: Mapping[str, Any]
    topic: str
    partition: int
    patience_s: float

    def end(self) -> int:
        """The offset after the last message. Raises DriverError."""
        with self._client() as client:
            return int(client.get_watermark_offsets(self._from(0), timeout=self.patience_s)[1])

    def first_since(self, since_us: int) -> int:
        """The offset of the first message appended at or after this time (broker's clock), or the end.

        Raises DriverError.
        """
        with self._client() as client:
            (position,) = client.offsets_for_times([self._from(since_us // MS)], timeout=self.patience_s)
        if position.error is not None:
            raise DriverError(f"{self.topic}: {position.error.str()}")
        return int(position.offset) if position.offset >= 0 else self.end()

    def at(self, offsets: Sequence[int]) -> list[Any]:
        """The messages at ascending offsets.

        Raises:
            DriverError: the broker does not answer, or a message is missing.
        """
        if not offsets:
            return []
        close = 0 < offsets[-1] - offsets[0] < SCAN_MESSAGES * len(offsets)
        with self._client({} if close else SMALL_FETCH) as client:
            return list((self._scan if close else self._one_by_one)(client, offsets))

    def appended_us(self, message: Any) -> int:
        """A message's append time by the broker's clock in microseconds, rounded up to a millisecond.

        Raises DriverError if the message has another kind of time.
        """
        from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

        kind, when_ms = message.timestamp()
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            raise DriverError(f"{self.topic}: its messages have no append time (LogAppendTime)")
        return int(when_ms + 1) * MS

    def _one_by_one(self, client: Any, offsets: Sequence[int]) -> Iterator[Any]:
        for offset in offsets:
            client.assign([self._from(offset)])
            yield self._expected(client.poll(self.patience_s), offset)

    def _scan(self, client: Any, offsets: Sequence[int]) -> Iterator[Any]:
        """Reads all messages from the first to the last offset."""
        next_offset, index = offsets[0], 0
        client.assign([self._from(next_offset)])
        while index < len(offsets):
            messages = client.consume(min(CONSUME_MAX, offsets[-1] + 1 - next_offset), timeout=self.patience_s)
            if not messages:
                raise self._missing(offsets[index])
            while index < len(offsets) and offsets[index] < next_offset + len(messages):
                yield self._expected(messages[offsets[index] - next_offset], offsets[index])
                index += 1
            next_offset += len(messages)

    def _expected(self, message: Any, offset: int) -> Any:
        if message is None or message.error() is not None or message.offset() != offset:
            raise self._missing(offset)
        return message

    def _missing(self, offset: int) -> DriverError:
        return DriverError(f"{self.topic}: the message at offset {offset} of partition {self.partition} is missing")

    def _from(self, offset: int) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self.topic, self.partition, offset)

    @contextmanager
    def _client(self, extra_settings: Mapping[str, Any] | None = None) -> Iterator[Any]:
        from confluent_kafka import Consumer, KafkaException

        client: Any = Consumer({**self.settings, **CONSUMER_SETTINGS, **(extra_settings or {})})
        try:
            yield client
        except KafkaException as error:
            raise DriverError(f"{self.topic}: {error.args[0].str()}") from None
        finally:
            client.close()
