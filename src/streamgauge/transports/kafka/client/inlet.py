"""The recorder's end: consumes the topic of results, and hands each batch over as it comes.

What a sink's batch gave is one attempt, which begins with its first row and ends with the batch's second mark. A query
that writes without batches is cut into slices of time here, each of which is a batch to the receiver. Messages are
stamped as they are taken from the broker, marks as well, by a thread that does nothing else; another takes them apart,
in larger pieces than they come. So however far that one is behind, nobody waits for it, and no stamp is later by it.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_TIME
from streamgauge.core.schema import arrow_type
from streamgauge.transports.kafka.client.result_messages import MARK, Mark, Types, mark_of, table_of
from streamgauge.transports.kafka.client.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings
from streamgauge.transports.kafka.topic_names import results_of
from streamgauge.transports.spi import EndpointConfig, Receiver

SETTINGS: dict[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
    "socket.nagle.disable": True,
    "fetch.error.backoff.ms": 10,
    **ABSOLUTE_PATH_OPTIONS,
    "log_level": 0,
}
AT_ONCE = 50_000
"""Messages taken from the client at a time, at most."""
WAIT_S = 0.02
PIECE_US = US // 20
"""So long messages wait here to be taken apart together, which has a cost each time; they are stamped by then."""
SLICE_US = US // 4
"""Of what comes without batches."""
CLOSE_S = 5.0


class KafkaInlet:
    """Implements `Inlet`.

    Args:
        at: the brokers, among the options, and the run's word in the place of a token.
        receiver: whoever keeps results.
    """

    def __init__(self, at: EndpointConfig, receiver: Receiver) -> None:
        from confluent_kafka import Consumer, TopicPartition

        asked, self._receiver = KafkaSettings.of(at.options), receiver
        self._brokers = asked.brokers
        own = {"bootstrap.servers": asked.brokers, "group.id": f"streamgauge-{at.token}"}
        self._client: Any = Consumer({**SETTINGS, **asked.login, **own, "error_cb": lambda _: None})
        self._client.assign([TopicPartition(results_of(at.token), 0, 0)])
        self._taken: queue.SimpleQueue[tuple[list[Any], int]] = queue.SimpleQueue()
        self._batches: dict[tuple[str, int], _Batch] = {}
        self._attempts, self._mark_us = 0, 0
        self._closing = threading.Event()
        loops = {"results taken": self._take, "results": self._pass_on}
        self._threads = [
            threading.Thread(target=self._safely, args=(loop,), name=name, daemon=True) for name, loop in loops.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def location(self) -> str:
        return self._brokers

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(CLOSE_S)
        self._client.close()
        for batch in self._batches.values():
            batch.end()

    def _safely(self, once: Any) -> None:
        try:
            while not self._closing.is_set():
                once()
        except Exception as error:  # nobody waits for this thread: who judges has to hear of it
            self._receiver.fail(f"results could not be taken from the broker: {error}")
            self._closing.set()  # what the other one would still take would wait here for nobody

    def _take(self) -> None:
        """What is there, as soon as there is something; stamped when it is here, and never before."""
        first = self._client.poll(WAIT_S)
        if first is None:
            return
        self._taken.put(([first], self._receiver.now_us()))
        if others := self._client.consume(AT_ONCE, timeout=0):
            self._taken.put((others, self._receiver.now_us()))

    def _pass_on(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._sort(*self._taken.get(timeout=WAIT_S))
            for _ in range(self._taken.qsize()):
                self._sort(*self._taken.get_nowait())
        for name, batch in list(self._batches.items()):
            self._go_on(name, batch)

    def _sort(self, messages: list[Any], taken_us: int) -> None:
        if errors := [message.error() for message in messages if message.error() is not None]:
            raise DriverError(errors[0].str())
        for key, run in groupby(messages, key=lambda message: message.key()):
            values = [message.value() for message in run]
            if key == MARK:
                for value in values:
                    # One after the other, though they were taken at once: a batch begins after the one before it ended.
                    self._mark_us = max(taken_us, self._mark_us + 1)
                    self._marked(mark_of(value), self._mark_us)
            else:
                self._open(key).hold(values, taken_us, self._receiver.now_us())

    def _go_on(self, name: tuple[str, int], batch: _Batch) -> None:
        now_us = self._receiver.now_us()
        if batch.held_us is not None and now_us - batch.held_us >= PIECE_US:
            batch.take_apart()
        if batch.mark.endless and batch.begun_us is not None and now_us - batch.begun_us >= SLICE_US:
            self._cut(name, batch)

    def _open(self, key: bytes) -> _Batch:
        query, _, batch = key.decode().rpartition("/")
        found = self._batches.get((query, int(batch)))
        if found is None:
            raise DriverError(f"results of batch {batch} of {query} came before it had begun, or after its end")
        return found

    def _marked(self, mark: Mark, taken_us: int) -> None:
        name = (mark.query, mark.batch)
        open_ = self._batches.get(name)
        if open_ is not None and open_.mark.endless:
            self._report(name, mark)
        elif mark.first:
            if open_ is not None:
                open_.end()
            self._attempts += 1
            self._batches[name] = _Batch(mark, mark.batch, self._attempts, self._receiver)
            self._receiver.read(mark.query, mark.batch, _positions(mark), taken_us)
        elif open_ is not None:
            del self._batches[name]
            self._commit(open_, taken_us)

    def _report(self, name: tuple[str, int], mark: Mark) -> None:
        """How far an endless batch has read for certain. In a batch of its own: were it one with results, which show
        how far they come themselves, that would be two reads of one batch, of which the second is one begun anew. As of
        now, like the slices that are cut off before it.
        """
        self._cut(name, self._batches[name])
        told = self._batches[name]
        self._receiver.read(mark.query, told.number, _positions(mark))
        self._cut(name, told)

    def _cut(self, name: tuple[str, int], batch: _Batch) -> None:
        """What has come of an endless batch since it was last cut is a batch of its own."""
        self._commit(batch)
        self._batches[name] = _Batch(batch.mark, batch.number + 1, batch.attempt, self._receiver, batch.until_us)

    def _commit(self, batch: _Batch, when_us: int | None = None) -> None:
        batch.end()
        if batch.mark.endless:
            self._receiver.reached(batch.mark.query, batch.number, batch.until_us)
        self._receiver.commit(batch.mark.query, batch.number, [[0, batch.attempt]], list(batch.sinks), when_us)


def _positions(mark: Mark) -> list[tuple[str, int, int, int]]:
    return [(each.stream, each.reader, each.partition, each.offset) for each in mark.positions]


@dataclass
class _Batch:
    """One attempt at a batch, or at a slice of one without end: of each sink what is on its way to the receiver.

    `until_us`: just after the latest event time of its results, and of those before it. `begun_us`, `held_us`: since
    when it has had a message, and one that is not taken apart yet.
    """

    mark: Mark
    number: int
    attempt: int
    receiver: Receiver
    until_us: int = 0
    begun_us: int | None = None
    held_us: int | None = None
    values: list[bytes] = field(default_factory=list)
    stamps_us: list[int] = field(default_factory=list)
    streams: dict[str, _SinkStream] = field(default_factory=dict)

    @property
    def sinks(self) -> dict[str, Types]:
        return self.mark.sinks

    def hold(self, values: list[bytes], taken_us: int, now_us: int) -> None:
        # By now, not by when they were taken: whoever lags would cut ever smaller pieces, and lag more.
        self.begun_us = now_us if self.begun_us is None else self.begun_us
        self.held_us = now_us if self.held_us is None else self.held_us
        self.values += values
        self.stamps_us += [taken_us] * len(values)

    def take_apart(self) -> None:
        if not self.values:
            return
        values, stamps_us = self.values, self.stamps_us
        # First: what cannot be taken apart is told of once, and not again at the end.
        self.values, self.stamps_us, self.held_us = [], [], None
        for sink, rows in table_of(values, self.sinks, stamps_us).items():
            if len(rows):
                self._stream(sink).put(rows)
                self.until_us = max(self.until_us, (pc.max(rows.column(EVENT_TIME)).as_py() or -1) + 1)

    def end(self) -> None:
        self.take_apart()
        for way in self.streams.values():
            way.end()

    def _stream(self, sink: str) -> _SinkStream:
        if sink not in self.streams:
            address = {"query": self.mark.query, "batch": self.number, "partition": 0, "attempt": self.attempt}
            self.streams[sink] = _SinkStream({**address, "sink": sink}, self.sinks[sink], self.receiver)
        return self.streams[sink]


class _SinkStream:
    """Rows of one attempt and sink on their way to the receiver, which takes them as they come."""

    def __init__(self, address: dict[str, Any], types: Types, receiver: Receiver) -> None:
        self._rows: queue.SimpleQueue[pa.RecordBatch | None] = queue.SimpleQueue()
        columns = {**{name: arrow_type(kind) for name, kind in types.items()}, EMISSION_TIME: pa.int64()}
        self._thread = threading.Thread(target=self._bring, args=(receiver, address, pa.schema(columns)), daemon=True)
        self._thread.start()

    def put(self, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches():
            self._rows.put(batch)

    def end(self) -> None:
        self._rows.put(None)
        self._thread.join()

    def _bring(self, receiver: Receiver, address: dict[str, Any], schema: pa.Schema) -> None:
        with contextlib.suppress(DriverError):  # the receiver has told its owner; the rest is taken and lost
            receiver.receive(address, schema, self._coming(), stamped=True)

    def _coming(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._rows.get()) is not None:
            yield batch
