"""The rows of a user job's comparison: their tables, the columns that identify them, and their times.

`_expected_rows` has the expected results, `_result_rows` the received ones. Internal tables start with an underscore,
so that they cannot clash with stream names.

A reference defines event_time, and may omit ingest_time. The same function in batch defines neither, because it would
move both times as in the stream. Times that the truth does not define are checked against the events:

- by event_id, if results have it and the job has one input: both times are those of the event;
- else by the log: event_time is that of some event. ingest_time is a delivery time, not before that of the events of
  this event time, and not after the latest of all events up to it. This holds for a row's own times, for the maxima of
  a group, and for the greater times of a join.

Results that carry no event time get the planned time of the input record with the same key.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import EngineError
from streamgauge.core.schema import (
    EMISSION_TIME,
    EVENT_ID,
    EVENT_TIME,
    INGEST_TIME,
    LINEAGE,
    LINEAGE_TIMES,
    WINDOW_START,
    quote,
    quoted,
)
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.core.value_types import DECIMAL, FLOAT, INT, MAP, TIMESTAMP, ValueType
from streamgauge.diff.compare import types_of
from streamgauge.diff.sql import normal
from streamgauge.jobs import RecordKey
from streamgauge.system.user_code import first_line
from streamgauge.verification.received_results import ARRIVAL, BATCH, ReceivedResults

COPY = "__copy"
"""Numbers rows that have the same identity."""


def expect(connection: Any, answer: Any) -> dict[str, ValueType]:
    """Creates the table `_expected_rows` from a relation. Returns column name to type. Raises EngineError."""
    connection.execute("DROP TABLE IF EXISTS _expected_rows")
    try:
        answer.project(f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})").create("_expected_rows")
    except Exception as error:
        raise EngineError(f"the expected results could not be computed: {first_line(error)}") from None
    return types_of(connection, "_expected_rows")


NO_RESULTS = f"SELECT *, 0::BIGINT AS {EMISSION_TIME} FROM _expected_rows LIMIT 0"
"""SQL for results without rows, with the columns of `_expected_rows`."""


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


DELIVERY_TIMES_MATCH = "(event_time, ingest_time) as delivered"
"""An added column: whether both times are those of an event. Examples of wrong results show it."""


class Lineage:
    """Checks the times of one trial's results. Creates the view `_checked_rows` over `_result_rows`.

    - `columns`: the columns that the truth defines.
    - `summary`: which times were checked and how; empty if the truth defines them all.
    - `ignored`: result columns that cannot be checked.
    """

    def __init__(
        self, connection: Any, inputs: dict[str, Path], columns: dict[str, ValueType], independent: bool, by_id: bool
    ) -> None:
        self._connection, self._inputs, self._independent = connection, inputs, independent
        received_types = types_of(connection, "_result_rows")
        self.unstated = tuple(
            name
            for name in LINEAGE_TIMES
            if name in received_types
            and received_types[name].name in (INT, TIMESTAMP)
            and (name not in columns or not independent)
        )
        """The times that the truth does not define."""
        own_columns = {*columns, *self.unstated, EMISSION_TIME, BATCH, ARRIVAL}
        self.columns, self.ignored = columns, tuple(name for name in received_types if name not in own_columns)
        self._by_id = by_id and self._has_ids(columns, received_types)
        self._checked = bool(self.unstated) and not self._by_id
        how = EVENT_ID if self._by_id else "the delivery log"
        self.summary = f"{' and '.join(self.unstated)} by {how}" if self.unstated else ""
        if self._checked:
            self._store_delivery_log()
        claims = self._checked_rows_query(received_types) if self._checked else "SELECT * FROM _result_rows"
        connection.execute(f"CREATE VIEW _checked_rows AS {claims}")

    def demand(self) -> dict[str, ValueType]:
        """Adds the times that the truth does not define to `_expected_rows`. Returns column name to type."""
        if self._by_id:
            self._take_from_events()
        elif self._checked:
            self._connection.execute(
                f"ALTER TABLE _expected_rows ADD COLUMN {quote(DELIVERY_TIMES_MATCH)} BOOLEAN DEFAULT true"
            )
        return types_of(self._connection, "_expected_rows")

    def _has_ids(self, columns: dict[str, ValueType], received_types: dict[str, ValueType]) -> bool:
        """Whether each expected result has the id of its event."""
        if (
            not self.unstated
            or len(self._inputs) > 1
            or not columns.get(EVENT_ID) == received_types.get(EVENT_ID) == ValueType(INT)
        ):
            return False
        other = f" OR w.{EVENT_TIME} <> e.{EVENT_TIME}" if self._independent else ""
        query = f"SELECT count(*) FROM _expected_rows AS w LEFT JOIN {self._events()} AS e USING ({EVENT_ID})"
        (strange,) = self._connection.execute(f"{query} WHERE e.{EVENT_TIME} IS NULL{other}").fetchone()
        return not strange

    def _take_from_events(self) -> None:
        types = types_of(self._connection, "_expected_rows")
        old = ", ".join(f"e.{name} AS {name}" for name in self.unstated if name in types)
        new = "".join(f", e.{name}" for name in self.unstated if name not in types)
        rows = f"SELECT w.*{f' REPLACE ({old})' if old else ''}{new} FROM _expected_rows AS w"
        self._connection.execute(f"CREATE TABLE _dated AS {rows} JOIN {self._events()} AS e USING ({EVENT_ID})")
        self._connection.execute("DROP TABLE _expected_rows")
        self._connection.execute("ALTER TABLE _dated RENAME TO _expected_rows")

    def _events(self) -> str:
        """The events of the job's only input, as SQL."""
        (path,) = self._inputs.values()
        return f"read_parquet('{path}')"

    def _store_delivery_log(self) -> None:
        """Stores, for each event time, the earliest and latest ingest time that a result may have."""
        of_each = " UNION ALL ".join(
            f"SELECT {EVENT_TIME}, {INGEST_TIME} FROM read_parquet('{path}')" for path in self._inputs.values()
        )
        bounds = f"min({INGEST_TIME}) AS earliest, max(max({INGEST_TIME})) OVER (ORDER BY {EVENT_TIME}) AS latest"
        self._connection.execute(
            f"CREATE TABLE _deliveries AS SELECT {EVENT_TIME}, {bounds} FROM ({of_each}) GROUP BY {EVENT_TIME}"
        )
        self._connection.execute(f"CREATE TABLE _delivery_times AS SELECT DISTINCT {INGEST_TIME} FROM ({of_each})")

    def _checked_rows_query(self, received_types: dict[str, ValueType]) -> str:
        """A missing time is accepted. A reference's event_time need not be that of an event."""
        event_time = f"coalesce({_micros(EVENT_TIME, received_types)}, 0)"
        right = [] if EVENT_TIME not in self.unstated else [f"({event_time} = 0 OR h.{EVENT_TIME} IS NOT NULL)"]
        if INGEST_TIME in self.unstated:
            ingest_time = _micros(INGEST_TIME, received_types)
            is_delivery_time = f"{ingest_time} IN (SELECT {INGEST_TIME} FROM _delivery_times)"
            right += [
                f"(coalesce({ingest_time}, 0) = 0 OR {is_delivery_time})",
                f"coalesce({ingest_time} = 0 OR {ingest_time} BETWEEN h.earliest AND h.latest, true)",
            ]
        joined = f"_result_rows AS r LEFT JOIN _deliveries AS h ON h.{EVENT_TIME} = {event_time}"
        return f"SELECT r.*, {' AND '.join(right)} AS {quote(DELIVERY_TIMES_MATCH)} FROM {joined}"


def _micros(name: str, received_types: dict[str, ValueType]) -> str:
    return normal(f"r.{name}", received_types[name], received_types[name])


UNDATED_SHARE_MAX = 0.01
"""With more expected results without a time, those with one may not stand for all."""
_NUMBER, _TIME = "__number", "__time"


class DatedResults(ReceivedResults):
    """Received results with the event times `times` (rows,), in the order of `batches`; null where unknown."""

    def __init__(self, received: ReceivedResults, times: pa.Array) -> None:
        self._received, self._given = received, times

    @property
    def empty(self) -> bool:
        return self._received.empty

    @cached_property
    def schema(self) -> pa.Schema:
        return self._received.schema

    def batches(self, from_us: int = FAR_PAST_US, to_us: int = FAR_FUTURE_US) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in self._received.batches():
            times = self._given.slice(first, batch.num_rows)
            first += batch.num_rows
            columns = {**dict(zip(batch.schema.names, batch.columns, strict=True)), EVENT_TIME: times}
            past = pc.fill_null(times, FAR_PAST_US)
            inside = pc.and_(pc.greater_equal(past, from_us), pc.less(past, to_us))
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema).filter(inside)


def date_by_key(
    connection: Any, key: RecordKey, path: Path, received: ReceivedResults
) -> tuple[ReceivedResults, str, str]:
    """Gives `_expected_rows` and the results the planned times of their records, which are those of the file `path`.

    Returns (the results, how they got their times, a note on results without one). Keys that several records with
    different times share give none. If too many do, no result gets a time.
    """
    names = quoted(key.columns)
    connection.execute(
        f"CREATE TABLE _planned AS SELECT {names}, min({EVENT_TIME}) AS {_TIME} FROM read_parquet('{path}')"
        f" GROUP BY {names} HAVING min({EVENT_TIME}) = max({EVENT_TIME})"
    )
    same = " AND ".join(f"r.{quote(name)} = p.{quote(name)}" for name in key.columns)
    ((undated, expected),) = connection.execute(
        f"SELECT count(*) FILTER (p.{_TIME} IS NULL), count(*)"
        f" FROM _expected_rows AS r LEFT JOIN _planned AS p ON {same}"
    ).fetchall()
    shown = f"latency_key {', '.join(key.columns)}"
    if undated > UNDATED_SHARE_MAX * expected:
        reason = f"{shown} does not tell one record of {key.stream} for {undated:,} of {expected:,} expected results"
        return received, "", f"latency: not given, as {reason}; name fields that do"
    connection.execute(f"UPDATE _expected_rows AS r SET {EVENT_TIME} = p.{_TIME} FROM _planned AS p WHERE {same}")
    without = f"{undated:,} of {expected:,} expected results are in no figure"
    note = f"latency: {without}, as several records or none have their key" if undated else ""
    how = f"event_time by {shown}"
    if received.empty:
        return received, how, note
    keys = received.table().select(list(key.columns))
    connection.register("_keys", keys.append_column(_NUMBER, pa.array(np.arange(keys.num_rows))))
    times = connection.sql(
        f"SELECT p.{_TIME} FROM _keys AS r LEFT JOIN _planned AS p ON {same} ORDER BY r.{_NUMBER}"
    ).to_arrow_table()
    return DatedResults(received, times.column(0).combine_chunks()), how, note
