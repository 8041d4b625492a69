"""Connections to DuckDB: to start one takes much longer than the queries of most tests."""

import atexit
import functools

import duckdb


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    atexit.register(_database.cache_clear)  # the library complains of a connection that outlives the interpreter
    return duckdb.connect(config={"threads": 1})


def duckdb_session() -> duckdb.DuckDBPyConnection:
    """A connection with settings and registered tables of its own, to the one database of all tests."""
    return _database().cursor()
