"""References: what is right by the user's own file, as DuckDB SQL or (of a job) a function that takes a connection.

- Of a job: each stream is a table of the same name with the columns of its DataFrame: fields, lineage, the time column.
- Of a program: tables of its inputs have fields and times, and results get the time and the window that its file names.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.core.errors import InputError, JobError, Problem, Rule, first, in_file, nearest, require, require_all
from streamgauge.core.schema import EVENT_TIME, LINEAGE, quote
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType, column_types
from streamgauge.jobs import TIME, Description
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.system.user_code import duckdb_lines, first_line, user_errors

_TYPES = {"double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMP"}
PLANNED_TIME = "planned_time"
"""The time column of the tables of a program's reference, if a field has the usual name."""


def _field_types(stream: StreamSpec) -> dict[str, str]:
    """The fields of a stream and their types in DuckDB."""
    return {name: _TYPES.get(kind, kind) for name, kind in stream.schema.types().items()}


def _empty(types: Mapping[str, str]) -> str:
    """A table without rows, of these types in DuckDB."""
    nulls = (f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items())
    return f"SELECT {', '.join(nulls)} LIMIT 0"


def job_columns(
    path: Path, described: Description, streams: tuple[StreamSpec, ...]
) -> tuple[tuple[str, ValueType], ...]:
    """The columns of a reference and their types, from a run over empty tables.

    Raises JobError if it fails, lacks event_time, or lacks a key column.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        lineage = dict.fromkeys(LINEAGE, "BIGINT")
        tables = {each.name: _empty(_field_types(each) | lineage) for each in streams}
        types = column_types(answer(connection, path, described, tables))
    event_time, time = types.get(EVENT_TIME), described.inputs[0].time
    missing = [key for key in described.keys if key not in types]
    require_all(*in_file(path.name, first((
        Rule(event_time == ValueType(INT), "reference", "must also give event_time, in microseconds as BIGINT",
             {name: str(type_) for name, type_ in types.items()},
             _FROM_TIME.format(time=time) if event_time == ValueType(TIMESTAMP) else _LINE_TO_ADD),
        Rule(not missing, "reference", f"must give the columns that @job names in keys: {', '.join(missing)}",
             list(types), f"add {''.join(missing[:1])} to the reference, or remove it from keys"),
    ))))  # fmt: skip
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
    streams = list(tables)
    rule = f"must be DuckDB SQL that gives rows over its streams ({', '.join(streams)})"
    example = f'reference="SELECT ... FROM {streams[0]}"; without one, the function runs in batch as the reference'
    return _query(connection, f"{path.name}: reference", rule, described.reference, streams, example)


def _query(connection: Any, setting: str, rule: str, query: str, streams: Sequence[str], example: str) -> Any:
    """The relation of a query. Raises InputError with DuckDB's advice and the place in the query."""
    try:
        relation = connection.sql(query)
    except Exception as error:
        raise InputError(Problem(setting, rule, first_line(error), _advice(error, streams))) from None
    # A query that is empty or a comment gives no relation.
    require(relation is not None, setting, rule, query, example)
    return relation


def _advice(error: Exception, streams: Sequence[str]) -> str:
    """DuckDB's candidates and the lines that show the place; for an unknown table, the nearest stream."""
    lines = duckdb_lines(error)
    start = next((number for number, line in enumerate(lines) if line.startswith("LINE ")), len(lines))
    hints, place = [line.strip() for line in lines[:start]], lines[start:]
    if unknown := _NO_TABLE.search(str(error)):
        hints = [nearest(unknown[1], streams)]
    if type(error).__name__ == "ParserException":
        hints = ['correct it; a field whose name is a word of SQL needs double quotes, such as "end"']
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
        raise JobError(
            Problem(
                f"{path.name}: reference",
                "its function must return a DuckDB relation, an Arrow table or a pandas DataFrame",
                None if value is None else type(value).__name__,
                'end it with return con.sql("SELECT ...")',
            )
        ) from None


def time_name(stream: StreamSpec) -> str:
    """The column of the table of a program's input with the event time as a timestamp."""
    return PLANNED_TIME if TIME in map(str.lower, stream.schema.names) else TIME


def program_columns(setting: str, reference: str, streams: Sequence[StreamSpec]) -> dict[str, ValueType]:
    """The fields of a result and their types, from a run over empty tables. Raises InputError if it fails."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for stream in streams:
            connection.execute(f"CREATE VIEW {quote(stream.name)} AS {_empty(table_types(stream))}")
        names = [stream.name for stream in streams]
        rule = f"must be DuckDB SQL over its inputs ({', '.join(names)})"
        example = f'reference = "SELECT ... FROM {names[0]}"'
        return column_types(_query(connection, setting, rule, reference, names, example))


def table_types(stream: StreamSpec) -> dict[str, str]:
    """The columns of the table of a program's input, and their types in DuckDB."""
    return _field_types(stream) | {EVENT_TIME: "BIGINT", time_name(stream): "TIMESTAMP"}
