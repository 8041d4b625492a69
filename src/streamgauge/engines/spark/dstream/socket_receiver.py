"""Spark's own socket receivers: each takes lines of one generator, and a batch is made of the blocks they have stored.

Lines stay strings of the JVM and are taken apart by native expressions. What a receiver has brought is known by number,
as of a broker; each keeps the order in which events came, so that its last line says how far it is in event time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.lineage_columns import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.dstream.state import Batch
from streamgauge.engines.spi import Edges
from streamgauge.transports.flight import client
from streamgauge.transports.socket.lines import SEPARATOR

_BLOCK = re.compile(r"\(input-\d+-(\d+),Some\((\d+)\)\)")
"""What a block that was stored is called in Spark's own words, and how many records it has."""
STORED = StorageLevel.MEMORY_AND_DISK
"""Where blocks are kept. Spark's default makes a second copy elsewhere, and there is no elsewhere on one machine."""


@dataclass(frozen=True)
class ReceivedBlocks:
    """Of each receiver, its blocks in a batch in their order: the number of each, which is the time at which its
    interval began, milliseconds since the epoch, and its lines.
    """

    blocks: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def lines(self) -> tuple[int, ...]:
        """How many each receiver has brought."""
        return tuple(sum(lines for _, lines in of) for of in self.blocks)


class SocketReceiver:
    """One receiver for each generator, all of one stream.

    Args:
        given: the stream's columns, as they stand in a line.
        wanted: those of them that the query reads.
        timed: whether it has to be known how far a batch is in event time.
        tells: whether every block is told of, which a run of hours had better not.
    """

    def __init__(
        self, session: Any, edges: Edges, query: str, stream: str, wanted: Sequence[str], timed: bool, tells: bool
    ) -> None:
        self._timed, self._tells = timed, tells
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

    def next(self, when_ms: int, _: int) -> ReceivedBlocks | None:
        """Spark has given the batch its blocks before it asks for the batch."""
        when = self._session._jvm.org.apache.spark.streaming.Time(when_ms)
        tracker = self._scheduler.receiverTracker()
        # As one text: of many small blocks each call to the JVM would be felt.
        texts = [tracker.getBlocksOfBatchAndStream(when, each).mkString("\n") for each in self._ids]
        found = ReceivedBlocks(tuple(tuple(blocks_in(text)) for text in texts))
        return found if any(found.lines) else None

    def begin(self, number: int, made: ReceivedBlocks, rdd: Any) -> Batch:
        """Tells the driver what the batch reads, and looks how far each receiver has come."""
        self._brought = [before + new for before, new in zip(self._brought, made.lines, strict=True)]
        positions = [(self._stream, 0, partition, offset) for partition, offset in enumerate(self._brought)]
        output = self._edges.output
        client.act(output.location, output.token, "read", query=self._query, batch=number, positions=positions)
        from_us = min(self._reached_us)
        if self._timed:
            for receiver, time_us in self._last_times([len(of) for of in made.blocks], rdd).items():
                self._reached_us[receiver] = time_us
        return Batch(number, from_us, min(self._reached_us), max(self._reached_us) + 1)

    def progress_fields(self, made: ReceivedBlocks) -> dict[str, Any]:
        """The blocks, as (partition, stream of Spark's, number, lines) each."""
        blocks = [
            (partition, stream, *block)
            for partition, (stream, of) in enumerate(zip(self._ids, made.blocks, strict=True))
            for block in of
        ]
        return {"blocks": blocks} if self._tells else {}

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


def blocks_in(text: str) -> Iterator[tuple[int, int]]:
    """Number and lines of each block that Spark has named."""
    return ((int(number), int(lines)) for number, lines in _BLOCK.findall(text))
