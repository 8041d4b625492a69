"""How far an engine has read, seen from outside: the offsets that its consumer group commits.

A separate module because both endpoints of results follow a group.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from confluent_kafka.admin import AdminClient

from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.topics import TopicPartition, committed_of, ends_of, partitions_of
from streamgauge.transports.spi import COMMITS, EndpointConfig, Receiver

POLL_S = 0.1
"""How often the broker is asked for the group's offsets.

A backlog is sampled when an offset is seen to have moved. Groups commit about once a second, so with a poll each 0.5 s
the samples drifted by half a second over a minute: trends of steady jobs were as wide as 2 % of the time.
"""
RunOffsets = dict[TopicPartition, int]
"""Offsets as numbers of the run's own events."""


def remark_gap(receiver: Receiver, times_s: Sequence[float], before: str, after: str = "") -> None:
    """Reports the median time between commits, once there is one, between two pieces of text."""
    if len(times_s) > 1:
        gap_s = median(later - one for one, later in pairwise(times_s))
        receiver.remark(COMMITS, len(times_s), f"{before} {gap_s:.2g} s{after}")


class OwnTopics:
    """How much of the input has passed all topics that a job writes and reads again.

    What was read at one look has passed the first of them when everything is read that they held then. It has passed
    the next one when that holds once more, and so on.
    """

    def __init__(self) -> None:
        self._looks: list[tuple[RunOffsets, list[RunOffsets]]] = []

    def passed(self, read: RunOffsets, read_again: RunOffsets, ends: RunOffsets) -> RunOffsets:
        """`read`: of the input. `read_again`, `ends`: of each partition of those topics; `ends` are not older."""
        topics = len({topic for topic, _ in ends})
        whole = [n for n, (held, _) in enumerate(self._looks) if all(read_again[at] >= held.get(at, 0) for at in ends)]
        latest = self._looks[whole[-1]][1] if whole else []
        levels = [read, *latest[:topics], *[{}] * (topics - len(latest))]
        del self._looks[: whole[-1] if whole else 0]
        self._looks.append((ends, levels))
        return levels[topics]


class GroupOffsets:
    """The committed offsets of a consumer group.

    Args:
        at: the brokers, the group, and the offsets before the first event.
        streams: topic to stream, for each topic that the group reads.
    """

    def __init__(self, at: EndpointConfig, streams: Mapping[str, str]) -> None:
        self.group, self._streams = at.group, streams
        self.offsets: RunOffsets = {}
        """The last ones noted; empty before the first commit."""
        self._firsts = {(topic, each): first for topic, each, first in at.starts if topic in streams}
        self._moves_s: list[float] = []
        self._own_topics = OwnTopics()
        self._partitions: dict[str, int] = {}
        client = KafkaSettings(**at.options).of_client
        self._admin: Any = AdminClient({**client, "log_level": 0, "error_cb": lambda _: None})

    def committed(self) -> RunOffsets:
        """The committed offset of each partition that has one, held back until what the job wrote for itself meanwhile
        is read as well. Raises DriverError if the broker does not answer.
        """
        found = committed_of(self._admin, self.group)
        read = self._since_start({place: offset for place, offset in found.items() if place in self._firsts})
        topics = {topic for topic, _ in found if topic.startswith(f"{self.group}-") and topic not in self._streams}
        if not topics:
            return read
        for topic in topics - self._partitions.keys():
            self._partitions[topic] = partitions_of(self._admin, topic)
        places = [(topic, partition) for topic in topics for partition in range(self._partitions[topic])]
        ends = ends_of(self._admin, places)  # asked last: what was read before was written by then
        passed = self._own_topics.passed(read, {place: found.get(place, 0) for place in places}, ends)
        # A topic is first seen when something of it is read, so more may have been noted before.
        return {place: max(offset, self.offsets.get(place, 0)) for place, offset in passed.items()}

    def ends(self) -> RunOffsets:
        """The offset after the last message of each partition. Raises DriverError if the broker does not answer."""
        return self._since_start(ends_of(self._admin, self._firsts))

    def note(self, committed: RunOffsets) -> bool:
        """Notes committed offsets. Returns whether they have moved."""
        if not committed or committed == self.offsets:
            return False
        self.offsets = committed
        self._moves_s.append(time.monotonic())
        return True

    def positions(self, offsets: RunOffsets) -> list[tuple[str, int, int, int]]:
        """Offsets as positions for `Receiver.read`."""
        return [(self._streams[topic], 0, partition, offset) for (topic, partition), offset in offsets.items()]

    def remark(self, receiver: Receiver) -> None:
        """Reports how often the offsets move, once they have."""
        remark_gap(
            receiver,
            self._moves_s,
            f"progress is that of the committed offsets of group {self.group}, which moved every",
            ", so the backlog contains that",
        )

    def _since_start(self, offsets: Mapping[TopicPartition, int]) -> RunOffsets:
        return {place: max(0, offset - self._firsts[place]) for place, offset in offsets.items()}
