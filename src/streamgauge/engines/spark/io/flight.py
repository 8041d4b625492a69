"""Flight's adapter: each query has a data source of its own name, which reads queues and sends to the recorder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import _parse_datatype_string

from streamgauge.core.schema import LINEAGE
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.io.event_batching import packed_schema, row_schema, unpack
from streamgauge.engines.spark.io.flight_source import named
from streamgauge.engines.spark.io.spi import QueryStart, TransportAdapter
from streamgauge.engines.spark.lowering.arrow_blocks import PACKED, Packing
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.lowering.row_counter import RowCounter


class FlightAdapter(TransportAdapter):
    """Reads streams from the generators' queues; results go to the recorder."""

    reads_evenly = True

    def effective_settings(self, settings: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in settings.items() if name not in ("kafka_clients", "json_parser")}

    def prepare(self, session: SparkSession, query: Query) -> None:
        """Registers the query's data source."""
        session.dataSource.register(named(format_of(query.name)))

    def read(
        self,
        session: SparkSession,
        source: Source,
        columns: Sequence[str],
        query: str,
        reader: int,
        packing: Packing | None = None,
        counter: RowCounter | None = None,
        event_range: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """A source's streaming frame; with an `event_range` (from_us, to_us, batch) a batch frame of its rows."""
        edges = self._edges
        types = {**source.schema.types(), **dict.fromkeys(LINEAGE, "bigint")}
        taken = {name: _parse_datatype_string(types[name]) for name in columns}
        all_nullable = self._options.get("nullable") == "all"
        nullable = [*taken] if all_nullable else [field.name for field in source.schema.fields if field.nullable]
        options = {
            "stream": source.name,
            "locations": json.dumps([edge.location for edge in edges.inputs]),
            "token": edges.inputs[0].token,
            "frontier": edges.frontier,
            "columns": json.dumps(columns),
            "nullable": json.dumps(nullable),
            "query": query,
            "reader": str(reader),
            **(event_range or {}),
            **({"events_max": self.events_max} if self.events_max else {}),
        }
        frame_reader: Any = session.readStream if event_range is None else session.read
        configured = frame_reader.format(format_of(query)).options(**options)
        if packing is not None:
            return configured.schema(PACKED).option("packing", json.dumps(asdict(packing))).load()
        if self._options["source"] == "rows":
            return configured.schema(row_schema(taken, nullable)).load()
        bundles = configured.schema(packed_schema(taken, nullable)).option("bundled", "yes").load()
        return unpack(bundles, counter.column(source.name)) if counter is not None else unpack(bundles)

    def start(self, frame: DataFrame, start: QueryStart) -> StreamingQuery:
        query = start.query
        if query.mode == "update":
            return start.by_batch(frame, partial(self.send, query))
        writer = start.writer(frame).outputMode("append")
        return writer.format(format_of(query.name)).options(**self._output(query)).start()

    def send(self, query: Query, frame: DataFrame, batch: int) -> None:
        """Sends a batch to the recorder."""
        options = {**self._output(query), "batch": str(batch)}
        frame.write.format(format_of(query.name)).options(**options).mode("append").save()

    def _output(self, query: Query) -> dict[str, str]:
        edge, sinks = self._edges.output, json.dumps([sink.name for sink in query.sinks])
        return {"location": edge.location, "token": edge.token, "query": query.name, "sinks": sinks}


def format_of(query: str) -> str:
    """The name of a query's data source."""
    return f"streamgauge_{query}"
