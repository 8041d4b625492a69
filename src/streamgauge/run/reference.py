"""The reference that a user gives beside an own job: DuckDB SQL, or a function that takes a DuckDB connection.

Tables are named as the streams and have the columns that the job's frames have: fields, lineage, the time column.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.errors import JobError, Problem
from streamgauge.events import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.jobs import Description
from streamgauge.load.fields import StreamSpec
from streamgauge.measure.answers_sql import kind_of, quote
from streamgauge.system.user_code import first_line, user_errors

_TYPES = {"double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMP"}


def columns(path: Path, described: Description, streams: tuple[StreamSpec, ...]) -> tuple[str, ...]:
    """The columns that a reference gives, found over empty tables; JobError where it fails or lacks event_time."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        tables = {each.name: _empty(each) for each in streams}
        relation = answer(connection, path, described, tables)
        found = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    if kind_of(found.get(EVENT_TIME, "")) != "int":
        rule = "must give event_time too, as the BIGINT microseconds that it is"
        way_out = "max(event_time) AS event_time where it groups, event_time where it does not"
        raise JobError(Problem(f"{path.name}: reference", rule, found, way_out))
    return tuple(found)


def answer(connection: Any, path: Path, described: Description, tables: Mapping[str, str]) -> Any:
    """The reference's relation over `tables` (stream name to a query with fields and lineage)."""
    for given in described.inputs:
        time = f"make_timestamp({EVENT_TIME}) AS {quote(given.time)}"
        table = f"SELECT *, {time} FROM ({tables[given.name]})"
        connection.execute(f"CREATE OR REPLACE VIEW {quote(given.name)} AS {table}")
    if callable(described.reference):
        with user_errors(path, "the reference must run without an error"):
            return _relation(connection, described.reference(connection))
    try:
        return connection.sql(described.reference)
    except Exception as error:
        raise JobError(Problem(f"{path.name}: reference", "must be DuckDB SQL", first_line(error), "mend it")) from None


def _relation(connection: Any, found: Any) -> Any:
    """What a function returned, as a relation: one of DuckDB's, an Arrow table or a pandas frame."""
    import duckdb

    return found if isinstance(found, duckdb.DuckDBPyRelation) else connection.from_arrow(found)


def _empty(stream: StreamSpec) -> str:
    types = {name: _TYPES.get(kind, kind) for name, kind in stream.schema.types().items()}
    types |= dict.fromkeys((EVENT_TIME, INGEST_TIME, EVENT_ID), "bigint")
    return "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items()) + " LIMIT 0"
