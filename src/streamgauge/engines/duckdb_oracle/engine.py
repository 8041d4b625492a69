"""The oracle as an engine: it answers, and does nothing else [design 5]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamgauge.core.errors import InputError, Problem
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle import lower
from streamgauge.engines.duckdb_oracle.capabilities import CAPABILITIES
from streamgauge.engines.duckdb_oracle.process_operator import computed

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class Oracle:
    """Computes the right answer of a flow over given inputs."""

    capabilities = CAPABILITIES

    def answer(
        self,
        flow: Flow,
        inputs: Mapping[str, pa.RecordBatchReader | pa.Table | str],
        con: duckdb.DuckDBPyConnection,
        points: str | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """The results of a flow of one sink over `inputs`, as a relation of `con`, not computed yet.

        Of a flow of several sinks, each is answered by itself: `flow.each()`.

        `inputs`: stream name to Arrow data, or to the name of a relation of `con`; each has the fields the flow needs
        (`dataflow.lineage.needed_columns`), `event_time` (BIGINT, us), and the lineage columns that a flow with lineage
        reads. A reader can be read once, so a flow that reads its stream twice needs a table or a relation.
        `points`: see `lower.sql`. Take the result with `.create(name)`, `.to_arrow_table()` or as a reader.
        """
        relations = {source.name: _relation(source.name, inputs, con) for source in graph.sources(flow)}
        return con.sql(lower.sql(flow, computed(con, flow, relations), points))


def _relation(
    stream: str, inputs: Mapping[str, pa.RecordBatchReader | pa.Table | str], con: duckdb.DuckDBPyConnection
) -> str:
    if stream not in inputs:
        raise InputError(
            Problem("inputs", f"stream {stream!r} of the flow is not there", sorted(inputs), "give its data")
        )
    given = inputs[stream]
    if isinstance(given, str):
        return given
    con.register(f"input_{stream}", given)
    return f'"input_{stream}"'
