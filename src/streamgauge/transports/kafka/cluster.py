"""The brokers of one test bed (the user's or a local one) with the run's topics."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from streamgauge.core.errors import DriverError
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.result_messages import MARK, mark_of, table_of
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.topics import CREATE_TIME, Topics
from streamgauge.transports.spi import BrokerRequest, EndpointConfig, IndexSampler
from streamgauge.transports.topic_names import group_of, results_of, topic_of

if TYPE_CHECKING:
    import pyarrow as pa

RETENTION_CHECK_S = 30.0
"""A message that the brokers have not stored by then is lost."""


class KafkaCluster:
    """Implements `ManagedBroker`: a topic per stream with the partitions of the plan, and a topic of results.

    A program of the user's own may name its topics, and one that runs already has them.
    Uses a local broker, which is removed at the end, or the user's brokers, where the topics are removed at the end
    unless the user keeps them.
    """

    def __init__(self, request: BrokerRequest) -> None:
        self._broker: Broker | None = None
        options, self._run = dict(request.options), request.run
        self._program = request.program
        self._is_attached = request.program is not None and request.program.attached
        if self._program is None:
            self._streams = {stream: topic_of(request.run, stream) for stream in request.streams}
            outputs, planned = [results_of(request.run)], frozenset[str]()
        else:
            self._streams, planned = self._program.input_topics(request.run), self._program.planned
            outputs = list(self._program.output_topics(request.run).values())
        self._planned = [self._streams[stream] for stream in sorted(planned)]
        streams = list(self._streams.values())
        self._names = [*streams, *outputs]
        with ExitStack() as self._stack:
            if not options.get("brokers"):
                self._broker = self._stack.enter_context(
                    Broker(request.folder, request.log, request.host, request.cpus)
                )
                options["brokers"] = self._broker.location
            settings = KafkaSettings(**options)
            self._topics = Topics(settings.brokers, settings.login)
            # First, because no topic has to be removed from brokers that do not answer.
            self._clock_is_local = self._topics.hosts() <= {"localhost", "127.0.0.1", "::1"} or self._broker is not None
            if self._is_attached:
                self._firsts = self._topics.whole_ends(streams, outputs, request.partitions)
            else:
                self._make(streams, outputs, request.partitions, settings)
            self._topics.require_planned_times(self._planned)
            self._ids = self._topics.ids(self._names)
            self._stack = self._stack.pop_all()
        starts = tuple((topic, each, first) for (topic, each), first in self._firsts.items())
        self.at = EndpointConfig("", 0, request.run, options, self._program, starts)

    def _make(self, streams: list[str], outputs: list[str], partitions: int, settings: KafkaSettings) -> None:
        """Makes the topics. On the user's brokers none of them may exist, since it would be removed at the end."""
        if self._broker is None:
            self._topics.require_none(self._names)
            if settings.topics == "remove":
                self._stack.callback(self._remove)
        self._topics.make([topic for topic in streams if topic not in self._planned], partitions)
        self._topics.make(self._planned, partitions, **CREATE_TIME)
        self._topics.make(outputs, 1)
        places = ((topic, each) for topic in streams for each in range(partitions))
        self._firsts = dict.fromkeys([*places, *((topic, 0) for topic in outputs)], 0)

    @property
    def alive(self) -> bool:
        """Whether the local broker runs. With the user's brokers, the producer reports failures."""
        return self._broker is None or self._broker.alive

    def missing(self) -> str:
        try:
            current_ids = self._topics.ids(self._ids)
            deleted = [name for name, original_id in self._ids.items() if current_ids.get(name) != original_id]
        except DriverError as error:
            return str(error)
        return f"{', '.join(deleted)}: deleted by another program during the trial" if deleted else ""

    def lost(self, sent: Sequence[Mapping[str, int]], is_all: bool = False) -> str:
        """Detects messages that a broker acknowledged and then lost, and those of another producer.

        Either way an offset is no longer the number of an event, so the progress of a group is not known.
        """
        wait_until(lambda: all(more > 0 for *_, more in self._differing_partitions(sent)), RETENTION_CHECK_S)
        return "; ".join(
            f"{topic}: partition {partition} ends at {end}, and {end - self._firsts[topic, partition] - more} events "
            f"were sent there{', so another program writes to it too' if more > 0 else ''}"
            for topic, partition, end, more in self._differing_partitions(sent)
            if more < 0 or is_all
        )

    def _differing_partitions(self, sent: Sequence[Mapping[str, int]]) -> list[tuple[str, int, int, int]]:
        """(topic, partition, end, how many messages more than were sent) of partitions that have more or fewer."""
        return [
            (topic, partition, end, more)
            for stream, topic in (self._streams.items() if sent else ())
            for partition, end in enumerate(self._topics.ends(topic, len(sent)))
            if (more := end - self._firsts[topic, partition] - sent[partition][stream])
        ]

    def pids(self) -> list[int]:
        return [] if self._broker is None else self._broker.pids()

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        """Empty if the brokers do not share the driver's clock, or the topic holds or may hold other times."""
        if not self._clock_is_local or self._is_attached or self._streams[stream] in self._planned:
            return []
        return self._topics.appended_us(self._streams[stream], partition, offsets)

    def results(self, since_us: int, choose: IndexSampler) -> Mapping[str, pa.Table]:
        """Empty if the brokers do not share the driver's clock. The first message is a mark with the column types.

        Empty for programs of the user's own, which write no marks.
        """
        if not self._clock_is_local or self._program is not None:
            return {}
        log = self._topics.log(results_of(self._run), 0)
        first, end = log.first_since(since_us), log.end()
        (mark,) = log.at([0])
        messages = [one for one in log.at([first + one for one in choose(end - first)]) if one.key() != MARK]
        if not messages:
            return {}
        when_us = [log.appended_us(one) for one in messages]
        return table_of([one.value() for one in messages], mark_of(mark.value()).sinks, when_us)

    def close(self) -> None:
        self._stack.close()

    def _remove(self) -> None:
        """Removes this run's existing topics, and those that its job made. Prints a note if some may remain."""
        made_by_job = f"{group_of(self._run)}-"
        try:
            existing = self._topics.names()
            self._topics.remove(name for name in existing if name in self._names or name.startswith(made_by_job))
            self._topics.remove_group(group_of(self._run))
        except DriverError as error:
            print(f"streamgauge: topics of this run may remain, remove them: {error}", file=sys.stderr)
