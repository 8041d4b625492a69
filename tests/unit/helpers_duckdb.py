"""Connections to DuckDB: to start one takes much longer than the queries of most tests."""

import atexit
import functools
from typing import Any

import duckdb
import pyarrow as pa

from streamgauge.diff.compare import Counts, compare


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    atexit.register(_database.cache_clear)  # the library complains of a connection that outlives the interpreter
    return duckdb.connect(config={"threads": 1})


def duckdb_session() -> duckdb.DuckDBPyConnection:
    """A connection with settings and registered tables of its own, to the one database of all tests."""
    return _database().cursor()


def compare_tables(con: duckdb.DuckDBPyConnection, wanted: pa.Table, came: pa.Table, *how: Any, **rules: Any) -> Counts:
    """`compare` of two tables, which the connection then has as `wanted` and `came`."""
    con.register("wanted", wanted)
    con.register("came", came)
    return compare(con, "wanted", "came", *how, **rules)
