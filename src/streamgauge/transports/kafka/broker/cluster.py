"""The brokers of one test bed, a user's or the driver's own, with the run's topics."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from streamgauge.core.errors import DriverError
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker.broker import Broker
from streamgauge.transports.kafka.broker.topics import Topics
from streamgauge.transports.kafka.client.result_messages import MARK, mark_of, table_of
from streamgauge.transports.kafka.client.settings import KafkaSettings, on_this_machine
from streamgauge.transports.kafka.topic_names import results_of, topic_of
from streamgauge.transports.spi import BrokerRequest, EndpointConfig, IndexSampler

if TYPE_CHECKING:
    import pyarrow as pa

RETENTION_CHECK_S = 30.0
"""A message that the brokers have not kept by then is lost to its sender too."""


class KafkaCluster:
    """Implements `ManagedBroker`: a topic for each stream, a partition in it for each generator, and one for
    results.

    On a broker of our own, which is gone at the end, and the topics with it; or on those that were named, where the
    topics are removed at the end, unless they are to be kept.
    """

    def __init__(self, request: BrokerRequest) -> None:
        self._stack = ExitStack()
        self._broker: Broker | None = None
        options, self._run = dict(request.options), request.run
        if not options.get("brokers"):
            self._broker = self._stack.enter_context(Broker(request.folder, request.log, request.host, request.cpus))
            options["brokers"] = self._broker.location
        self.at = EndpointConfig("", 0, request.run, options)
        try:
            self._prepare(request, KafkaSettings.of(options))
        except BaseException:
            self._stack.close()
            raise

    def _prepare(self, request: BrokerRequest, settings: KafkaSettings) -> None:
        self._topics = Topics(settings.brokers, settings.login)
        # Asked first of all: of brokers that do not answer no topic has to be removed.
        hosts = self._topics.hosts()
        self._clock_is_local = self._broker is not None or on_this_machine(hosts)
        streams = [topic_of(request.run, stream) for stream in request.streams]
        self._names = [*streams, results_of(request.run)]
        if self._broker is None and settings.topics == "remove":
            self._stack.callback(self._remove)
        self._topics.make(streams, request.partitions)
        self._topics.make([results_of(request.run)], 1)
        self._ids = self._topics.ids(self._names)

    @property
    def alive(self) -> bool:
        """Of those that were named, who sends hears of it when they keep nothing more."""
        return self._broker is None or self._broker.alive

    def missing(self) -> str:
        try:
            there = self._topics.ids(self._ids)
            gone = [name for name, once in self._ids.items() if there.get(name) != once]
        except DriverError as error:
            return str(error)
        return f"{', '.join(gone)}: deleted by somebody in the middle of the trial" if gone else ""

    def lost(self, sent: Sequence[Mapping[str, int]]) -> str:
        """A broker may lose what it has said that it keeps, of which nobody else hears."""
        return "" if wait_until(lambda: not self._short(sent), RETENTION_CHECK_S) else "; ".join(self._short(sent))

    def _short(self, sent: Sequence[Mapping[str, int]]) -> list[str]:
        """Partitions that end before they should."""
        found = []
        for topic, stream in ((topic_of(self._run, stream), stream) for stream in (sent[0] if sent else ())):
            for partition, end in enumerate(self._topics.ends(topic, len(sent))):
                if end < (events := sent[partition][stream]):
                    found.append(f"{topic}: partition {partition} ends at {end}, and {events} events were sent there")
        return found

    def pids(self) -> list[int]:
        return [] if self._broker is None else self._broker.pids()

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        """Nothing where the brokers' clock is another than ours."""
        if not self._clock_is_local:
            return []
        return self._topics.appended_us(topic_of(self._run, stream), partition, offsets)

    def results(self, since_us: int, choose: IndexSampler) -> Mapping[str, pa.Table]:
        """Nothing where the brokers' clock is another than ours. The first message of all is the mark that says what
        types the columns have.
        """
        if not self._clock_is_local:
            return {}
        kept = self._topics.kept(results_of(self._run), 0)
        first, end = kept.first_since(since_us), kept.end()
        (mark,) = kept.at([0])
        found = [one for one in kept.at([first + one for one in choose(end - first)]) if one.key() != MARK]
        if not found:
            return {}
        when_us = [kept.appended_us(one) for one in found]
        return table_of([one.value() for one in found], mark_of(mark.value()).sinks, when_us)

    def close(self) -> None:
        self._stack.close()

    def _remove(self) -> None:
        """Those that are there: making them may have been cut off. What is left is told of, as nobody else would."""
        try:
            there = set(self._topics.there())
            self._topics.remove(name for name in self._names if name in there)
        except DriverError as error:
            print(f"streamgauge: topics of this run may be left: {error}", file=sys.stderr)
