"""The receivers of a DStream: of a queue, and Spark's own of sockets.

- `stream`: the DStream of incoming data.
- `next`: the data of the batch that is being created; None if it is empty.
- `begin`: called when a batch is about to be processed.
- `received_blocks`: the blocks of a batch, for its progress.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.dstream.lowering import Batch
from streamgauge.engines.spark.session.reports import Block
from streamgauge.engines.spi import Edges
from streamgauge.transports.memory import client
from streamgauge.transports.socket.endpoint import SEPARATOR

_BLOCK = re.compile(r"\(input-\d+-(\d+),Some\((\d+)\)\)")
"""Spark's text for a stored block: its number and its number of records."""
STORED = StorageLevel.MEMORY_AND_DISK
"""The storage of blocks. Spark's default adds a second copy on another machine, and there is only one."""


class QueueReceiver:
    """Cuts the queues of all generators at one event time."""

    def __init__(self, edges: Edges, query: str, reading: Callable[[dict[str, str]], Callable[..., Any]]) -> None:
        self._locations, self._token = [edge.location for edge in edges.inputs], edges.inputs[0].token
        self._query, self._reading = query, reading
        self._reached_us = 0

    def stream(self, context: Any) -> Any:
        """An empty RDD: rows are read as a frame, not as Python objects."""
        nothing = context.sparkContext.emptyRDD()
        return context.queueStream([nothing], default=nothing)

    def next(self, _: int, number: int) -> Batch | None:
        from_us = self._reached_us
        to_us = client.common_cut(self._locations, self._token, from_us, self._query, "batches")
        if to_us <= from_us:
            return None
        self._reached_us = to_us
        return Batch(number, from_us, to_us, to_us)

    def begin(self, _: int, made: Batch, __: Any) -> Batch:
        """The batch is already complete."""
        return made

    def received_blocks(self, _: Batch) -> Sequence[Block]:
        """Empty, because a queue has no blocks."""
        return ()

    def reading(self, batch: Batch, _: Any) -> Callable[..., Any]:
        """A function that reads a source's rows of a batch."""
        return self._reading({"from_us": str(batch.from_us), "to_us": str(batch.to_us), "batch": str(batch.number)})


ReceivedBlocks = tuple[tuple[tuple[int, int], ...], ...]
"""For each receiver, its blocks in a batch in order: (number, lines).

The number is the start of the block's interval, milliseconds since the epoch.
"""


def lines_of(received: ReceivedBlocks) -> tuple[int, ...]:
    """The number of lines of each receiver."""
    return tuple(sum(lines for _, lines in of) for of in received)


class SocketReceiver:
    """One receiver for each partition, all of one stream.

    Args:
        stream: the stream's name.
        needed: the columns that the query reads.
        timed: whether the event time reached by a batch is needed.
        tells: whether to report every block, which is too much for long runs.
    """

    def __init__(
        self, session: Any, edges: Edges, query: str, stream: str, needed: Sequence[str], timed: bool, tells: bool
    ) -> None:
        self._timed, self._tells = timed, tells
        self._session, self._edges, self._query, self._stream, self._needed = session, edges, query, stream, needed
        self._line_columns = [name for name in edges.columns[stream] if name != INGEST_TIME]
        self._brought = [0] * len(edges.inputs)
        self._reached_us = [0] * len(edges.inputs)
        self._scheduler: Any = None
        self._ids: list[int] = []

    def stream(self, context: Any) -> Any:
        places = [urlsplit(edge.location) for edge in self._edges.inputs]
        streams = [context.socketTextStream(index.hostname, index.port, STORED) for index in places]
        self._ids = [each._jdstream.receiverInputDStream().id() for each in streams]
        self._scheduler = context._jssc.ssc().scheduler()
        return streams[0] if len(streams) == 1 else context.union(*streams)

    def next(self, when_ms: int, _: int) -> ReceivedBlocks | None:
        """The blocks of the batch, which Spark assigns before it creates the batch."""
        when = self._session._jvm.org.apache.spark.streaming.Time(when_ms)
        tracker = self._scheduler.receiverTracker()
        # As one text, because a call to the JVM per block would be slow.
        texts = (tracker.getBlocksOfBatchAndStream(when, each).mkString("\n") for each in self._ids)
        received = tuple(tuple(blocks_in(text)) for text in texts)
        return received if any(lines_of(received)) else None

    def begin(self, number: int, made: ReceivedBlocks, rdd: Any) -> Batch:
        """Reports the batch's positions to the driver, and updates the event time reached by each receiver."""
        self._brought = [before + new for before, new in zip(self._brought, lines_of(made), strict=True)]
        positions = [(self._stream, 0, partition, offset) for partition, offset in enumerate(self._brought)]
        output = self._edges.output
        client.act(output.location, output.token, "read", query=self._query, batch=number, positions=positions)
        from_us = min(self._reached_us)
        if self._timed:
            for receiver, time_us in self._last_times([len(of) for of in made], rdd).items():
                self._reached_us[receiver] = time_us
        return Batch(number, from_us, min(self._reached_us), max(self._reached_us) + 1)

    def received_blocks(self, made: ReceivedBlocks) -> Sequence[Block]:
        """The blocks of a batch; empty if they are not to be reported."""
        if not self._tells:
            return ()
        return [
            (partition, stream, *block)
            for partition, (stream, of) in enumerate(zip(self._ids, made, strict=True))
            for block in of
        ]

    def reading(self, _: Batch, rdd: Any) -> Callable[..., DataFrame]:
        """A function that reads the source's rows of a batch."""
        jvm, session = self._session._jvm, self._session
        texts = session._jsparkSession.createDataset(rdd._jrdd.rdd(), jvm.org.apache.spark.sql.Encoders.STRING())
        fields = DataFrame(texts.toDF(), session).select(F.split("value", SEPARATOR).alias("fields"))

        def read(source: Source, *_: Any) -> DataFrame:
            types = {**source.schema.types(), **dict.fromkeys((EVENT_TIME, EVENT_ID), "bigint")}
            return fields.select(
                *[
                    F.col("fields")[self._line_columns.index(name)].cast(types[name]).alias(name)
                    for name in self._needed
                ]
            )

        return read

    def _last_times(self, blocks: Sequence[int], rdd: Any) -> dict[int, int]:
        """Receiver to the event time in its last line, for receivers with lines. Reads only the last blocks, at the
        ends of the receivers' partitions.
        """
        ends = [sum(blocks[: number + 1]) - 1 for number in range(len(blocks))]
        active = [number for number, count in enumerate(blocks) if count]
        partition_ids = self._session.sparkContext._gateway.new_array(self._session._jvm.int, len(active))
        for index, number in enumerate(active):
            partition_ids[index] = ends[number]
        partitions = rdd._jrdd.collectPartitions(partition_ids)
        column = self._line_columns.index(EVENT_TIME)
        lasts = [partitions[index].get(partitions[index].size() - 1) for index in range(len(active))]
        return {number: int(line.split(SEPARATOR)[column]) for number, line in zip(active, lasts, strict=True)}


def blocks_in(text: str) -> Iterator[tuple[int, int]]:
    """(number, lines) of each block in Spark's text."""
    return ((int(number), int(lines)) for number, lines in _BLOCK.findall(text))
