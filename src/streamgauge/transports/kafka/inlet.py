"""The recorder's end: consumes the topic of results, and hands each batch over as it comes.

What a sink's batch gave is one attempt, which begins with its first row and ends with the batch's second mark: rows are
stamped as they are taken from the broker, whenever their batch is whole.
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

from streamgauge.errors import DriverError
from streamgauge.events import arrow_type
from streamgauge.transports.kafka.names import results_of
from streamgauge.transports.kafka.results import MARK, Mark, Types, mark_of, table_of
from streamgauge.transports.seam import Listen, Receiver

SETTINGS: dict[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
    "fetch.error.backoff.ms": 10,
    "log_level": 0,
}
AT_ONCE = 50_000
"""Messages taken from the client at a time, at most."""
WAIT_S = 0.02
CLOSE_S = 5.0


class KafkaInlet:
    """Fills the seam's `Inlet`.

    Args:
        at: the broker, and the run's word in the place of a token.
        receiver: whoever keeps results.
    """

    def __init__(self, at: Listen, receiver: Receiver) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._broker, self._receiver = f"{at.host}:{at.port}", receiver
        asked = {**SETTINGS, "bootstrap.servers": self._broker, "group.id": f"streamgauge-{at.token}"}
        self._client: Any = Consumer({**asked, "error_cb": lambda _: None})
        self._client.assign([TopicPartition(results_of(at.token), 0, 0)])
        self._batches: dict[tuple[str, int], _Batch] = {}
        self._attempts = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="results", daemon=True)
        self._thread.start()

    @property
    def location(self) -> str:
        return self._broker

    def close(self) -> None:
        self._closing.set()
        self._thread.join(CLOSE_S)
        self._client.close()
        for batch in self._batches.values():
            batch.end()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._take(self._client.consume(AT_ONCE, timeout=WAIT_S))
        except Exception as error:  # nobody waits for this thread: who judges has to hear of it
            self._receiver.fail(f"results could not be taken from the broker: {error}")

    def _take(self, messages: list[Any]) -> None:
        if errors := [message.error() for message in messages if message.error() is not None]:
            raise DriverError(errors[0].str())
        for key, run in groupby(messages, key=lambda message: message.key()):
            values = [message.value() for message in run]
            if key == MARK:
                for value in values:
                    self._marked(mark_of(value))
            else:
                self._open(key).add(values)

    def _open(self, key: bytes) -> _Batch:
        query, _, batch = key.decode().rpartition("/")
        found = self._batches.get((query, int(batch)))
        if found is None:
            raise DriverError(f"results of batch {batch} of {query} came before it had begun, or after its end")
        return found

    def _marked(self, mark: Mark) -> None:
        name = (mark.query, mark.batch)
        open_ = self._batches.pop(name, None)
        if mark.first:
            if open_ is not None:
                open_.end()
            self._attempts += 1
            self._batches[name] = _Batch(mark, self._attempts, self._receiver)
            positions = [(each.stream, each.reader, each.partition, each.offset) for each in mark.positions]
            self._receiver.read(mark.query, mark.batch, positions)
        elif open_ is not None:
            open_.end()
            self._receiver.commit(mark.query, mark.batch, [[0, open_.attempt]], list(open_.sinks))


@dataclass
class _Batch:
    """One attempt at a batch: of each sink what is on its way to the receiver."""

    mark: Mark
    attempt: int
    receiver: Receiver
    ways: dict[str, _Way] = field(default_factory=dict)

    @property
    def sinks(self) -> dict[str, Types]:
        return self.mark.sinks

    def add(self, values: list[bytes]) -> None:
        for sink, rows in table_of(values, self.sinks).items():
            if len(rows):
                self._way(sink).put(rows)

    def end(self) -> None:
        for way in self.ways.values():
            way.end()

    def _way(self, sink: str) -> _Way:
        if sink not in self.ways:
            address = {"query": self.mark.query, "batch": self.mark.batch, "partition": 0, "attempt": self.attempt}
            self.ways[sink] = _Way({**address, "sink": sink}, self.sinks[sink], self.receiver)
        return self.ways[sink]


class _Way:
    """Rows of one attempt and sink on their way to the receiver, which takes them as they come."""

    def __init__(self, address: dict[str, Any], types: Types, receiver: Receiver) -> None:
        self._rows: queue.SimpleQueue[pa.RecordBatch | None] = queue.SimpleQueue()
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
        self._thread = threading.Thread(target=self._bring, args=(receiver, address, schema), daemon=True)
        self._thread.start()

    def put(self, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches():
            self._rows.put(batch)

    def end(self) -> None:
        self._rows.put(None)
        self._thread.join()

    def _bring(self, receiver: Receiver, address: dict[str, Any], schema: pa.Schema) -> None:
        with contextlib.suppress(DriverError):  # the receiver has told its owner; the rest is taken and lost
            receiver.receive(address, schema, self._coming())

    def _coming(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._rows.get()) is not None:
            yield batch
