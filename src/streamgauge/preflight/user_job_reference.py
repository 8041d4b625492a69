"""The reference that a user gives beside an own job: DuckDB SQL, or a function that takes a DuckDB connection.

Tables are named as the streams and have the columns that the job's frames have: fields, lineage, the time column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.core.errors import JobError, Problem, nearest
from streamgauge.core.lineage_columns import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.core.schema import quote
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType, from_duckdb
from streamgauge.jobs import Description
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.system.user_code import duckdb_lines, first_line, user_errors

_TYPES = {"double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMP"}


def columns(path: Path, described: Description, streams: tuple[StreamSpec, ...]) -> tuple[tuple[str, ValueType], ...]:
    """The columns that a reference gives, with their types, found over empty tables.

    JobError where it fails, lacks event_time, or lacks a column that results are told apart by.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        tables = {each.name: _empty(each) for each in streams}
        relation = answer(connection, path, described, tables)
        found = dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))
    event_time = found.get(EVENT_TIME)
    if event_time != ValueType(INT):
        rule = "must give event_time too, as the BIGINT microseconds that it is"
        time = described.inputs[0].time
        way_out = _FROM_TIME.format(time=time) if event_time == ValueType(TIMESTAMP) else _LINE_TO_ADD
        got = {name: str(type_) for name, type_ in found.items()}
        raise JobError(Problem(f"{path.name}: reference", rule, got, way_out))
    if lacking := [key for key in described.keys if key not in found]:
        rule = f"must give the columns that @job names in keys: {', '.join(lacking)}"
        way_out = f"add {lacking[0]} to the reference, or take it out of keys"
        raise JobError(Problem(f"{path.name}: reference", rule, list(found), way_out))
    return tuple(found.items())


_LINE_TO_ADD = "max(event_time) AS event_time where it groups, event_time where it does not"
_FROM_TIME = f"{_LINE_TO_ADD}: it is beside {{time}}; else epoch_us({{time}}) makes it of a timestamp"


def answer(connection: Any, path: Path, described: Description, tables: Mapping[str, str]) -> Any:
    """The reference's relation over `tables` (stream name to a query with fields and lineage)."""
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
    """The relation of a query; JobError that keeps what DuckDB advises, and where in the query."""
    setting = f"{path.name}: reference"
    try:
        found = connection.sql(query)
    except Exception as error:
        rule = f"must be DuckDB SQL over its streams ({', '.join(streams)})"
        raise JobError(Problem(setting, rule, first_line(error), _advice(error, streams))) from None
    if found is None:  # nothing but comments
        way_out = (
            f'reference="SELECT ... FROM {streams[0]}"; without one, the truth is the function\'s own run in batch'
        )
        raise JobError(Problem(setting, "must be DuckDB SQL that gives rows", query, way_out))
    return found


def _advice(error: Exception, streams: list[str]) -> str:
    """DuckDB's candidates, and the lines that show the place; of a table that is not there, the stream meant."""
    hints: list[str] = []
    place: list[str] = []
    for line in duckdb_lines(error):
        if place or line.startswith("LINE "):
            place.append(line)
        else:
            hints.append(line.strip())
    if unknown := _NO_TABLE.search(str(error)):
        hints = [nearest(unknown[1], streams)]
    return "\n  ".join([*(hints or ["mend it:" if place else "mend it"]), *place])


_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")


def _relation(connection: Any, path: Path, found: Any) -> Any:
    """What a function returned, as a relation: one of DuckDB's, an Arrow table or a pandas frame."""
    import duckdb

    if isinstance(found, duckdb.DuckDBPyRelation):
        return found
    try:
        return connection.from_arrow(found)
    except duckdb.InvalidInputException:
        rule = "its function must return a relation of DuckDB, an Arrow table or a pandas frame"
        got = None if found is None else type(found).__name__
        way_out = 'end it with return con.sql("SELECT ...")'
        raise JobError(Problem(f"{path.name}: reference", rule, got, way_out)) from None


def _empty(stream: StreamSpec) -> str:
    types = {name: _TYPES.get(kind, kind) for name, kind in stream.schema.types().items()}
    types |= dict.fromkeys((EVENT_TIME, INGEST_TIME, EVENT_ID), "bigint")
    return "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items()) + " LIMIT 0"
