"""Kafka's adapter in real-time mode: one query from topic to topic, and a thread that reports its positions."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from streamgauge.engines.spark.io.kafka import READING, ClientSettings, Marks, messages, positions_in, to, types_of
from streamgauge.engines.spark.io.kafka_adapter import KafkaAdapter
from streamgauge.engines.spark.io.spi import QueryStart
from streamgauge.engines.spi import Edges
from streamgauge.transports.kafka.result_messages import Mark

WRITING = {"kafka.linger.ms": "2", "kafka.compression.type": "none", "kafka.acks": "all"}
"""Two milliseconds of linger reduce thousands of requests per second to hundreds, without added latency."""
ALL = 0
"""The batch number of all results."""
POLL_S = 0.5


class RealTimeKafkaAdapter(KafkaAdapter):
    """As `KafkaAdapter`, but Spark's sink writes every result at once, without batches."""

    def __init__(self, edges: Edges, options: Mapping[str, str]) -> None:
        super().__init__(edges, options, ClientSettings(READING, WRITING))

    def start(self, frame: DataFrame, start: QueryStart) -> StreamingQuery:
        query = start.query
        marks, types = Marks(self._edges), types_of(frame, [sink.name for sink in query.sinks])
        marks.send(Mark(query.name, ALL, True, types, endless=True))
        writer = start.writer(messages(frame, types, query.name, ALL)).outputMode("update").format("kafka")
        running = writer.options(**WRITING, **to(self._edges)).start()
        progress = PositionReports(marks, query.name, self._edges.inputs[0].token)
        Thread(target=progress.follow, args=(running,), name="progress", daemon=True).start()
        return running


class PositionReports:
    """Reports the end positions of each Spark batch, which cover rows without results too."""

    def __init__(self, marks: Marks, query: str, run: str) -> None:
        self._marks, self._query, self._run = marks, query, run

    def follow(self, running: Any) -> None:
        """Ends with the query. Retries if the broker is unavailable."""
        reported = -1
        try:
            while running.isActive:
                last = running.lastProgress
                if last is not None and last.batchId > reported and self._report(last):
                    reported = last.batchId
                time.sleep(POLL_S)
        except Exception as error:
            print(f"streamgauge: stopped reporting read positions: {error}", file=sys.stderr, flush=True)

    def _report(self, progress: Any) -> bool:
        """Sends a batch's end positions. Returns whether the broker accepted them."""
        ends = "\n".join(source.endOffset for source in progress.sources)
        positions = tuple(positions_in(ends, self._run))
        try:
            self._marks.send(Mark(self._query, ALL, False, {}, positions, endless=True))
        except Exception as error:  # of the client, or of the broker that it does not reach
            print(f"streamgauge: could not report read positions yet: {error}", file=sys.stderr, flush=True)
            return False
        return True
