"""Both edges of a Spark job on a broker: Spark's own Kafka source and sink, with native expressions around them.

Each batch is written whole by `foreachBatch`, between two marks: the first says how far its sources are read, which is
what Spark has just logged in the query's checkpoint; the second that all of its rows are there. So the recorder knows
batches, and a batch that Spark repeats is known again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgauge.core.lineage_columns import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.core.units import backquote
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spi import TUNED, Edges
from streamgauge.transports.kafka.client.result_messages import MARK, Mark, Position, Types, key_of, wire
from streamgauge.transports.kafka.client.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings
from streamgauge.transports.kafka.codecs.api import encoding
from streamgauge.transports.kafka.topic_names import results_of, stream_of, topic_of

WHOLE = {"startingOffsets": "earliest", "failOnDataLoss": "true"}
"""Without these a job would not read all that it is offered."""
READING = {**WHOLE, "kafka.fetch.max.wait.ms": "10", "kafka.max.partition.fetch.bytes": "10485760"}
WRITING = {"kafka.linger.ms": "50", "kafka.batch.size": "262144", "kafka.compression.type": "lz4", "kafka.acks": "all"}
"""A task ends by a flush, so nothing waits for the time that records may linger; without it each goes alone."""
FLUSH_S = 30.0


@dataclass(frozen=True)
class ClientSettings:
    """What Spark's source and sink are told of how their clients read and write."""

    reading: Mapping[str, str]
    writing: Mapping[str, str]


CLIENTS = {TUNED: ClientSettings(READING, WRITING), "kafka": ClientSettings(WHOLE, {})}
"""By the values of the option `kafka_clients`."""


def in_force(clients: ClientSettings) -> dict[str, str]:
    """What Spark's source and sink are told, as settings of a result."""

    def words(options: Mapping[str, str]) -> str:
        return " ".join(f"{name}={value}" for name, value in options.items()) or "Kafka's own defaults"

    source, sink = words(clients.reading), words(clients.writing)
    return {"source": f"Spark's own for Kafka: {source}", "sink": f"Spark's own for Kafka: {sink}"}


def read(
    session: Any, source: Source, given: Sequence[str], edges: Edges, reading: Mapping[str, str] = READING
) -> DataFrame:
    """A source's streaming frame: the given columns of what generators send."""
    types = {**source.schema.types(), **dict.fromkeys((EVENT_TIME, EVENT_ID), "bigint")}
    request = KafkaSettings.of(edges.transport_options)
    columns = tuple((name, types[name]) for name in edges.columns[source.name] if name != INGEST_TIME)
    layout = encoding(request.encoding, columns)
    reader = session.readStream.format("kafka").options(**reading, **brokers(request))
    messages = reader.option("subscribe", topic_of(edges.inputs[0].token, source.name)).load()
    opened = messages.select(F.expr(layout.opened("value")).alias("event"))
    texts = layout.expressions("event")
    return opened.select(*[F.expr(texts[name]).alias(name) for name in given])


class Marks:
    """Sends the marks of one run to its topic of results, one at a time."""

    def __init__(self, edges: Edges) -> None:
        from confluent_kafka import Producer

        self._topic, request = results_of(edges.output.token), KafkaSettings.of(edges.transport_options)
        own = {"bootstrap.servers": request.brokers, "linger.ms": 0, "log_level": 0, **ABSOLUTE_PATH_OPTIONS}
        self._client: Any = Producer({**request.login, **own})

    def send(self, mark: Mark) -> None:
        """Returns when the broker has kept it; RuntimeError where it does not, or is silent for long."""
        lost: list[str] = []
        self._client.produce(
            self._topic, mark.to_bytes(), MARK, on_delivery=lambda error, _: lost.append(error.str()) if error else None
        )
        if left := self._client.flush(FLUSH_S):
            raise RuntimeError(f"the broker has not kept {left} marks after {FLUSH_S:g} s")
        if lost:
            raise RuntimeError(f"the broker did not keep a mark: {lost[0]}")


class Writer:
    """What writes the batches of one query, in the process that starts it.

    Args:
        edges: where results go.
        query: its name.
        sinks: its sinks, in the order of the frame's struct columns; of one, the frame has its columns.
        checkpoint: the folder of the query's checkpoint.
        writing: what Spark's sink is told of how its client writes.
    """

    def __init__(
        self,
        edges: Edges,
        query: str,
        sinks: Sequence[str],
        checkpoint: Path,
        writing: Mapping[str, str] = WRITING,
    ) -> None:
        self._edges, self._query, self._sinks, self._checkpoint = edges, query, list(sinks), checkpoint
        self._marks = Marks(edges)
        self._to = {**writing, **to(edges)}
        self._types: dict[str, Types] = {}

    def write(self, frame: DataFrame, batch: int) -> None:
        """The rows of a batch, between its marks."""
        # The same in every batch; to ask a frame is a call across processes.
        self._types = self._types or types_of(frame, self._sinks)
        self._marks.send(Mark(self._query, batch, True, self._types, tuple(self._positions(batch))))
        rows = messages(frame, self._types, self._query, batch)
        rows.write.format("kafka").options(**self._to).mode("append").save()
        self._marks.send(Mark(self._query, batch, False))

    def _positions(self, batch: int) -> Iterable[Position]:
        return positions_in((self._checkpoint / "offsets" / str(batch)).read_text(), self._edges.inputs[0].token)


def messages(frame: DataFrame, sinks: dict[str, Types], query: str, batch: int) -> DataFrame:
    """What Spark's sink takes: a message for each row of a query's frame. Said in one text, as each expression that is
    built from Python is several calls across processes, in every batch.
    """
    return frame.selectExpr(f"'{key_of(query, batch)}' AS key", f"to_json({_struct(columns_of(sinks))}) AS value")


def to(edges: Edges) -> dict[str, str]:
    """Where Spark's sink writes."""
    return {**brokers(KafkaSettings.of(edges.transport_options)), "topic": results_of(edges.output.token)}


def brokers(request: KafkaSettings) -> dict[str, str]:
    """Where they are, and how to log in, as Spark's source and sink are told."""
    return {"kafka.bootstrap.servers": request.brokers, **request.java()}


def types_of(frame: DataFrame, sinks: Sequence[str]) -> dict[str, Types]:
    """Of each sink the types of its columns."""
    if len(sinks) == 1:
        return {sinks[0]: _types(frame.schema)}
    return {sink: _types(field.dataType) for sink, field in zip(sinks, frame.schema, strict=True)}


def _types(struct: Any) -> Types:
    assert isinstance(struct, StructType)
    return {field.name: field.dataType.simpleString() for field in struct}


def columns_of(sinks: dict[str, Types]) -> dict[str, str]:
    """The columns of a message in Spark SQL: of one sink those of its row, of several an object for each, where there
    is one.
    """
    if len(sinks) == 1:
        (types,) = sinks.values()
        return {name: wire(name, kind) for name, kind in types.items()}
    found = {}
    for number, (sink, types) in enumerate(sinks.items()):
        of = f"_sink_{number}"
        row = _struct({name: wire(name, kind, of) for name, kind in types.items()})
        found[sink] = f"CASE WHEN {of} IS NOT NULL THEN {row} END"
    return found


def _struct(columns: dict[str, str]) -> str:
    return f"struct({', '.join(f'{text} AS {backquote(name)}' for name, text in columns.items())})"


def positions_in(log: str, run: str) -> Iterable[Position]:
    """How far each reader is to read in a batch, out of what Spark logs of it: a line of offsets for each source."""
    readers: dict[str, int] = {}
    for line in log.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        for topic, offsets in said.items():
            if not isinstance(offsets, dict) or not topic.startswith(topic_of(run, "")):
                continue
            stream = stream_of(topic, run)
            reader = readers[stream] = readers.get(stream, -1) + 1
            for partition, offset in offsets.items():
                yield Position(stream, reader, int(partition), int(offset))
