"""The reference of a user job: DuckDB SQL, or a function that takes a DuckDB connection.

Each stream is a table of the same name with the columns of the job's DataFrame: fields, lineage, the time column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.core.errors import JobError, Problem, nearest
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME, quote
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType, from_duckdb
from streamgauge.jobs import Description
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.system.user_code import duckdb_lines, first_line, user_errors

_TYPES = {"double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMP"}


def columns(path: Path, described: Description, streams: tuple[StreamSpec, ...]) -> tuple[tuple[str, ValueType], ...]:
    """The columns of a reference and their types, from a run over empty tables.

    Raises JobError if it fails, lacks event_time, or lacks a key column.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        tables = {each.name: _empty(each) for each in streams}
        relation = answer(connection, path, described, tables)
        types = dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))
    event_time = types.get(EVENT_TIME)
    if event_time != ValueType(INT):
        rule = "must also give event_time, in microseconds as BIGINT"
        time = described.inputs[0].time
        way_out = _FROM_TIME.format(time=time) if event_time == ValueType(TIMESTAMP) else _LINE_TO_ADD
        got = {name: str(type_) for name, type_ in types.items()}
        raise JobError(Problem(f"{path.name}: reference", rule, got, way_out))
    if missing := [key for key in described.keys if key not in types]:
        rule = f"must give the columns that @job names in keys: {', '.join(missing)}"
        way_out = f"add {missing[0]} to the reference, or remove it from keys"
        raise JobError(Problem(f"{path.name}: reference", rule, list(types), way_out))
    return tuple(types.items())


_LINE_TO_ADD = "add max(event_time) AS event_time if the query groups, else event_time"
_FROM_TIME = f"{_LINE_TO_ADD}; epoch_us({{time}}) converts a timestamp"


def answer(connection: Any, path: Path, described: Description, tables: Mapping[str, str]) -> Any:
    """The reference's relation over `tables`: a query with fields and lineage, by stream."""
    for given in described.inputs:
        time = f"make_timestamp({EVENT_TIME}) AS {quote(given.time)}"
        table = f"SELECT *, {time} FROM ({tables[given.name]})"
        connection.execute(f"CREATE OR REPLACE VIEW {quote(given.name)} AS {table}")
    if callable(described.reference):
        with user_errors(path, "the reference must run without an error"):
            return _relation(connection, path, described.reference(connection))
    assert described.reference is not None
    return _query(connection, path, described.reference, list(tables))


def _query(connection: Any, path: Path, query: str, streams: list[str]) -> Any:
    """The relation of a query. Raises JobError with DuckDB's advice and the place in the query."""
    setting = f"{path.name}: reference"
    try:
        relation = connection.sql(query)
    except Exception as error:
        rule = f"must be DuckDB SQL over its streams ({', '.join(streams)})"
        raise JobError(Problem(setting, rule, first_line(error), _advice(error, streams))) from None
    if relation is None:  # the query is empty or a comment
        way_out = (
            f'reference="SELECT ... FROM {streams[0]}"; without one, the function itself runs in batch as the reference'
        )
        raise JobError(Problem(setting, "must be DuckDB SQL that gives rows", query, way_out))
    return relation


def _advice(error: Exception, streams: list[str]) -> str:
    """DuckDB's candidates and the lines that show the place; for an unknown table, the nearest stream."""
    hints: list[str] = []
    place: list[str] = []
    for line in duckdb_lines(error):
        if place or line.startswith("LINE "):
            place.append(line)
        else:
            hints.append(line.strip())
    if unknown := _NO_TABLE.search(str(error)):
        hints = [nearest(unknown[1], streams)]
    return "\n  ".join([*(hints or ["correct it:" if place else "correct it"]), *place])


_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")


def _relation(connection: Any, path: Path, value: Any) -> Any:
    """The relation of a function's return value: a DuckDB relation, an Arrow table or a pandas DataFrame."""
    import duckdb

    if isinstance(value, duckdb.DuckDBPyRelation):
        return value
    try:
        return connection.from_arrow(value)
    except duckdb.InvalidInputException:
        rule = "its function must return a DuckDB relation, an Arrow table or a pandas DataFrame"
        got = None if value is None else type(value).__name__
        way_out = 'end it with return con.sql("SELECT ...")'
        raise JobError(Problem(f"{path.name}: reference", rule, got, way_out)) from None


def _empty(stream: StreamSpec) -> str:
    types = {name: _TYPES.get(kind, kind) for name, kind in stream.schema.types().items()}
    types |= dict.fromkeys((EVENT_TIME, INGEST_TIME, EVENT_ID), "bigint")
    return "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items()) + " LIMIT 0"
