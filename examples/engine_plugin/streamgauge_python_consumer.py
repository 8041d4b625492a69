"""An engine in one file: a plain Python loop that reads events, filters them and sends results.

The first two classes run beside the driver: what the engine can do, and one start of it. The others are the system
under test, in a process of its own: a loop, and a client for each transport.
"""

from __future__ import annotations

import json
import operator
import pickle
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from streamgauge.core.errors import EngineError, InputError, Problem
from streamgauge.core.schema import arrow_type
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import Flow, Node, Source, Where
from streamgauge.engines.spi import (
    ANOTHER_ENGINE,
    Capabilities,
    Edges,
    Engine,
    EnginePlugin,
    EngineStatus,
    StartRequest,
    node_names,
)
from streamgauge.system.child_processes import Child, ChildFailed, serve
from streamgauge.system.disk import Scratch

KINDS = (Source, Where)
"""The node kinds that `lowered` takes."""
POLL_S = 0.005
"""How long the loop waits when there are no new events."""
QUERY = "q"
"""The name of the only query."""
MESSAGES_MAX = 10_000
"""The most messages of a batch."""
BROKER_S = 30.0
"""How long a broker may take to answer."""
COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
Rows = list[dict[str, Any]]
RowWise = Callable[[Rows], Rows]


class PythonConsumerPlugin(EnginePlugin):
    """What the driver asks before a start."""

    interface = 3
    capabilities = Capabilities(
        name="python-consumer",
        summary="a plain Python loop: an example of an engine",
        nodes=node_names(KINDS),
        sink_modes=("append",),
        transports=("memory", "kafka"),
        encodings=("json",),
    )
    conformance = "streamgauge_python_consumer_conformance:CONF"

    def check(self, request: StartRequest) -> None:
        super().check(request)
        for sink in request.flow.sinks if request.flow else ():
            lowered(sink.input)

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        return PythonConsumerEngine(cpus)


class PythonConsumerEngine(Engine):
    """One start: a child process, which ends when the driver ends."""

    def __init__(self, cpus: Sequence[int] | None) -> None:
        self._cpus = cpus
        self._child: Child | None = None

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        log = folder / "python-consumer.log"
        with Scratch("python-consumer") as private:
            job = Path(private) / "job.pkl"
            job.write_bytes(pickle.dumps((flow, edges)))
            self._child = Child("python-consumer", "streamgauge_python_consumer", [str(job)], log, self._cpus)
            try:
                self._child.ask("start")
            except ChildFailed as error:
                self.stop()
                raise EngineError(f"python-consumer did not start: {error}", str(log)) from None

    def status(self) -> EngineStatus:
        assert self._child is not None
        try:
            failure = self._child.ask("failure")
        except ChildFailed as error:
            failure = str(error)
        return EngineStatus(alive=not failure, reason=failure)

    def pids(self) -> list[int]:
        return [self._child.pid] if self._child is not None and self._child.alive else []

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(grace_s=1.0)
            self._child = None


def lowered(node: Node) -> RowWise:
    """A function that computes a node's rows from those of the source. Raises InputError for what it cannot run."""
    if not isinstance(node, KINDS):
        rule = "must be a source or a condition for the engine python-consumer"
        raise InputError(Problem("engine", rule, type(node).__name__, ANOTHER_ENGINE))
    if isinstance(node, Source):
        return lambda rows: rows
    match = re.fullmatch(r"\s*(\w+)\s*(>=|<=|>|<|=)\s*(-?\d+)\s*", node.predicate)
    if match is None:
        rule = "must compare a column with a whole number for the engine python-consumer"
        raise InputError(Problem("engine", rule, node.predicate, ANOTHER_ENGINE))
    before, column, holds, number = lowered(node.input), match[1], COMPARISONS[match[2]], int(match[3])
    return lambda rows: [row for row in before(rows) if row[column] is not None and holds(row[column], number)]


class Client(Protocol):
    """The two ends of the loop on one transport."""

    def connect(self) -> None:
        """Returns when the first event can come."""

    def read(self, batch: int) -> Rows | None:
        """The rows of the next batch, which begins; None if there are no new events."""

    def write(self, batch: int, rows: Rows) -> None:
        """Sends the results of the batch, and commits it."""


class Consumer:
    """The system under test: a loop in a thread, while the main thread answers the driver."""

    def __init__(self, flow: Flow, edges: Edges) -> None:
        self._client: Client = (KafkaClient if edges.transport == "kafka" else FlightClient)(flow, edges)
        self._row_wise, self._failure, self._batch = lowered(flow.sink.input), "", 0

    def start(self) -> None:
        self._client.connect()
        threading.Thread(target=self._run, daemon=True).start()

    def failure(self) -> str:
        return self._failure

    def _run(self) -> None:
        try:
            while True:
                self._step()
        except Exception as error:
            traceback.print_exc()
            self._failure = f"{type(error).__name__}: {error}"

    def _step(self) -> None:
        """One batch, if there are new events."""
        rows = self._client.read(self._batch)
        if rows is not None:
            self._client.write(self._batch, self._row_wise(rows))
            self._batch += 1


class FlightClient:
    """Reads the driver's queues up to a common time, and sends results to its recorder."""

    def __init__(self, flow: Flow, edges: Edges) -> None:
        from streamgauge.transports.memory import client

        self._client, self._output, self._sink = client, edges.output, flow.sink.name
        self._source = graph.sources(flow)[0].name
        self._columns = edges.columns[self._source]
        types = schema.columns(flow.sink.input)
        self._results = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
        self._queues, self._position_us = [edge.location for edge in edges.inputs], 0

    def connect(self) -> None:
        self._cut()  # fails here if no generator answers

    def read(self, batch: int) -> Rows | None:
        from_us, to_us = self._position_us, self._cut()
        if to_us <= from_us:
            time.sleep(POLL_S)
            return None
        self._position_us = to_us
        return [
            row
            for queue in self._queues
            for part in self._client.read_range(
                queue, self._output.token, self._source, from_us, to_us, self._columns, batch, QUERY
            )
            for row in part.to_pylist()
        ]

    def write(self, batch: int, rows: Rows) -> None:
        to, accepted = (self._output.location, self._output.token), [[0, batch]] if rows else []
        if rows:
            address = {"query": QUERY, "batch": batch, "partition": 0, "attempt": batch, "sink": self._sink}
            self._client.send_results(*to, address, iter(pa.Table.from_pylist(rows, self._results).to_batches()))
        self._client.act(*to, "commit", query=QUERY, batch=batch, accepted=accepted, sinks=[self._sink])

    def _cut(self) -> int:
        return self._client.common_cut(self._queues, self._output.token, self._position_us)


class KafkaClient:
    """Reads a topic, and writes each batch of results between two marks."""

    def __init__(self, flow: Flow, edges: Edges) -> None:
        import confluent_kafka

        from streamgauge.transports.kafka import result_messages
        from streamgauge.transports.kafka.settings import KafkaSettings
        from streamgauge.transports.topic_names import results_of, topic_of

        run, brokers = edges.output.token, KafkaSettings(**edges.transport_options).of_client
        self._kafka, self._format, self._stream = confluent_kafka, result_messages, graph.sources(flow)[0].name
        self._topic, self._results = topic_of(run, self._stream), results_of(run)
        self._sinks = {flow.sink.name: schema.columns(flow.sink.input)}
        # Offsets are in the marks, so the group commits none.
        reading = {"group.id": f"streamgauge-{run}", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
        self._consumer = confluent_kafka.Consumer({**brokers, **reading})
        self._producer = confluent_kafka.Producer({**brokers, "enable.idempotence": True, "linger.ms": 1})
        self._ends: dict[int, int] = {}
        self._refused: list[str] = []

    def connect(self) -> None:
        partitions = self._consumer.list_topics(self._topic, BROKER_S).topics[self._topic].partitions
        self._consumer.assign([self._kafka.TopicPartition(self._topic, number, 0) for number in partitions])

    def read(self, batch: int) -> Rows | None:
        messages = self._consumer.consume(MESSAGES_MAX, POLL_S)
        if not messages:
            return None
        if errors := [message.error().str() for message in messages if message.error()]:
            raise RuntimeError(errors[0])
        self._ends |= {message.partition(): message.offset() + 1 for message in messages}
        ends = tuple(self._format.Position(self._stream, 0, *end) for end in self._ends.items())
        self._send(self._format.MARK, self._format.Mark(QUERY, batch, True, self._sinks, ends).to_bytes())
        return [json.loads(message.value()) for message in messages]

    def write(self, batch: int, rows: Rows) -> None:
        (types,) = self._sinks.values()
        for row in rows:
            # Doubles are texts, because JSON has no NaN.
            there = {name: kind for name, kind in types.items() if row.get(name) is not None}
            values = {name: str(row[name]) if kind == "double" else row[name] for name, kind in there.items()}
            self._send(self._format.key_of(QUERY, batch), json.dumps(values))
        self._send(self._format.MARK, self._format.Mark(QUERY, batch, False).to_bytes())
        if self._producer.flush(BROKER_S) or self._refused:
            raise RuntimeError(f"the broker did not accept results: {(self._refused or ['no answer'])[0]}")

    def _send(self, key: bytes | str, value: bytes | str) -> None:
        self._producer.produce(self._results, value, key, on_delivery=self._delivered)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._refused.append(error.str())


if __name__ == "__main__":
    job = Path(sys.argv[1])  # the driver wrote it into its private folder, so it may be unpickled
    consumer = Consumer(*pickle.loads(job.read_bytes()))
    serve({"start": consumer.start, "failure": consumer.failure}, scratch=job.parent)
