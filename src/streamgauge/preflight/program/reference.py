"""The reference of a program: DuckDB SQL over tables of its inputs, with the time and the window of each result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import EVENT_TIME, WINDOW_END, quote
from streamgauge.core.value_types import TIMESTAMP, ValueType, from_duckdb
from streamgauge.jobs import TIME
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.preflight.program.tables import OutputTable
from streamgauge.system.user_code import duckdb_lines, first_line
from streamgauge.transports.kafka.topics import UNITS

PLANNED_TIME = "planned_time"
"""The time column of the tables of a reference, if a field has the usual name."""
_DUCKDB = {"double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMP"}


def time_name(stream: StreamSpec) -> str:
    """The column of a stream's table with the event time as a timestamp."""
    taken = {name.lower() for name in stream.schema.names}
    return PLANNED_TIME if TIME in taken else TIME


def columns_of(setting: str, reference: str, streams: Sequence[StreamSpec]) -> dict[str, ValueType]:
    """The fields of a result and their types, from a run over empty tables. Raises InputError if it fails."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for stream in streams:
            connection.execute(f"CREATE VIEW {quote(stream.name)} AS {_empty(stream)}")
        rule = f"must be DuckDB SQL over its inputs ({', '.join(each.name for each in streams)})"
        try:
            relation = connection.sql(reference)
        except duckdb.Error as error:
            quoting = '; a field whose name is a word of SQL needs double quotes, such as "end"'
            way_out = "correct it" + (quoting if isinstance(error, duckdb.ParserException) else "")
            more = "\n  ".join([way_out, *duckdb_lines(error)])
            raise InputError(Problem(setting, rule, first_line(error), more)) from None
        if relation is None:  # the query is empty or a comment
            way_out = f'reference = "SELECT ... FROM {streams[0].name}"'
            raise InputError(Problem(setting, rule, reference, way_out))
        return dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))


def table_types(stream: StreamSpec) -> dict[str, str]:
    """The columns of the table of a stream, and their types in DuckDB."""
    types = {name: _DUCKDB.get(kind, kind) for name, kind in stream.schema.types().items()}
    return types | {EVENT_TIME: "BIGINT", time_name(stream): "TIMESTAMP"}


def _empty(stream: StreamSpec) -> str:
    """A table without rows, as the reference reads the stream."""
    nulls = [f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in table_types(stream).items()]
    return f"SELECT {', '.join(nulls)} LIMIT 0"


def reference_of(output: OutputTable) -> Callable[[Any], Any]:
    """The reference with the event time, and the end of a window as a timestamp, by the fields that the output names.

    The event time is null if the output names neither.
    """

    def answer(connection: Any) -> Any:
        relation = connection.sql(output.reference)
        types = dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))
        return relation.project(_dated(output, types))

    return answer


def _dated(output: OutputTable, types: Mapping[str, ValueType]) -> str:
    """The columns of the reference, of these types, with the event time and the end of the window, as SQL."""
    unit_us = UNITS[output.time_unit]

    def micros(name: str) -> str:
        return f"epoch_us({quote(name)})" if types[name].name == TIMESTAMP else f"{quote(name)}::BIGINT * {unit_us}"

    added = {EVENT_TIME: "NULL::BIGINT"}
    if output.window_end:
        end = micros(output.window_end)
        added = {EVENT_TIME: f"{end} - 1", WINDOW_END: f"make_timestamp({end})"}
    if output.time:
        added[EVENT_TIME] = micros(output.time)
    replaced = [f"{sql} AS {quote(name)}" for name, sql in added.items() if name in types]
    new = [f"{sql} AS {quote(name)}" for name, sql in added.items() if name not in types]
    return ", ".join([f"* REPLACE ({', '.join(replaced)})" if replaced else "*", *new])
