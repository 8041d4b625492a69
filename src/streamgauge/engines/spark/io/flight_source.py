"""The Python Data Source at both edges of a Spark job: reads the transport, writes to the recorder.

It runs in Spark's Python workers, so it imports as little as possible.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from streamgauge.engines.spark.io.event_batching import pack, validate_rows
from streamgauge.engines.spark.lowering.arrow_blocks import Packing, first_serial
from streamgauge.engines.spark.session.python_workers import freeze_gc
from streamgauge.engines.spark.session.reports import BATCH_ID
from streamgauge.transports.memory import client

POSITIONS = "t"


class Range(InputPartition):
    """The events in [from_us, to_us) of one generator."""

    def __init__(self, location: str, from_us: int, to_us: int) -> None:
        super().__init__(None)
        self.location, self.from_us, self.to_us = location, from_us, to_us


@dataclass
class Committed(WriterCommitMessage):
    """The task attempt that sent its rows."""

    partition: int
    attempt: int


class StreamgaugeSource(DataSource):
    """Spark's data source. Options: query, token.

    Reading: stream, reader, columns, locations, frontier, nullable, bundled, packing, events_max; for a batch read also
    from_us, to_us, batch. Writing: location, sinks, batch.
    """

    def reader(self, schema: Any) -> DataSourceReader:
        return RangeReader(dict(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return Reader(dict(self.options))

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        return StreamWriter(dict(self.options))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return BatchWriter(dict(self.options))


def named(format_name: str) -> type[StreamgaugeSource]:
    """The source under a unique name.

    Queries that use one source name share one map of the workers' environment. Spark serialises it without a lock
    while starting queries write to it, which can fail permanently (OptionalDataException).
    """
    return type("StreamgaugeSource", (StreamgaugeSource,), {"name": classmethod(lambda cls: format_name)})


class _Reading:
    """Common part of both readers: reads a range of one generator's events."""

    def __init__(self, options: dict[str, str]) -> None:
        self._stream, self._token = options["stream"], options["token"]
        self._locations: list[str] = json.loads(options["locations"])
        self._query, self._number = options["query"], int(options["reader"])
        self._columns: list[str] = json.loads(options["columns"])
        self._bundled = "bundled" in options
        self._nullable: list[str] = json.loads(options.get("nullable", "[]"))
        self._packing = Packing.from_json(options["packing"]) if "packing" in options else None

    def _rows(self, partition: InputPartition, batch: int) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        freeze_gc()
        rows = client.read_range(
            partition.location,
            self._token,
            self._stream,
            partition.from_us,
            partition.to_us,
            self._columns,
            batch,
            self._query,
            self._number,
        )
        if self._packing is not None:
            return self._packing.rows(rows, first_serial())
        return (pack if self._bundled else validate_rows)(rows, self._nullable)


class Reader(_Reading, DataSourceStreamReader):
    """Streaming reader. An offset is the event time up to which each partition was read (exclusive)."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._common = options["frontier"] == "common"
        events_max = options.get("events_max")
        self._limit = ReadAllAvailable() if events_max is None else ReadMaxRows(int(events_max))

    def initialOffset(self) -> dict[str, list[int]]:
        return {POSITIONS: [0] * len(self._locations)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return self._limit

    def latestOffset(self, start: dict[str, list[int]], limit: ReadLimit) -> dict[str, list[int]]:
        events_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if self._common:
            who = f"{self._stream}/{self._number}"
            cut_us = client.common_cut(
                self._locations, self._token, max(start[POSITIONS]), self._query, who, events_max
            )
            return {POSITIONS: [cut_us] * len(self._locations)}
        frontiers = client.frontiers(self._locations, self._token, start[POSITIONS], events_max)
        return {POSITIONS: [max(old, new) for old, new in zip(start[POSITIONS], frontiers, strict=True)]}

    def partitions(self, start: dict[str, list[int]], end: dict[str, list[int]]) -> list[InputPartition]:
        spans = zip(self._locations, start[POSITIONS], end[POSITIONS], strict=True)
        return [Range(location, from_us, to_us) for location, from_us, to_us in spans if from_us < to_us]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows(partition, _batch_id())

    def commit(self, end: dict[str, list[int]]) -> None:
        """Not used: Spark calls it one batch late and not for the last batch. The sink's commit counts."""


class RangeReader(_Reading, DataSourceReader):
    """Batch reader of the events in [from_us, to_us) of all generators, for a given batch number."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._from_us, self._to_us, self._batch = (int(options[name]) for name in ("from_us", "to_us", "batch"))

    def partitions(self) -> list[InputPartition]:
        return [Range(location, self._from_us, self._to_us) for location in self._locations]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows(partition, self._batch)


class _Sending:
    """Common part of both writers: each task sends its rows to the recorder, then one commit covers all sinks."""

    def __init__(self, options: dict[str, str]) -> None:
        freeze_gc()
        self._location, self._token, self._query = options["location"], options["token"], options["query"]
        self._sinks: list[str] = json.loads(options["sinks"])
        self._batch = int(options["batch"]) if "batch" in options else None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        """Sends the rows of one task."""
        freeze_gc()
        context = TaskContext.get()
        assert context is not None
        address = {
            "query": self._query,
            "batch": _batch_id() if self._batch is None else self._batch,
            "partition": context.partitionId(),
            "attempt": context.taskAttemptId(),
        }
        with ExitStack() as stack:
            writers = [
                stack.enter_context(client.Results(self._location, self._token, address | {"sink": sink}))
                for sink in self._sinks
            ]
            for batch in iterator:
                parts = [batch] if len(writers) == 1 else _split_by_sink(batch)
                for writer, part in zip(writers, parts, strict=True):
                    if part.num_rows:
                        writer.write(part)
        return Committed(context.partitionId(), context.taskAttemptId())

    def abort(self, *_: Any, **__: Any) -> None:
        """Nothing to undo: the recorder ignores uncommitted rows."""

    def _accept(self, messages: Sequence[Any], batch: int) -> None:
        accepted = [[message.partition, message.attempt] for message in messages if message is not None]
        client.act(
            self._location, self._token, "commit",
            query=self._query, batch=batch, accepted=accepted, sinks=self._sinks,
        )  # fmt: skip


class StreamWriter(_Sending, DataSourceStreamArrowWriter):
    """For append sinks."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._accept(messages, batchId)


class BatchWriter(_Sending, DataSourceArrowWriter):
    """For update sinks, inside `foreachBatch`: Spark's own Arrow stream writer refuses update mode."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        assert self._batch is not None
        self._accept(messages, self._batch)


def _split_by_sink(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The rows of each sink, from a batch with one nullable struct column per sink."""
    rows_of_sinks = (column.filter(column.is_valid()) for column in batch.columns)
    return [pa.RecordBatch.from_arrays(rows.flatten(), names=rows.type.names) for rows in rows_of_sinks]


def _batch_id() -> int:
    context = TaskContext.get()
    value = context.getLocalProperty(BATCH_ID) if context is not None else None
    return int(value) if value is not None else -1
