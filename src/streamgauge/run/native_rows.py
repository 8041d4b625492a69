"""The tables of an own job's comparison, and which columns tell one of its results from another.

`_wanted` has what should have come, `_came` what did. Tables of ours begin with what no stream's name does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamgauge.errors import EngineError
from streamgauge.events import EMISSION_TIME, EVENT_ID, EVENT_TIME, LINEAGE, WINDOW_START, quoted
from streamgauge.measure.answers_sql import UNTELLING, kind_of
from streamgauge.system.user_code import first_line

COPY = "__copy"
"""Of a row whose identity others have too: its number among them."""
BATCH, PLACE = "__batch", "__place"
"""Of an update: the engine's batch, and its number in the order of arrival."""


def expect(connection: Any, answer: Any) -> dict[str, str]:
    """Make the table `_wanted` of a relation; column name to kind."""
    connection.execute("DROP TABLE IF EXISTS _wanted")
    try:
        answer.project(f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})").create("_wanted")
    except Exception as error:
        raise EngineError(f"what they should be could not be computed: {first_line(error)}") from None
    return kinds_of(connection, "_wanted")


def kinds_of(connection: Any, relation: str) -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE {relation}").fetchall()
    return {row[0]: kind_of(str(row[1])) for row in rows}


def nothing(connection: Any) -> pa.Table:
    """No results, in the columns of `_wanted`."""
    return connection.sql(f"SELECT *, 0::BIGINT AS {EMISSION_TIME} FROM _wanted LIMIT 0").to_arrow_table()


def identity(connection: Any, columns: dict[str, str], keys: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """(the columns that tell one result from another, whether no two expected ones have the same).

    The keys declared, with the window's start, and with event_time where they alone do not tell; else event_id; else
    the first columns, from the left, that do so, and at last all of them, as a multiset. Floats tell nothing apart:
    they are compared within a tolerance, and so are decimals where the other side has floats.
    """
    if keys:
        whole = with_window(keys, columns)
        if _unique(connection, whole):
            return whole, True
        timed = (*whole, *({EVENT_TIME} - {*whole}))
        return timed, _unique(connection, timed)
    if EVENT_ID in columns and _unique(connection, (EVENT_ID,)):
        return (EVENT_ID,), True
    own = [name for name, kind in columns.items() if kind not in UNTELLING and name not in LINEAGE]
    for count in range(1, len(own) + 1):
        if _unique(connection, own[:count]):
            return tuple(own[:count]), True
    whole = tuple(name for name, kind in columns.items() if kind not in UNTELLING)
    return whole, _unique(connection, whole)


def with_window(keys: tuple[str, ...], columns: dict[str, str]) -> tuple[str, ...]:
    """The keys declared, and the window's start where there is one."""
    return (*keys, WINDOW_START) if WINDOW_START in columns and WINDOW_START not in keys else keys


def _unique(connection: Any, names: Sequence[str]) -> bool:
    return copies(connection, "_wanted", names) == 0


def copies(connection: Any, relation: str, names: Sequence[str]) -> int:
    """How many rows have values that another row has too, all but the first of each."""
    distinct = f"SELECT DISTINCT {quoted(names)} FROM {relation}"
    query = f"SELECT (SELECT count(*) FROM {relation}) - (SELECT count(*) FROM ({distinct}))"
    return int(connection.execute(query).fetchone()[0])


def numbered(relation: str, ids: Sequence[str], columns: dict[str, str], unique: bool) -> str:
    """The rows; where several have one identity, each with its number among them.

    That identity has the event time in it, so neither a row lost nor the tail moves the others' numbers. Floats come
    last in the order: two that are alike but for their last places must not part what the exact columns put together.
    """
    if unique:
        return f"SELECT * FROM {relation}"
    rest = [name for name in columns if name not in ids]
    rest.sort(key=lambda name: columns[name] in UNTELLING)
    order = f" ORDER BY {quoted(rest)}" if rest else ""
    return f"SELECT *, row_number() OVER (PARTITION BY {quoted(ids)}{order}) AS {COPY} FROM {relation}"
