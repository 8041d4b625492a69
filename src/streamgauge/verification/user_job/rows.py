"""The tables of a user job's comparison, and the columns that identify a result.

`_expected_rows` has the expected results, `_result_rows` the received ones. Internal tables start with an underscore,
so that they cannot clash with stream names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamgauge.core.errors import EngineError
from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, LINEAGE, WINDOW_START, quote, quoted
from streamgauge.core.value_types import DECIMAL, FLOAT, MAP, ValueType
from streamgauge.diff.compare import types_of
from streamgauge.diff.value_sql import normal
from streamgauge.system.user_code import first_line

COPY = "__copy"
"""Numbers rows that have the same identity."""
BATCH, ARRIVAL_NUMBER = "__batch", "__place"
"""Columns of an update: the engine's batch, and its number in order of arrival."""


def expect(connection: Any, answer: Any) -> dict[str, ValueType]:
    """Creates the table `_expected_rows` from a relation. Returns column name to type. Raises EngineError."""
    connection.execute("DROP TABLE IF EXISTS _expected_rows")
    try:
        answer.project(f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})").create("_expected_rows")
    except Exception as error:
        raise EngineError(f"the expected results could not be computed: {first_line(error)}") from None
    return types_of(connection, "_expected_rows")


def empty_relation(connection: Any) -> pa.Table:
    """An empty table with the columns of `_expected_rows`."""
    return connection.sql(f"SELECT *, 0::BIGINT AS {EMISSION_TIME} FROM _expected_rows LIMIT 0").to_arrow_table()


def identity(connection: Any, columns: dict[str, ValueType], keys: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """(the columns that identify a result, whether they are unique among the expected results).

    The first of these that is unique:

    1. the declared keys and the window's start, then also with event_time;
    2. without keys: event_id;
    3. the shortest prefix of the columns;
    4. all columns, as a multiset.

    Floats and decimals are excluded because they are compared with a tolerance; maps because they have no order.
    """
    if keys:
        whole = with_window(keys, columns)
        if _unique(connection, whole):
            return whole, True
        timed = (*whole, *({EVENT_TIME} - {*whole}))
        return timed, _unique(connection, timed)
    if EVENT_ID in columns and _unique(connection, (EVENT_ID,)):
        return (EVENT_ID,), True
    whole = tuple(name for name, type_ in columns.items() if not type_.has(FLOAT, DECIMAL, MAP))
    fields = [name for name in whole if name not in LINEAGE]
    for count in range(1, len(fields) + 1):
        if _unique(connection, fields[:count]):
            return tuple(fields[:count]), True
    return whole, _unique(connection, whole)


def with_window(keys: tuple[str, ...], columns: dict[str, ValueType]) -> tuple[str, ...]:
    """The declared keys, and the window's start if there is one."""
    return (*keys, WINDOW_START) if WINDOW_START in columns and WINDOW_START not in keys else keys


def _unique(connection: Any, names: Sequence[str]) -> bool:
    return copies(connection, "_expected_rows", names) == 0


def copies(connection: Any, relation: str, names: Sequence[str]) -> int:
    """The number of duplicate rows by these columns (not counting the first of each)."""
    distinct = f"SELECT DISTINCT {quoted(names)} FROM {relation}"
    query = f"SELECT (SELECT count(*) FROM {relation}) - (SELECT count(*) FROM ({distinct}))"
    return int(connection.execute(query).fetchone()[0])


def numbered(
    relation: str, ids: Sequence[str], types: dict[str, ValueType], compared: dict[str, ValueType], unique: bool
) -> str:
    """The rows; if identities are not unique, each row also gets its number among the rows of its identity.

    The identity contains the event time, so lost rows and the tail do not shift the numbers of other rows. Floats come
    last in the order, so that rounding differences do not separate rows with equal exact values.
    """
    if unique:
        return f"SELECT * FROM {relation}"
    others = {name: type_ for name, type_ in compared.items() if name not in ids}
    exact = [normal(quote(name), types[name], to, floats=False) for name, to in others.items() if to.name != FLOAT]
    floats = [normal(quote(name), types[name], to) for name, to in others.items() if to.has(FLOAT)]
    order = f" ORDER BY {', '.join(exact + floats)}" if others else ""
    return f"SELECT *, row_number() OVER (PARTITION BY {quoted(ids)}{order}) AS {COPY} FROM {relation}"
