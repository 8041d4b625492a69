"""What the driver asks of brokers outside of a run's messages: topics, the log of a partition, offsets of groups."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from streamgauge.core.errors import DriverError, Problem
from streamgauge.core.machine_check import MachineCheck
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.settings import MESSAGE_BYTES_MAX

REQUEST_TIMEOUT_S = 15.0
ANSWER_TIMEOUT_S = 5.0
"""How long brokers that the user named may take for their first answer."""
IN_TIME = {"operation_timeout": REQUEST_TIMEOUT_S, "request_timeout": REQUEST_TIMEOUT_S}
TIMESTAMPS, OLDEST = "message.timestamp.type", "message.timestamp.before.max.ms"
CONFIG = {TIMESTAMPS: "LogAppendTime", "max.message.bytes": str(MESSAGE_BYTES_MAX)}
CREATE_TIME = {TIMESTAMPS: "CreateTime"}
PLANNED_AGE_MS = 60_000
"""How old a planned time may be when a broker gets its record: brokers may be away for 30 s."""


def brokers_check(brokers: str, login: Mapping[str, str]) -> MachineCheck:
    """Whether one of the user's brokers answers, and takes the log-in."""
    try:
        hosts = Topics(brokers, login).hosts(ANSWER_TIMEOUT_S)
    except DriverError as error:
        way_out = (
            "start them, correct --brokers HOST:PORT, or brokers in the program's file, or look at the log-in in the "
            "client file"
        )
        rule = f"must be brokers that answer within {ANSWER_TIMEOUT_S:g} s ({error})"
        problem = Problem("transport option brokers", rule, brokers, way_out)
        return MachineCheck("brokers", "no answer", (problem,), needed_with=f"--brokers {brokers}")
    return MachineCheck("brokers", f"{brokers} answer, on {len(hosts)} host{'s' * (len(hosts) != 1)}")


class Topics:
    """The topics of a cluster.

    Args:
        brokers: HOST:PORT,...
        login: librdkafka's settings for logging in.

    Raises:
        DriverError: the client cannot be created.
    """

    def __init__(self, brokers: str, login: Mapping[str, str] | None = None) -> None:
        self._brokers, self._last_error = brokers, ""
        self._settings = {"bootstrap.servers": brokers, "log_level": 0, "error_cb": self._note, **(login or {})}
        try:
            self._client: Any = AdminClient(self._settings)
        except KafkaException as error:
            raise DriverError(f"no client for {brokers} can be made: {_reason(error)}") from None

    def make(self, names: Iterable[str], partitions: int, **config: str) -> None:
        """Creates topics, with append times unless `config` says otherwise. Returns when every partition answers.

        Raises:
            DriverError: the broker does not answer, or refuses a topic, with its reason.
        """
        if not (new := list(names)):
            return  # the client takes no empty list
        # With the brokers' default replication factor.
        new_topics = [NewTopic(name, partitions, config={**CONFIG, **config}) for name in new]
        self._wait_for_all(lambda: self._client.create_topics(new_topics, **IN_TIME), "made")
        for topic in new_topics:
            if not wait_until(partial(self._answers, topic.topic, partitions), REQUEST_TIMEOUT_S):
                raise DriverError(
                    f"{self._brokers}: topic {topic.topic} does not answer within {REQUEST_TIMEOUT_S:g} s"
                )

    def require_none(self, names: Iterable[str]) -> None:
        """Raises DriverError if one of these topics exists."""
        if existing := sorted({*names} & {*self.names()}):
            raise DriverError(
                f"{self._brokers}: the topic {existing[0]} exists, and a run makes its own topics. Give the program "
                "another topic, remove it, or measure a program that runs already: attach = true in its file"
            )

    def whole_ends(self, streams: Iterable[str], outputs: Iterable[str], partitions: int) -> dict[TopicPartition, int]:
        """The ends of all partitions of existing topics.

        Raises:
            DriverError: a topic does not exist, or one of `streams` has another number of partitions.
        """
        found, inputs = self._metadata().topics, list(streams)
        places = []
        for topic in (*inputs, *outputs):
            if topic not in found:
                raise DriverError(f"{self._brokers}: there is no topic {topic}. Correct topic in the file")
            count = len(found[topic].partitions)
            if topic in inputs and count != partitions:
                raise DriverError(
                    f"{self._brokers}: {topic} has {count} partitions, and the load is for {partitions}. "
                    f"Set --partitions {count}"
                )
            places += [(topic, each) for each in range(count)]
        return ends_of(self._client, places)

    def require_planned_times(self, names: Iterable[str]) -> None:
        """Raises DriverError if brokers overwrite or refuse the planned times of records on one of these topics."""
        for topic, config in self._configs(list(names)).items():
            here = f"{self._brokers}: the topic {topic} has"
            way_out = 'or record_timestamp = "sent" for that input in its file'
            if config.get(TIMESTAMPS) == CONFIG[TIMESTAMPS]:
                raise DriverError(
                    f"{here} {TIMESTAMPS}={config[TIMESTAMPS]}, so brokers overwrite the planned times of records. "
                    f"Set it to CreateTime, {way_out}"
                )
            if int(config.get(OLDEST, PLANNED_AGE_MS)) < PLANNED_AGE_MS:
                raise DriverError(
                    f"{here} {OLDEST}={config[OLDEST]}, so brokers refuse records with older planned times. "
                    f"Set it to {PLANNED_AGE_MS} or more, {way_out}"
                )

    def _configs(self, names: list[str]) -> dict[str, dict[str, str]]:
        """Topic to its settings. Topics whose settings the log-in may not read are left out."""
        found = {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        answers = self._client.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S) if resources else {}
        for resource, answer in answers.items():
            with contextlib.suppress(KafkaException, TimeoutError):
                found[resource.name] = {name: entry.value for name, entry in answer.result(REQUEST_TIMEOUT_S).items()}
        return found

    def remove(self, names: Iterable[str]) -> None:
        """Removes existing topics. If one is refused, the others are removed nevertheless.

        Raises:
            DriverError: as for `make`.
        """
        if existing := list(names):  # the client takes no empty list
            self._wait_for_all(lambda: self._client.delete_topics(existing, **IN_TIME), "removed")

    def remove_group(self, name: str) -> None:
        """Removes a consumer group. One that does not exist, or still has members, is left to the broker."""
        with contextlib.suppress(KafkaException, TimeoutError):
            self._client.delete_consumer_groups([name], request_timeout=REQUEST_TIMEOUT_S)[name].result(
                ANSWER_TIMEOUT_S
            )

    def names(self) -> list[str]:
        """The topic names without internal topics. Raises DriverError."""
        return sorted(name for name in self._metadata().topics if not name.startswith("__"))

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Name to topic id of existing topics. A deleted and recreated topic has another id. Raises DriverError."""
        futures = self._client.describe_topics(
            confluent_kafka.TopicCollection(list(names)), request_timeout=REQUEST_TIMEOUT_S
        )
        ids = {}
        for name, answer in futures.items():
            try:
                ids[name] = str(answer.result(REQUEST_TIMEOUT_S).topic_id)
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, TimeoutError) or error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._silent(error) from None
        return ids

    def hosts(self, timeout_s: float | None = None) -> set[str]:
        """The advertised hosts of the brokers. Raises DriverError."""
        return {broker.host for broker in self._metadata(timeout_s).brokers.values()}

    def _metadata(self, timeout_s: float | None = None) -> Any:
        try:
            return self._client.list_topics(timeout=timeout_s or REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise self._silent(error) from None

    def ends(self, topic: str, partitions: int) -> list[int]:
        """The offset after the last message of each partition. Raises DriverError."""
        # Not by `ends_of`: the long-lived client once gave no answer for 15 s about a topic just made.
        return [self.log(topic, number).end() for number in range(partitions)]

    def appended_us(self, topic: str, partition: int, offsets: Iterable[int]) -> list[int]:
        """The append times of the messages at these offsets, by the broker's clock, in microseconds.

        Raises:
            DriverError: the broker does not answer, or a message is missing or has another kind of time.
        """
        log = self.log(topic, partition)
        return [log.appended_us(message) for message in log.at(list(offsets))]

    def log(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition."""
        return PartitionLog(self._settings, topic, partition)

    def _answers(self, topic: str, partitions: int) -> bool:
        with contextlib.suppress(DriverError):
            return len(self.ends(topic, partitions)) == partitions
        return False

    def _wait_for_all(self, request: Callable[[], Mapping[str, Any]], done: str) -> None:
        """Waits for all answers, at most `REQUEST_TIMEOUT_S`. Raises DriverError with all refusals."""
        try:
            answers = request()
        except KafkaException as error:
            raise self._silent(error) from None
        refused = []
        for name, answer in answers.items():
            try:
                answer.result(REQUEST_TIMEOUT_S)
            except (KafkaException, TimeoutError) as error:
                refused.append(f"topic {name} could not be {done}: {_reason(error)}")
        if refused:
            raise DriverError(f"{self._brokers}: {'; '.join(refused)}{self._why}")

    def _silent(self, error: Exception) -> DriverError:
        return DriverError(f"the brokers {self._brokers} do not answer: {_reason(error)}{self._why}")

    @property
    def _why(self) -> str:
        """The client's last error, such as a refused connection or log-in, in brackets."""
        self._client.poll(0)
        return f" ({self._last_error})" if self._last_error else ""

    def _note(self, error: Any) -> None:
        self._last_error = str(error.str())


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
    """A partition's log. `settings`: librdkafka's connection settings."""

    settings: Mapping[str, Any]
    topic: str
    partition: int

    def end(self) -> int:
        """The offset after the last message. Raises DriverError."""
        with self._client() as client:
            return int(client.get_watermark_offsets(self._from(0), timeout=REQUEST_TIMEOUT_S)[1])

    def first_since(self, since_us: int) -> int:
        """The offset of the first message appended at or after this time (broker's clock), or the end.

        Raises DriverError.
        """
        with self._client() as client:
            (position,) = client.offsets_for_times([self._from(since_us // MS)], timeout=REQUEST_TIMEOUT_S)
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
        kind, when_ms = message.timestamp()
        if kind != confluent_kafka.TIMESTAMP_LOG_APPEND_TIME:
            raise DriverError(f"{self.topic}: its messages have no append time (LogAppendTime)")
        return int(when_ms + 1) * MS

    def _one_by_one(self, client: Any, offsets: Sequence[int]) -> Iterator[Any]:
        for offset in offsets:
            client.assign([self._from(offset)])
            yield self._expected(client.poll(REQUEST_TIMEOUT_S), offset)

    def _scan(self, client: Any, offsets: Sequence[int]) -> Iterator[Any]:
        """Reads all messages from the first to the last offset."""
        next_offset, index = offsets[0], 0
        client.assign([self._from(next_offset)])
        while index < len(offsets):
            messages = client.consume(min(CONSUME_MAX, offsets[-1] + 1 - next_offset), timeout=REQUEST_TIMEOUT_S)
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
        return confluent_kafka.TopicPartition(self.topic, self.partition, offset)

    @contextmanager
    def _client(self, extra_settings: Mapping[str, Any] | None = None) -> Iterator[Any]:
        client: Any = confluent_kafka.Consumer({**self.settings, **CONSUMER_SETTINGS, **(extra_settings or {})})
        try:
            yield client
        except KafkaException as error:
            raise DriverError(f"{self.topic}: {_reason(error)}") from None
        finally:
            client.close()


def _reason(error: Exception) -> str:
    return f"no answer within {REQUEST_TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else str(error.args[0].str())


GROUP_TIMEOUT_S = 5.0
TopicPartition = tuple[str, int]
"""A topic and its partition."""


def committed_of(admin: Any, group: str) -> dict[TopicPartition, int]:
    """The committed offset of each partition that has one. Raises DriverError."""
    request = [confluent_kafka.ConsumerGroupTopicPartitions(group)]
    try:
        futures = admin.list_consumer_group_offsets(request, request_timeout=GROUP_TIMEOUT_S)
        answer = futures[group].result(GROUP_TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        raise DriverError(f"the offsets of group {group} could not be read: {error}") from None
    return {(each.topic, each.partition): each.offset for each in answer.topic_partitions if each.offset >= 0}


def partitions_of(admin: Any, topic: str) -> int:
    """The number of partitions of a topic. Raises DriverError."""
    try:
        return len(admin.list_topics(topic, timeout=GROUP_TIMEOUT_S).topics[topic].partitions)
    except KafkaException as error:
        raise DriverError(f"the partitions of the topic {topic} could not be read: {error}") from None


def ends_of(admin: Any, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset after the last message of each partition, by one request. Raises DriverError."""
    request = {confluent_kafka.TopicPartition(*place): OffsetSpec.latest() for place in places}
    if not request:
        return {}
    try:
        answers = admin.list_offsets(request, request_timeout=GROUP_TIMEOUT_S)
        return {(at.topic, at.partition): each.result(GROUP_TIMEOUT_S).offset for at, each in answers.items()}
    except (KafkaException, TimeoutError) as error:
        raise DriverError(f"the ends of the topics could not be read: {error}") from None
