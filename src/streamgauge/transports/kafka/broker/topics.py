"""The topics of a broker: made, removed, and how far each is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from streamgauge.core.errors import DriverError
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker.partition_log import PartitionLog

REQUEST_TIMEOUT_S = 15.0
IN_TIME = {"operation_timeout": REQUEST_TIMEOUT_S, "request_timeout": REQUEST_TIMEOUT_S}
COPIES = -1
"""As many as the brokers make where nobody says how many."""
CONFIG = {"message.timestamp.type": "LogAppendTime"}


class Topics:
    """What a broker has of topics.

    Args:
        brokers: HOST:PORT,...
        login: librdkafka's settings, of a user: how to log in.

    Raises:
        DriverError: no client can be made of that.
    """

    def __init__(self, brokers: str, login: Mapping[str, str] | None = None) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        self._brokers, self._last_error = brokers, ""
        self._settings = {"bootstrap.servers": brokers, "log_level": 0, "error_cb": self._note, **(login or {})}
        try:
            self._client: Any = AdminClient(self._settings)
        except KafkaException as error:
            raise DriverError(f"no client for {brokers} can be made: {error.args[0].str()}") from None

    def make(self, names: Iterable[str], partitions: int, **config: str) -> None:
        """New topics, of as many copies as the brokers make, which stamp messages as they append them; returns when
        every partition of them answers, which is a little after they are made.

        Raises:
            DriverError: the broker does not answer, or refuses one, with its own reason.
        """
        from confluent_kafka.admin import NewTopic

        wanted = [NewTopic(name, partitions, COPIES, config={**CONFIG, **config}) for name in names]
        self._each(lambda: self._client.create_topics(wanted, **IN_TIME), "made")
        for topic in wanted:
            if not wait_until(partial(self._answers, topic.topic, partitions), REQUEST_TIMEOUT_S):
                raise DriverError(
                    f"{self._brokers}: topic {topic.topic} does not answer within {REQUEST_TIMEOUT_S:g} s"
                )

    def remove(self, names: Iterable[str]) -> None:
        """Topics that are there; whatever is refused, all others are removed.

        Raises:
            DriverError: as of `make`.
        """
        wanted = list(names)
        if wanted:  # the client takes no empty list
            self._each(lambda: self._client.delete_topics(wanted, **IN_TIME), "removed")

    def there(self) -> list[str]:
        """Names of the brokers' topics, their own left out; DriverError where they do not answer."""
        return sorted(name for name in self._metadata().topics if not name.startswith("__"))

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """What the brokers call each of these topics by themselves: one that was deleted and is made again has another
        id, and one that is not there has none. DriverError where they do not answer.
        """
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        asked = self._client.describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_TIMEOUT_S)
        found = {}
        for name, answer in asked.items():
            try:
                found[name] = str(answer.result(REQUEST_TIMEOUT_S).topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._silent(error) from None
            except TimeoutError:
                raise DriverError(f"the brokers {self._brokers} do not answer within {REQUEST_TIMEOUT_S:g} s") from None
        return found

    def hosts(self) -> set[str]:
        """Where the brokers say that they are; DriverError where they do not answer."""
        return {broker.host for broker in self._metadata().brokers.values()}

    def _metadata(self) -> Any:
        from confluent_kafka import KafkaException

        try:
            return self._client.list_topics(timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise self._silent(error) from None

    def ends(self, topic: str, partitions: int) -> list[int]:
        """The offset after the last message of each partition, by the broker itself.

        Raises:
            DriverError: it does not answer.
        """
        return [self.kept(topic, number).end() for number in range(partitions)]

    def appended_us(self, topic: str, partition: int, offsets: Iterable[int]) -> list[int]:
        """When the broker appended the messages at these offsets, by its own clock, rounded up to a millisecond.

        Raises:
            DriverError: it does not answer, a message is not there, or its time is another than that.
        """
        kept = self.kept(topic, partition)
        return [kept.appended_us(message) for message in kept.at(list(offsets))]

    def kept(self, topic: str, partition: int) -> PartitionLog:
        """What is in a partition."""
        return PartitionLog(self._settings, topic, partition, REQUEST_TIMEOUT_S)

    def _answers(self, topic: str, partitions: int) -> bool:
        try:
            self.ends(topic, partitions)
        except DriverError:
            return False
        return True

    def _each(self, asked: Callable[[], Mapping[str, Any]], done: str) -> None:
        """Waits for every answer, ASKED_S for all of them; DriverError with those that are refusals."""
        from confluent_kafka import KafkaException

        try:
            answers = asked()
        except KafkaException as error:
            raise self._silent(error) from None
        until_s = time.monotonic() + REQUEST_TIMEOUT_S
        refused = []
        for name, answer in answers.items():
            try:
                answer.result(max(0.0, until_s - time.monotonic()))
            except (KafkaException, TimeoutError) as error:
                reason = (
                    error.args[0].str()
                    if isinstance(error, KafkaException)
                    else f"no answer within {REQUEST_TIMEOUT_S:g} s"
                )
                refused.append(f"topic {name} could not be {done}: {reason}")
        if refused:
            raise DriverError(f"{self._brokers}: {'; '.join(refused)}{self._why}")

    def _silent(self, error: Any) -> DriverError:
        return DriverError(f"the brokers {self._brokers} do not answer: {error.args[0].str()}{self._why}")

    @property
    def _why(self) -> str:
        """What the client said last by itself, which is where refused connections and log-ins are told of."""
        self._client.poll(0)
        return f" ({self._last_error})" if self._last_error else ""

    def _note(self, error: Any) -> None:
        self._last_error = str(error.str())
