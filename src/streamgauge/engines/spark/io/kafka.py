"""Both edges of a Spark job on a broker: Spark's Kafka source and sink with native expressions.

In micro-batch mode, `foreachBatch` writes each batch between two marks. The first has the source positions, which Spark
has just logged in the query's checkpoint. The second states that all rows were written. So the recorder knows batches
and detects repeated ones.

In real-time mode, Spark's sink writes every result at once, and a thread reports the positions.
"""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from streamgauge.core.plugin_options import CLIENT_FILE, TUNED
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME, ColumnTypes
from streamgauge.core.units import backquote
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.io.json_blocks import UNPARSED, is_parsable, names, parser
from streamgauge.engines.spark.io.spi import QueryStart, TransportAdapter
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.columns import ddl
from streamgauge.engines.spark.lowering.row_counter import RowCounter
from streamgauge.engines.spi import Edges
from streamgauge.transports.kafka.encodings.api import EngineEncoding
from streamgauge.transports.kafka.encodings.choice import encoding
from streamgauge.transports.kafka.encodings.json import wire_types
from streamgauge.transports.kafka.result_messages import Mark, Marks, Position, Types, is_carried, key_of, wire
from streamgauge.transports.kafka.settings import MESSAGE_BYTES_MAX, KafkaSettings
from streamgauge.transports.topic_names import results_of, stream_of, topic_of

WHOLE = {"startingOffsets": "earliest", "failOnDataLoss": "true"}
"""Without these a job would not read all that it is offered."""
READING = {**WHOLE, "kafka.fetch.max.wait.ms": "10", "kafka.max.partition.fetch.bytes": "10485760"}
LARGEST = {"kafka.max.request.size": str(MESSAGE_BYTES_MAX)}
"""As the driver's own client: Kafka's 1 MB would end a query whose results keep a payload."""
WRITING = {
    "kafka.linger.ms": "50", "kafka.batch.size": "262144", "kafka.compression.type": "lz4", "kafka.acks": "all",
    **LARGEST,
}  # fmt: skip
"""The linger time batches records; it adds no latency, because each task ends with a flush."""
REDACTION = {"spark.redaction.regex": "(?i)secret|password|token|access[.]?key|keystore|jaas"}
"""Spark's default redaction pattern, extended by the names of client credentials."""
REALTIME_WRITING = {"kafka.linger.ms": "2", "kafka.compression.type": "none", "kafka.acks": "all", **LARGEST}
"""Two milliseconds of linger reduce thousands of requests per second to hundreds, without added latency."""
ALL = 0
"""The batch number of all results."""
POLL_S = 0.5


@dataclass(frozen=True)
class ClientSettings:
    """Client options of Spark's source and sink."""

    reading: Mapping[str, str]
    writing: Mapping[str, str]


CLIENTS = {TUNED: ClientSettings(READING, WRITING), "kafka": ClientSettings(WHOLE, LARGEST)}
"""By the values of the option `kafka_clients`."""


def parsed_in_blocks(messages: DataFrame, layout: EngineEncoding, columns: ColumnTypes) -> DataFrame:
    """The struct `event` of a frame with JSON messages in `value`, as `from_json` has it. Arrow parses them, and
    `from_json` those that Arrow may read differently.
    """
    kinds = wire_types(columns)
    parsed = names(len(kinds))
    types = ddl({**dict(zip(parsed, kinds.values(), strict=True)), UNPARSED: "binary"})
    rows = messages.select("value").mapInArrow(parser(kinds), types)
    both = rows.select(*parsed, F.expr(layout.opened(UNPARSED)).alias("event"))
    fields = {name: f"coalesce(event.{backquote(name)}, {at})" for name, at in zip(kinds, parsed, strict=True)}
    return both.select(F.expr(_struct(fields)).alias("event"))


def messages(frame: DataFrame, sinks: dict[str, Types], query: str, batch: int) -> DataFrame:
    """One Kafka message (key, value) per row. As SQL text, because building expressions in Python needs several calls
    to the JVM per batch.
    """
    return frame.selectExpr(f"'{key_of(query, batch)}' AS key", f"to_json({_struct(columns_of(sinks))}) AS value")


def to(edges: Edges) -> dict[str, str]:
    """Options of Spark's sink: brokers and topic."""
    return {**brokers(KafkaSettings(**edges.transport_options)), "topic": results_of(edges.output.token)}


def brokers(request: KafkaSettings) -> dict[str, str]:
    """The brokers' addresses and credentials, as options of Spark's source and sink."""
    return {f"kafka.{name}": value for name, value in {"bootstrap.servers": request.brokers, **request.java()}.items()}


def types_of(frame: DataFrame, sinks: Sequence[str]) -> dict[str, Types]:
    """Sink to the types of its columns: those of the frame with one sink, else of its struct columns in order."""
    if len(sinks) == 1:
        return {sinks[0]: _types(frame.schema)}
    return {sink: _types(field.dataType) for sink, field in zip(sinks, frame.schema, strict=True)}


def _types(struct: Any) -> Types:
    return {field.name: field.dataType.simpleString() for field in struct}


def columns_of(sinks: dict[str, Types]) -> dict[str, str]:
    """The fields of a message in Spark SQL: the columns of a single sink, or one nullable object per sink."""
    if len(sinks) == 1:
        (types,) = sinks.values()
        return {name: wire(name, kind) for name, kind in types.items()}
    expressions = {}
    for number, (sink, types) in enumerate(sinks.items()):
        of = f"_sink_{number}"
        row = _struct({name: wire(name, kind, of) for name, kind in types.items()})
        expressions[sink] = f"CASE WHEN {of} IS NOT NULL THEN {row} END"
    return expressions


def _struct(columns: dict[str, str]) -> str:
    return f"struct({', '.join(f'{text} AS {backquote(name)}' for name, text in columns.items())})"


def positions_in(log: str, run: str) -> Iterable[Position]:
    """The end positions of each reader in a batch, from Spark's offset log: one line of offsets per source."""
    readers: dict[str, int] = {}
    for line in log.splitlines():
        offsets_by_topic = json.loads(line) if line.startswith("{") else {}
        for topic, offsets in offsets_by_topic.items():
            if not isinstance(offsets, dict) or not topic.startswith(topic_of(run, "")):
                continue
            stream = stream_of(topic, run)
            reader = readers[stream] = readers.get(stream, -1) + 1
            for partition, offset in offsets.items():
                yield Position(stream, reader, int(partition), int(offset))


class KafkaAdapter(TransportAdapter):
    """Reads streams from topics; results go to the run's results topic."""

    reads_evenly = False
    carries = staticmethod(is_carried)

    def __init__(self, edges: Edges, options: Mapping[str, str], clients: ClientSettings | None = None) -> None:
        super().__init__(edges, options)
        self._clients = clients or CLIENTS[options.get("kafka_clients", TUNED)]
        self._json_parser = options.get("json_parser")
        self._request = KafkaSettings(**edges.transport_options)

    def configuration(self) -> dict[str, str]:
        """Hides credentials where clients log in."""
        return REDACTION if CLIENT_FILE in self._edges.transport_options else {}

    def effective_settings(self, settings: dict[str, str]) -> dict[str, str]:
        unused = {"nullable"} if self._request.encoding == "json" else {"nullable", "json_parser"}
        settings = {name: value for name, value in settings.items() if name not in unused}
        for end, options in (("source", self._clients.reading), ("sink", self._clients.writing)):
            settings[end] = f"Spark's own for Kafka: {' '.join(f'{name}={value}' for name, value in options.items())}"
        return settings

    def read(
        self,
        session: SparkSession,
        source: Source,
        columns: Sequence[str],
        query: str,
        reader: int,
        packing: Packing | None = None,
        counter: RowCounter | None = None,
    ) -> DataFrame:
        """Always rows: lowerings that read packed blocks are refused before the start."""
        types = {**source.schema.types(), **dict.fromkeys((EVENT_TIME, EVENT_ID), "bigint")}
        typed = tuple((name, types[name]) for name in self._edges.columns[source.name] if name != INGEST_TIME)
        layout, is_json = encoding(self._request.encoding, typed), self._request.encoding == "json"
        configured = session.readStream.format("kafka").options(**self._clients.reading, **brokers(self._request))
        if self.events_max:
            configured = configured.option("maxOffsetsPerTrigger", self.events_max)
        messages = configured.option("subscribe", topic_of(self._edges.inputs[0].token, source.name)).load()
        if self._json_parser == "arrow" and is_json and is_parsable(wire_types(typed).values()):
            opened = parsed_in_blocks(messages, layout, typed)
        else:
            opened = messages.select(F.expr(layout.opened("value")).alias("event"))
        # The driver does not see when a broker delivers a message.
        texts = {**layout.expressions("event"), INGEST_TIME: "CAST(NULL AS BIGINT)"}
        return opened.select(*[F.expr(texts[name]).alias(name) for name in columns])

    def start(self, frame: DataFrame, start: QueryStart) -> StreamingQuery:
        query, edges, options = start.query.name, self._edges, {**self._clients.writing, **to(self._edges)}
        marks = Marks(edges.output, edges.transport_options)
        # Before the first batch, because asking a frame for its schema is a call to the JVM.
        types = types_of(frame, [sink.name for sink in start.query.sinks])

        def write(rows: DataFrame, batch: int) -> None:
            """Writes the rows of a batch between its marks."""
            log = (start.checkpoint / "offsets" / str(batch)).read_text()
            marks.send(Mark(query, batch, True, types, tuple(positions_in(log, edges.inputs[0].token))))
            messages(rows, types, query, batch).write.format("kafka").options(**options).mode("append").save()
            marks.send(Mark(query, batch, False))

        return start.by_batch(frame, write)


class RealTimeKafkaAdapter(KafkaAdapter):
    """As `KafkaAdapter`, but Spark's sink writes every result at once, without batches."""

    def __init__(self, edges: Edges, options: Mapping[str, str]) -> None:
        super().__init__(edges, options, ClientSettings(READING, REALTIME_WRITING))

    def start(self, frame: DataFrame, start: QueryStart) -> StreamingQuery:
        query = start.query
        marks = Marks(self._edges.output, self._edges.transport_options)
        types = types_of(frame, [sink.name for sink in query.sinks])
        marks.send(Mark(query.name, ALL, True, types, endless=True))
        writer = start.writer(messages(frame, types, query.name, ALL)).outputMode("update").format("kafka")
        running = writer.options(**REALTIME_WRITING, **to(self._edges)).start()
        Thread(
            target=report_positions,
            args=(marks, query.name, self._edges.inputs[0].token, running),
            name="progress",
            daemon=True,
        ).start()
        return running


def report_positions(marks: Marks, query: str, run: str, running: Any) -> None:
    """Reports the end positions of each Spark batch, which cover rows without results too. Ends with the query, and
    retries if the broker is unavailable.
    """
    reported = -1
    try:
        while running.isActive:
            last = running.lastProgress
            if last is not None and last.batchId > reported:
                ends = "\n".join(source.endOffset for source in last.sources)
                try:
                    marks.send(Mark(query, ALL, False, {}, tuple(positions_in(ends, run)), endless=True))
                    reported = last.batchId
                except Exception as error:  # of the client, or of the broker that it does not reach
                    print(f"streamgauge: could not report read positions yet: {error}", file=sys.stderr, flush=True)
            time.sleep(POLL_S)
    except Exception as error:
        print(f"streamgauge: stopped reporting read positions: {error}", file=sys.stderr, flush=True)
