"""The oracle as an engine: it computes expected results and runs no streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle import lowering
from streamgauge.engines.duckdb_oracle.process_operator import computed

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class Oracle:
    """Computes the expected results of a flow over given inputs."""

    def answer(
        self, flow: Flow, inputs: Mapping[str, pa.RecordBatchReader | pa.Table], con: duckdb.DuckDBPyConnection
    ) -> duckdb.DuckDBPyRelation:
        """The results of a flow with one sink over `inputs`, as a lazy relation of `con`.

        For several sinks, use `flow.each()`.

        `inputs`: stream name to Arrow data. Each has the fields that the flow needs
        (`dataflow.lineage.needed_columns`), `event_time` (BIGINT, us), and the lineage columns that the flow reads. A
        reader can be read only once, so a flow that reads a stream twice needs a table.
        """
        for stream, data in inputs.items():
            con.register(f"input_{stream}", data)
        relations = {stream: f'"input_{stream}"' for stream in inputs}
        return con.sql(lowering.sql(flow, computed(con, flow, relations)))
