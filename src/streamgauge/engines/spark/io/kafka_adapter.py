"""Kafka's adapter in micro-batch mode: Spark's own source, and batches between marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamgauge.core.plugin_options import CLIENT_FILE, TUNED
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.io.kafka import CLIENTS, ClientSettings, Writer, effective_settings, read
from streamgauge.engines.spark.io.spi import QueryStart, Reader
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.dataframe import Probe
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.options import REDACTION
from streamgauge.engines.spi import Edges
from streamgauge.transports.kafka.result_messages import is_carried


class KafkaAdapter:
    """Reads streams from topics; results go to the run's results topic."""

    reads_evenly = False

    def __init__(self, edges: Edges, options: Mapping[str, str], clients: ClientSettings | None = None) -> None:
        self._edges = edges
        self._clients = clients or CLIENTS[options.get("kafka_clients", TUNED)]

    def configuration(self) -> dict[str, str]:
        """Hides credentials where clients log in."""
        return REDACTION if CLIENT_FILE in self._edges.transport_options else {}

    def effective_settings(self, settings: dict[str, str]) -> dict[str, str]:
        settings = {name: value for name, value in settings.items() if name != "nullable"}
        return settings | effective_settings(self._clients)

    def carries(self, kind: str) -> bool:
        return is_carried(kind)

    def prepare(self, session: SparkSession, query: Query) -> None:
        """Not needed: the source comes with Spark's connector."""

    def read(
        self,
        session: SparkSession,
        source: Source,
        columns: Sequence[str],
        reader: Reader,
        packing: Packing | None = None,
        probe: Probe | None = None,
    ) -> DataFrame:
        """Always rows: lowerings that read packed blocks are refused before the start."""
        return read(session, source, columns, self._edges, self._clients.reading)

    def start(self, frame: DataFrame, start: QueryStart) -> StreamingQuery:
        sinks = [sink.name for sink in start.query.sinks]
        writer = Writer(self._edges, start.query.name, sinks, start.checkpoint, self._clients.writing)
        return start.by_batch(frame, writer.write)
