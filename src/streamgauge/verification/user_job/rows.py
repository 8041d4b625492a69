"""The tables of an own job's comparison, and which columns tell one of its results from another.

`_wanted` has what should have come, `_came` what did. Tables of ours begin with what no stream's name does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamgauge.core.errors import EngineError
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_ID, EVENT_TIME, LINEAGE, WINDOW_START
from streamgauge.core.schema import quote, quoted
from streamgauge.core.value_types import DECIMAL, FLOAT, MAP, ValueType
from streamgauge.diff.compare import types_of
from streamgauge.diff.value_sql import normal
from streamgauge.system.user_code import first_line

COPY = "__copy"
"""Of a row whose identity others have too: its number among them."""
BATCH, PLACE = "__batch", "__place"
"""Of an update: the engine's batch, and its number in the order of arrival."""


def expect(connection: Any, answer: Any) -> dict[str, ValueType]:
    """Make the table `_wanted` of a relation; column name to type."""
    connection.execute("DROP TABLE IF EXISTS _wanted")
    try:
        answer.project(f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})").create("_wanted")
    except Exception as error:
        raise EngineError(f"what they should be could not be computed: {first_line(error)}") from None
    return types_of(connection, "_wanted")


def empty_relation(connection: Any) -> pa.Table:
    """No results, in the columns of `_wanted`."""
    return connection.sql(f"SELECT *, 0::BIGINT AS {EMISSION_TIME} FROM _wanted LIMIT 0").to_arrow_table()


def identity(connection: Any, columns: dict[str, ValueType], keys: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """(the columns that tell one result from another, whether no two expected ones have the same).

    The keys declared, with the window's start, and with event_time where they alone do not tell; else event_id; else
    the first columns, from the left, that do so, and at last all of them, as a multiset. Floats tell nothing apart:
    they are compared within a tolerance, and so are decimals where the other side has floats. Nor do maps, whose
    entries have no order.
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
    own = [name for name in whole if name not in LINEAGE]
    for count in range(1, len(own) + 1):
        if _unique(connection, own[:count]):
            return tuple(own[:count]), True
    return whole, _unique(connection, whole)


def with_window(keys: tuple[str, ...], columns: dict[str, ValueType]) -> tuple[str, ...]:
    """The keys declared, and the window's start where there is one."""
    return (*keys, WINDOW_START) if WINDOW_START in columns and WINDOW_START not in keys else keys


def _unique(connection: Any, names: Sequence[str]) -> bool:
    return copies(connection, "_wanted", names) == 0


def copies(connection: Any, relation: str, names: Sequence[str]) -> int:
    """How many rows have values that another row has too, all but the first of each."""
    distinct = f"SELECT DISTINCT {quoted(names)} FROM {relation}"
    query = f"SELECT (SELECT count(*) FROM {relation}) - (SELECT count(*) FROM ({distinct}))"
    return int(connection.execute(query).fetchone()[0])


def numbered(
    relation: str, ids: Sequence[str], types: dict[str, ValueType], compared: dict[str, ValueType], unique: bool
) -> str:
    """The rows; where several have one identity, each with its number among them.

    That identity has the event time in it, so neither a row lost nor the tail moves the others' numbers. Floats come
    last in the order: two that are alike but for their last places must not part what the exact values put together.
    """
    if unique:
        return f"SELECT * FROM {relation}"
    rest = {name: type_ for name, type_ in compared.items() if name not in ids}
    exact = [normal(quote(name), types[name], to, floats=False) for name, to in rest.items() if to.name != FLOAT]
    floats = [normal(quote(name), types[name], to) for name, to in rest.items() if to.has(FLOAT)]
    order = f" ORDER BY {', '.join(exact + floats)}" if rest else ""
    return f"SELECT *, row_number() OVER (PARTITION BY {quoted(ids)}{order}) AS {COPY} FROM {relation}"
