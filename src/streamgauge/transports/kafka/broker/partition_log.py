"""What a broker has kept in a partition of a topic: messages by their offsets, and when it appended each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from streamgauge.core.errors import DriverError

ASKS = {"group.id": "streamgauge-asks", "enable.auto.commit": False, "enable.partition.eof": True}
FEW = {"max.partition.fetch.bytes": 1}
"""Of single messages as few bytes as it gives: whole batches of them come in any case, and one of each is wanted."""
THROUGH = 2_000
"""So many messages for each that is wanted are read and passed over: to ask for each anew costs a request."""
AT_ONCE = 20_000
"""Messages taken from the client at a time, at most."""
MS = 1000
"""Microseconds."""


@dataclass(frozen=True)
class PartitionLog:
    """`settings` are librdkafka's, by which the brokers are found; `patience_s`: so long an answer is waited for."""

    settings: Mapping[str, Any]
    topic: str
    partition: int
    patience_s: float

    def end(self) -> int:
        """The offset after the last message; DriverError where the broker does not say."""
        with self._client() as client:
            return int(client.get_watermark_offsets(self._from(0), timeout=self.patience_s)[1])

    def first_since(self, since_us: int) -> int:
        """The offset of the first message that was appended at that time or later, by the broker's clock; the end where
        there is none. DriverError where it does not say.
        """
        with self._client() as client:
            (found,) = client.offsets_for_times([self._from(since_us // MS)], timeout=self.patience_s)
        if found.error is not None:
            raise DriverError(f"{self.topic}: {found.error.str()}")
        return int(found.offset) if found.offset >= 0 else self.end()

    def at(self, offsets: Sequence[int]) -> list[Any]:
        """The messages at offsets that ascend.

        Raises:
            DriverError: the broker does not answer, or a message is not there.
        """
        if not offsets:
            return []
        close = 0 < offsets[-1] - offsets[0] < THROUGH * len(offsets)
        with self._client({} if close else FEW) as client:
            return list((self._through if close else self._one_by_one)(client, offsets))

    def appended_us(self, message: Any) -> int:
        """When it was appended, by the broker's clock, rounded up to a millisecond; DriverError where its time is
        another than that.
        """
        from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

        kind, when_ms = message.timestamp()
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            raise DriverError(f"{self.topic}: its messages have no time of the broker's (LogAppendTime)")
        return int(when_ms + 1) * MS

    def _one_by_one(self, client: Any, offsets: Sequence[int]) -> Iterator[Any]:
        for offset in offsets:
            client.assign([self._from(offset)])
            yield self._expected(client.poll(self.patience_s), offset)

    def _through(self, client: Any, offsets: Sequence[int]) -> Iterator[Any]:
        """Everything from the first of them to the last is read."""
        here, place = offsets[0], 0
        client.assign([self._from(here)])
        while place < len(offsets):
            messages = client.consume(min(AT_ONCE, offsets[-1] + 1 - here), timeout=self.patience_s)
            if not messages:
                raise self._missing(offsets[place])
            while place < len(offsets) and offsets[place] < here + len(messages):
                yield self._expected(messages[offsets[place] - here], offsets[place])
                place += 1
            here += len(messages)

    def _expected(self, message: Any, offset: int) -> Any:
        if message is None or message.error() is not None or message.offset() != offset:
            raise self._missing(offset)
        return message

    def _missing(self, offset: int) -> DriverError:
        return DriverError(f"{self.topic}: the message at offset {offset} of partition {self.partition} is not there")

    def _from(self, offset: int) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self.topic, self.partition, offset)

    @contextmanager
    def _client(self, more: Mapping[str, Any] | None = None) -> Iterator[Any]:
        from confluent_kafka import Consumer, KafkaException

        client: Any = Consumer({**self.settings, **ASKS, **(more or {})})
        try:
            yield client
        except KafkaException as error:
            raise DriverError(f"{self.topic}: {error.args[0].str()}") from None
        finally:
            client.close()
