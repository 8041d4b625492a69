"""Spark's own socket receivers: each takes lines of one generator, and a batch is made of the blocks they have stored.

Lines stay strings of the JVM and are taken apart by native expressions. What a receiver has brought is known by number,
as of a broker; each keeps the order in which events came, so that its last line says how far it is in event time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.seam import Edges
from streamgauge.engines.spark.kept import Batch
from streamgauge.events import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.flow.nodes import Source
from streamgauge.transports.flight import client
from streamgauge.transports.socket.lines import SEPARATOR

STORED = StorageLevel.MEMORY_AND_DISK
"""Where blocks are kept. Spark's default makes a second copy elsewhere, and there is no elsewhere on one machine."""


@dataclass(frozen=True)
class Received:
    """Of each receiver, how many lines it has brought for a batch, and in how many blocks."""

    lines: tuple[int, ...]
    blocks: tuple[int, ...]


class Lines:
    """One receiver for each generator, all of one stream.

    Args:
        given: the stream's columns, as they stand in a line.
        wanted: those of them that the query reads.
    """

    def __init__(self, session: Any, edges: Edges, query: str, stream: str, wanted: Sequence[str]) -> None:
        self._session, self._edges, self._query, self._stream, self._wanted = session, edges, query, stream, wanted
        self._given = [name for name in edges.columns[stream] if name != INGEST_TIME]
        self._brought = [0] * len(edges.inputs)
        self._reached_us = [0] * len(edges.inputs)
        self._scheduler: Any = None
        self._ids: list[int] = []

    def stream(self, context: Any) -> Any:
        places = [urlsplit(edge.location) for edge in self._edges.inputs]
        streams = [context.socketTextStream(place.hostname, place.port, STORED) for place in places]
        self._ids = [each._jdstream.receiverInputDStream().id() for each in streams]
        self._scheduler = context._jssc.ssc().scheduler()
        return streams[0] if len(streams) == 1 else context.union(*streams)

    def next(self, when_ms: int, _: int) -> Received | None:
        """Spark has given the batch its blocks before it asks for the batch."""
        when = self._session._jvm.org.apache.spark.streaming.Time(when_ms)
        infos, tracker = self._scheduler.inputInfoTracker().getInfo(when), self._scheduler.receiverTracker()
        lines = [int(infos.apply(each).numRecords()) if infos.contains(each) else 0 for each in self._ids]
        blocks = [int(tracker.getBlocksOfBatchAndStream(when, each).size()) for each in self._ids]
        return Received(tuple(lines), tuple(blocks)) if any(lines) else None

    def begin(self, number: int, made: Received, rdd: Any) -> Batch:
        """Tells the driver what the batch reads, and looks how far each receiver has come."""
        self._brought = [before + new for before, new in zip(self._brought, made.lines, strict=True)]
        positions = [(self._stream, 0, partition, offset) for partition, offset in enumerate(self._brought)]
        output = self._edges.output
        client.act(output.location, output.token, "read", query=self._query, batch=number, positions=positions)
        from_us = min(self._reached_us)
        for receiver, time_us in self._last_times(made.blocks, rdd).items():
            self._reached_us[receiver] = time_us
        return Batch(number, from_us, min(self._reached_us), max(self._reached_us) + 1)

    def reading(self, _: Batch, rdd: Any) -> Callable[..., DataFrame]:
        """What reads the source's rows of a batch."""
        jvm, session = self._session._jvm, self._session
        texts = session._jsparkSession.createDataset(rdd._jrdd.rdd(), jvm.org.apache.spark.sql.Encoders.STRING())
        fields = DataFrame(texts.toDF(), session).select(F.split("value", SEPARATOR).alias("fields"))

        def read(source: Source, *_: Any) -> DataFrame:
            types = {**source.schema.types(), **dict.fromkeys((EVENT_TIME, EVENT_ID), "bigint")}
            place = {name: number for number, name in enumerate(self._given)}
            return fields.select(*[F.col("fields")[place[name]].cast(types[name]).alias(name) for name in self._wanted])

        return read

    def _last_times(self, blocks: Sequence[int], rdd: Any) -> dict[int, int]:
        """Receiver to the event time in its last line, of those that have brought any; only last blocks are looked at,
        which lie at the ends of the receivers' partitions.
        """
        ends = [sum(blocks[: number + 1]) - 1 for number in range(len(blocks))]
        there = [number for number, count in enumerate(blocks) if count]
        asked = self._session.sparkContext._gateway.new_array(self._session._jvm.int, len(there))
        for place, number in enumerate(there):
            asked[place] = ends[number]
        found = rdd._jrdd.collectPartitions(asked)
        column = self._given.index(EVENT_TIME)
        lasts = [found[place].get(found[place].size() - 1) for place in range(len(there))]
        return {number: int(line.split(SEPARATOR)[column]) for number, line in zip(there, lasts, strict=True)}
