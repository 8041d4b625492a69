"""The committed offsets of a consumer group, and the ends of topics, read from the broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamgauge.core.errors import DriverError

REQUEST_TIMEOUT_S = 5.0
TopicPartition = tuple[str, int]
"""A topic and its partition."""


class GroupOffsets:
    """Reads how far a group has committed, and how far its topics go.

    Args:
        settings: librdkafka's settings of a client of these brokers.
        group: the id of the group.
        places: the partitions to ask about.
    """

    def __init__(self, settings: Mapping[str, Any], group: str, places: Sequence[TopicPartition]) -> None:
        from confluent_kafka.admin import AdminClient

        self._group, self._places = group, tuple(places)
        self._admin: Any = AdminClient({**settings, "log_level": 0, "error_cb": lambda _: None})

    def committed(self) -> dict[TopicPartition, int]:
        """The committed offset of each partition that has one. Raises DriverError if the broker does not answer."""
        return committed_of(self._admin, self._group, self._places)

    def ends(self) -> dict[TopicPartition, int]:
        """The offset after the last message of each partition. Raises DriverError if the broker does not answer."""
        return ends_of(self._admin, self._places)


def committed_of(admin: Any, group: str, places: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
    """The committed offset of each partition that has one, of all partitions for None. Raises DriverError."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    parts = None if places is None else [TopicPartition(*place) for place in places]
    request = [ConsumerGroupTopicPartitions(group, parts)]
    try:
        futures = admin.list_consumer_group_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
        answer = futures[group].result(REQUEST_TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        raise DriverError(f"the offsets of group {group} could not be read: {error}") from None
    return {(each.topic, each.partition): each.offset for each in answer.topic_partitions if each.offset >= 0}


def ends_of(admin: Any, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset after the last message of each partition, by one request. Raises DriverError."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    request = {TopicPartition(*place): OffsetSpec.latest() for place in places}
    if not request:
        return {}
    try:
        answers = admin.list_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
        return {(at.topic, at.partition): each.result(REQUEST_TIMEOUT_S).offset for at, each in answers.items()}
    except (KafkaException, TimeoutError) as error:
        raise DriverError(f"the ends of the topics could not be read: {error}") from None
