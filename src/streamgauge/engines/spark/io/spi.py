"""The interface of a transport to Spark's queries: how they read streams and write results.

To add a transport, implement `TransportAdapter` in a module and name it in `job_settings`.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.lowering.row_counter import RowCounter
from streamgauge.engines.spi import Edges

Write = Callable[[DataFrame, int], None]
"""Writes a batch's frame, given its number."""


@dataclass(frozen=True)
class QueryStart:
    """The start of a query, as far as it is the same over every transport.

    `trigger`: arguments of Spark's `trigger`; empty for its default. `batch_written` is called after each batch that
    Spark's driver wrote.
    """

    query: Query
    checkpoint: Path
    trigger: Mapping[str, Any]
    batch_written: Callable[[int], None]

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """A writer of the frame with name, checkpoint and trigger."""
        writer = frame.writeStream.queryName(self.query.name).option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**self.trigger) if self.trigger else writer

    def by_batch(self, frame: DataFrame, write: Write) -> StreamingQuery:
        """Starts the query; `write` writes each batch."""

        def write_batch(rows: DataFrame, batch: int) -> None:
            write(rows, batch)
            self.batch_written(batch)

        return self.writer(frame).outputMode(self.query.mode).foreachBatch(write_batch).start()


class TransportAdapter:
    """A transport, as the queries of one job see it: its edges, and the engine's options."""

    reads_evenly: bool
    """Whether the partitions and streams of a batch end at one event time. Only then the reader can pack blocks."""

    def __init__(self, edges: Edges, options: Mapping[str, str]) -> None:
        self._edges, self._options = edges, options

    @property
    def events_max(self) -> str:
        """The most events of a batch; empty without a limit."""
        return self._options.get("max_per_trigger", "none").removesuffix("none")

    def configuration(self) -> dict[str, str]:
        """Spark settings that the transport needs."""
        return {}

    @abstractmethod
    def effective_settings(self, settings: dict[str, str]) -> dict[str, str]:
        """The settings for the result: with the transport's own, without those that do not apply to it."""

    def carries(self, kind: str) -> bool:
        """Whether results may have a column of this Spark type. Arrow carries all of them."""
        return True

    def prepare(self, session: SparkSession, query: Query) -> None:
        """Called once per query, before it reads."""

    @abstractmethod
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
        """A source's streaming frame: the given columns, or packed blocks of them. `reader` counts those of this stream
        in the query.
        """

    @abstractmethod
    def start(self, frame: DataFrame, start: QueryStart) -> StreamingQuery:
        """Starts a query that writes the frame as results."""


def numbered_readers(
    query: str,
    columns: Mapping[str, tuple[str, ...]],
    read: Callable[[Source, tuple[str, ...], str, int, Packing | None], DataFrame],
) -> Callable[..., DataFrame]:
    """A function that reads a source for a query. Each call is a new reader, numbered per stream.

    `columns`: the columns that the query reads, by stream.
    """
    numbers: dict[str, count[int]] = defaultdict(count)

    def read_source(source: Source, packing: Packing | None = None) -> DataFrame:
        return read(source, columns[source.name], query, next(numbers[source.name]), packing)

    return read_source
