"""Processes without a `truth`: the reference runs their class itself, over the whole input in event order.

That shows what streaming did to the answer (rows lost, doubled, out of order), not what the class does wrong; so
verification says that it was not independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from streamgauge.core.schema import quote
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.dataflow.operators.api import AFTER_ALL, TIME
from streamgauge.engines.duckdb_oracle.lower import TIME as HIDDEN
from streamgauge.engines.duckdb_oracle.lower import lower
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts

if TYPE_CHECKING:
    import duckdb


def is_independent(flow: Flow) -> bool:
    """Whether the flow's answer is computed without running any of its own classes."""
    return not any(isinstance(node, Process) and node.truth is None for node in graph.walk(flow.sink.input))


def computed(
    con: duckdb.DuckDBPyConnection, flow: Flow, relations: Mapping[str, str], keep: str = "process"
) -> dict[str, str]:
    """`relations`, and one more for each process without a truth, by the operator's name: its results, kept in `con`.

    The table of a process is `<keep>_<name>`; one of that name is replaced.
    """
    found = dict(relations)
    for node in graph.walk(flow.sink.input):
        if isinstance(node, Process) and node.truth is None:
            con.register("__results", _run(con, node, found))
            table = quote(f"{keep}_{node.name}")
            con.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM __results")
            con.unregister("__results")
            found[node.name] = table
    return found


def _run(con: duckdb.DuckDBPyConnection, node: Process, relations: Mapping[str, str]) -> pa.Table:
    wanted = column_layouts(node)
    sides = [_read(con, lower(input_, relations), side) for input_, side in zip(node.inputs, wanted.sides, strict=True)]
    results = pa.concat_tables(list(OperatorRuntime(node).advance(sides, AFTER_ALL)))
    names = [HIDDEN if name == TIME else name for name in results.column_names]
    kinds = [_without_zone(type_) for type_ in wanted.results.types]
    return results.rename_columns(names).cast(pa.schema(list(zip(names, kinds, strict=True))))


def _without_zone(type_: pa.DataType) -> pa.DataType:
    """As the reference has timestamps: UTC, without a zone that DuckDB would turn into its own."""
    return pa.timestamp("us") if pa.types.is_timestamp(type_) else type_


def _read(con: duckdb.DuckDBPyConnection, query: str, side: pa.Schema) -> pa.Table:
    columns = ", ".join(f"{HIDDEN if name == TIME else quote(name)} AS {quote(name)}" for name in side.names)
    found: pa.Table = con.sql(f"SELECT {columns} FROM ({query})").to_arrow_table()
    return found.cast(side)
