"""The topics of a broker: made, removed, and how far each is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from streamgauge.errors import DriverError
from streamgauge.system.children import wait_until

ASKED_S = 15.0
ASKS = {"group.id": "streamgauge-asks", "enable.auto.commit": False}
MS = 1000
"""Microseconds."""


class Topics:
    """What a broker has of topics.

    Args:
        broker: HOST:PORT.
        settings: librdkafka's, of a user: how to log in.
    """

    def __init__(self, broker: str, settings: Mapping[str, Any] | None = None) -> None:
        from confluent_kafka.admin import AdminClient

        self._broker = broker
        self._settings = {"bootstrap.servers": broker, "log_level": 0, **(settings or {})}
        self._client: Any = AdminClient({**self._settings, "error_cb": lambda _: None})

    def make(self, names: Iterable[str], partitions: int, **config: str) -> None:
        """New topics of one copy; returns when every partition of them answers, which is a little after they are made.

        Raises:
            DriverError: the broker does not answer, or refuses one, with its own reason.
        """
        from confluent_kafka.admin import NewTopic

        wanted = [NewTopic(name, partitions, 1, config=config) for name in names]
        self._each(lambda: self._client.create_topics(wanted, operation_timeout=ASKED_S), "made")
        for topic in wanted:
            if not wait_until(partial(self._answers, topic.topic, partitions), ASKED_S):
                raise DriverError(f"{self._broker}: topic {topic.topic} does not answer within {ASKED_S:g} s")

    def remove(self, names: Iterable[str]) -> None:
        """The same for topics that are there."""
        wanted = list(names)
        self._each(lambda: self._client.delete_topics(wanted, operation_timeout=ASKED_S), "removed")

    def there(self) -> list[str]:
        """Names of the broker's topics, its own left out.

        Raises:
            DriverError: the broker does not answer.
        """
        from confluent_kafka import KafkaException

        try:
            found = self._client.list_topics(timeout=ASKED_S).topics
        except KafkaException as error:
            raise DriverError(f"the broker {self._broker} does not answer: {error.args[0].str()}") from None
        return sorted(name for name in found if not name.startswith("__"))

    def ends(self, topic: str, partitions: int) -> list[int]:
        """The offset after the last message of each partition, by the broker itself.

        Raises:
            DriverError: it does not answer.
        """
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        client: Any = Consumer({**self._settings, **ASKS})
        try:
            asked = [TopicPartition(topic, number) for number in range(partitions)]
            return [int(client.get_watermark_offsets(one, timeout=ASKED_S)[1]) for one in asked]
        except KafkaException as error:
            raise DriverError(f"{topic}: {error.args[0].str()}") from None
        finally:
            client.close()

    def appended_us(self, topic: str, partition: int, offsets: Iterable[int]) -> list[int]:
        """When the broker appended the messages at these offsets, by its own clock, rounded up to a millisecond.

        Raises:
            DriverError: it does not answer, a message is not there, or its time is another than that.
        """
        from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaException, TopicPartition

        # As few bytes as it gives: whole batches of messages come in any case, and one of each is wanted.
        few = {"max.partition.fetch.bytes": 1, "enable.partition.eof": True}
        client: Any = Consumer({**self._settings, **ASKS, **few})
        found = []
        try:
            for offset in offsets:
                client.assign([TopicPartition(topic, partition, offset)])
                message = client.poll(ASKED_S)
                if message is None or message.error() is not None or message.offset() != offset:
                    raise DriverError(f"{topic}: the message at offset {offset} of partition {partition} is not there")
                kind, when_ms = message.timestamp()
                if kind != TIMESTAMP_LOG_APPEND_TIME:
                    raise DriverError(f"{topic}: its messages have no time of the broker's (LogAppendTime)")
                found.append((when_ms + 1) * MS)
        except KafkaException as error:
            raise DriverError(f"{topic}: {error.args[0].str()}") from None
        finally:
            client.close()
        return found

    def _answers(self, topic: str, partitions: int) -> bool:
        try:
            self.ends(topic, partitions)
        except DriverError:
            return False
        return True

    def _each(self, asked: Callable[[], Mapping[str, Any]], done: str) -> None:
        from confluent_kafka import KafkaException

        try:
            for name, answer in asked().items():
                self._answered(name, answer, done)
        except KafkaException as error:
            raise DriverError(f"the broker {self._broker} does not answer: {error.args[0].str()}") from None

    def _answered(self, name: str, answer: Any, done: str) -> None:
        from confluent_kafka import KafkaException

        try:
            answer.result(ASKED_S)
        except (KafkaException, TimeoutError) as error:
            reason = error.args[0].str() if isinstance(error, KafkaException) else f"no answer within {ASKED_S:g} s"
            raise DriverError(f"{self._broker}: topic {name} could not be {done}: {reason}") from None
