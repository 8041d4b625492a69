"""Processes without a `truth`: the oracle runs their class itself over the whole input in event order.

This finds errors of streaming (lost, duplicate or misordered rows), but not errors of the class. So verification
reports that it was not independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from streamgauge.core.schema import quote
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.dataflow.operators.api import AFTER_ALL, TIME
from streamgauge.engines.duckdb_oracle.lowering import TIME as HIDDEN
from streamgauge.engines.duckdb_oracle.lowering import lower
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts

if TYPE_CHECKING:
    import duckdb


def is_independent(flow: Flow) -> bool:
    """Whether the oracle computes the flow without running its classes."""
    return not any(isinstance(node, Process) and node.truth is None for node in graph.walk(flow.sink.input))


def computed(
    con: duckdb.DuckDBPyConnection, flow: Flow, relations: Mapping[str, str], prefix: str = "process"
) -> dict[str, str]:
    """`relations` plus the results of each process without a truth, by operator name.

    The results are stored in `con` as table `<prefix>_<name>`, which is replaced if it exists.
    """
    with_results = dict(relations)
    for node in graph.walk(flow.sink.input):
        if isinstance(node, Process) and node.truth is None:
            con.register("__results", _run(con, node, with_results))
            table = quote(f"{prefix}_{node.name}")
            con.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM __results")
            con.unregister("__results")
            with_results[node.name] = table
    return with_results


def _run(con: duckdb.DuckDBPyConnection, node: Process, relations: Mapping[str, str]) -> pa.Table:
    layout = column_layouts(node)
    sides = [_read(con, lower(input_, relations), side) for input_, side in zip(node.inputs, layout.sides, strict=True)]
    results = pa.concat_tables(list(OperatorRuntime(node).advance(sides, AFTER_ALL)))
    names = [HIDDEN if name == TIME else name for name in results.column_names]
    # Timestamps are in UTC without a zone, because DuckDB would convert them to its own zone.
    kinds = [pa.timestamp("us") if pa.types.is_timestamp(type_) else type_ for type_ in layout.results.types]
    return results.rename_columns(names).cast(pa.schema(list(zip(names, kinds, strict=True))))


def _read(con: duckdb.DuckDBPyConnection, query: str, side: pa.Schema) -> pa.Table:
    columns = ", ".join(f"{HIDDEN if name == TIME else quote(name)} AS {quote(name)}" for name in side.names)
    return con.sql(f"SELECT {columns} FROM ({query})").to_arrow_table().cast(side)
