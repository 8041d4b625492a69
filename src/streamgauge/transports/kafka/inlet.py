"""The recorder's endpoint: consumes the topic of results and passes batches to the receiver.

One thread only receives and stamps messages, another one handles them in larger pieces. So slow parsing delays no time
stamp.

A sink's batch is one attempt, from its first row to the batch's second mark. A query without batches is split into
slices of time, each a batch for the receiver. Its progress is in more marks, or in the offsets of its consumer group.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.transports.kafka.group_offsets import POLL_S, GroupOffsets, RunOffsets
from streamgauge.transports.kafka.result_messages import MARK, Mark, Types, carried_type, mark_of, table_of
from streamgauge.transports.kafka.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings
from streamgauge.transports.spi import EndpointConfig, Receiver
from streamgauge.transports.topic_names import results_of, stream_of

SETTINGS: dict[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 10,
    "socket.nagle.disable": True,
    "fetch.error.backoff.ms": 10,
    **ABSOLUTE_PATH_OPTIONS,
    "log_level": 0,
}
CONSUME_MAX = 50_000
"""The largest number of messages per consume call."""
WAIT_S = 0.02
Take = Callable[[list[Any], int], None]
"""take(messages, time of their arrival): handles messages that were received together."""


class ResultsConsumer:
    """Reads partitions from given offsets to the end of the run. It joins no group.

    Args:
        settings: the brokers and the log-in.
        name: the id by which brokers know the client.
        receiver: its clock stamps messages, and failures are reported to it.
    """

    def __init__(self, settings: KafkaSettings, name: str, receiver: Receiver) -> None:
        self._client: Any = confluent_kafka.Consumer(
            {**SETTINGS, **settings.of_client, "group.id": name, "error_cb": lambda _: None}
        )
        self._receiver = receiver
        self._received: queue.SimpleQueue[tuple[list[Any], int]] = queue.SimpleQueue()
        self.failed = threading.Event()
        """Ends all loops."""

    def start(
        self, places: Iterable[tuple[str, int, int]], take: Take, between: Callable[[], None], *loops: Callable[[], Any]
    ) -> None:
        """Reads from `places`, each a topic, its partition and the first offset.

        `take` and then `between` are called in one thread; each of `loops` again and again in one of its own.
        """

        def pass_on() -> None:
            with contextlib.suppress(queue.Empty):
                self._checked(take, *self._received.get(timeout=WAIT_S))
                for _ in range(self._received.qsize()):
                    self._checked(take, *self._received.get_nowait())
            between()

        self._client.assign([confluent_kafka.TopicPartition(*place) for place in places])
        for loop in (self._receive, pass_on, *loops):
            threading.Thread(target=self._safely, args=(loop,), name="results", daemon=True).start()

    def _receive(self) -> None:
        """Receives available messages and stamps them on arrival."""
        first = self._client.poll(WAIT_S)
        if first is None:
            return
        self._received.put(([first], self._receiver.now_us()))
        if more := self._client.consume(CONSUME_MAX, timeout=0):
            self._received.put((more, self._receiver.now_us()))

    def _checked(self, take: Take, messages: list[Any], received_at_us: int) -> None:
        if errors := [message.error() for message in messages if message.error() is not None]:
            raise DriverError(errors[0].str())
        take(messages, received_at_us)

    def _safely(self, once: Callable[[], Any]) -> None:
        try:
            while not self.failed.is_set():
                once()
        except Exception as error:  # reported, because no caller waits for this thread
            self._receiver.fail(f"results could not be received from the broker: {error}")
            self.failed.set()


PIECE_US = US // 20
"""Stamped messages wait up to this time to be parsed together, because each call has a fixed cost."""
SLICE_US = US // 4
"""The length of a slice of a query without batches."""


class KafkaInlet:
    """Implements `Inlet`.

    Args:
        at: the brokers (in its options), the run id as its token, and the engine's consumer group, if it has one.
        receiver: stores results.
    """

    def __init__(self, at: EndpointConfig, receiver: Receiver) -> None:
        settings, self._receiver = KafkaSettings(**at.options), receiver
        self._consumer = ResultsConsumer(settings, f"streamgauge-{at.token}", receiver)
        self.location = settings.brokers
        self._batches: dict[tuple[str, int], _Batch] = {}
        self._attempts, self._mark_us = 0, 0
        results = results_of(at.token)
        streams = {topic: stream_of(topic, at.token) for topic, *_ in at.starts if topic != results}
        self._group = GroupOffsets(at, streams) if at.group else None
        self._committed: RunOffsets = {}
        """The newest answer alone: a busy recorder that took each in turn would report progress late."""
        self._consumer.start([(results, 0, 0)], self._sort, self._go_on, *([self._follow] if at.group else []))

    def _sort(self, messages: list[Any], received_at_us: int) -> None:
        for key, run in groupby(messages, key=lambda message: message.key()):
            values = [message.value() for message in run]
            if key == MARK:
                for value in values:
                    # Marks received together get increasing times, because a batch starts after the previous one ended.
                    self._mark_us = max(received_at_us, self._mark_us + 1)
                    self._marked(mark_of(value), self._mark_us)
            else:
                query, _, batch = key.decode().rpartition("/")
                if (open_ := self._batches.get((query, int(batch)))) is None:
                    raise DriverError(f"results of batch {batch} of {query} came before it had begun, or after its end")
                open_.hold(values, received_at_us, self._receiver.now_us())

    def _go_on(self) -> None:
        now_us = self._receiver.now_us()
        for name, batch in list(self._batches.items()):
            if batch.held_us is not None and now_us - batch.held_us >= PIECE_US:
                batch.parse()
            if batch.mark.endless and batch.begun_us is not None and now_us - batch.begun_us >= SLICE_US:
                self._cut(name, batch)
        endless = [name for name, batch in self._batches.items() if batch.mark.endless]
        if self._group is not None and endless and self._group.note(self._committed):
            for name in endless:
                self._report(name, self._group.positions(self._group.offsets))
            self._group.remark(self._receiver)

    def _follow(self) -> None:
        """Asks how far the group has committed."""
        assert self._group is not None
        self._consumer.failed.wait(POLL_S)
        with contextlib.suppress(DriverError):  # a broker that is gone for long is noticed by the driver's clients
            self._committed = self._group.committed()

    def _marked(self, mark: Mark, received_at_us: int) -> None:
        name = (mark.query, mark.batch)
        open_ = self._batches.get(name)
        if open_ is not None and open_.mark.endless:
            self._report(name, mark.positions)
        elif mark.first:
            if open_ is not None:
                open_.end()
            self._attempts += 1
            self._batches[name] = _Batch(mark, mark.batch, self._attempts, self._receiver)
            self._receiver.read(mark.query, mark.batch, mark.positions, received_at_us)
        elif open_ is not None:
            del self._batches[name]
            self._commit(open_, received_at_us)

    def _report(self, name: tuple[str, int], positions: Sequence[tuple[str, int, int, int]]) -> None:
        """Reports the read positions of an endless batch, in a separate batch without results.

        A batch with results already reports its progress, and a second report would count as a restart. The time is
        now, as for the slices before it.
        """
        self._cut(name, self._batches[name])
        current = self._batches[name]
        self._receiver.read(current.mark.query, current.number, positions)
        self._cut(name, current)

    def _cut(self, name: tuple[str, int], batch: _Batch) -> None:
        """Commits the current slice of an endless batch and starts the next one."""
        self._commit(batch)
        self._batches[name] = _Batch(batch.mark, batch.number + 1, batch.attempt, self._receiver, batch.until_us)

    def _commit(self, batch: _Batch, when_us: int | None = None) -> None:
        batch.end()
        if batch.mark.endless and not (self._group and self._group.offsets):  # results show it until the group commits
            self._receiver.reached(batch.mark.query, batch.number, batch.until_us)
        self._receiver.commit(batch.mark.query, batch.number, [[0, batch.attempt]], list(batch.mark.sinks), when_us)


@dataclass
class _Batch:
    """One attempt of a batch, or of a slice of an endless one.

    `until_us`: just after the latest event time of its results and earlier ones. `begun_us`: arrival of the first
    message. `held_us`: arrival of the first unparsed message.
    """

    mark: Mark
    number: int
    attempt: int
    receiver: Receiver
    until_us: int = 0
    begun_us: int | None = None
    held_us: int | None = None
    values: list[bytes] = field(default_factory=list)
    received_us: list[int] = field(default_factory=list)
    streams: dict[str, _SinkStream] = field(default_factory=dict)

    def hold(self, values: list[bytes], received_at_us: int, now_us: int) -> None:
        # The current time, because with receive times a lagging parser would get ever smaller pieces.
        self.begun_us = now_us if self.begun_us is None else self.begun_us
        self.held_us = now_us if self.held_us is None else self.held_us
        self.values += values
        self.received_us += [received_at_us] * len(values)

    def parse(self) -> None:
        if not self.values:
            return
        values, received_us = self.values, self.received_us
        # Cleared first, so that a parse error is reported only once.
        self.values, self.received_us, self.held_us = [], [], None
        for sink, rows in table_of(values, self.mark.sinks, received_us).items():
            if len(rows):
                if sink not in self.streams:
                    address = {"query": self.mark.query, "batch": self.number, "partition": 0, "attempt": self.attempt}
                    self.streams[sink] = _SinkStream({**address, "sink": sink}, self.mark.sinks[sink], self.receiver)
                self.streams[sink].put(rows)
                self.until_us = max(self.until_us, (pc.max(rows.column(EVENT_TIME)).as_py() or -1) + 1)

    def end(self) -> None:
        self.parse()
        for stream in self.streams.values():
            stream.end()


class _SinkStream:
    """Streams the rows of one attempt and sink to the receiver."""

    def __init__(self, address: dict[str, Any], types: Types, receiver: Receiver) -> None:
        self._rows: queue.SimpleQueue[pa.RecordBatch | None] = queue.SimpleQueue()
        columns = {**{name: carried_type(kind) for name, kind in types.items()}, EMISSION_TIME: pa.int64()}
        self._thread = threading.Thread(target=self._bring, args=(receiver, address, pa.schema(columns)), daemon=True)
        self._thread.start()

    def put(self, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches():
            self._rows.put(batch)

    def end(self) -> None:
        self._rows.put(None)
        self._thread.join()

    def _bring(self, receiver: Receiver, address: dict[str, Any], schema: pa.Schema) -> None:
        with contextlib.suppress(DriverError):  # the receiver has reported it; the rest is discarded
            receiver.receive(address, schema, iter(self._rows.get, None), stamped=True)
