"""Checks the event and ingest times in a user job's results against the plan and the delivery log.

A reference defines event_time, and may omit ingest_time. The same function in batch defines neither, because it would
move both times as in the stream. Times that the truth does not define are checked against the events:

- by event_id, if results have it and the job has one input: both times are those of the event;
- else by the log: event_time is that of some event. ingest_time is a delivery time, not before that of the events of
  this event time, and not after the latest of all events up to it. This holds for a row's own times, for the maxima of
  a group, and for the greater times of a join.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, INGEST_TIME, quote
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType
from streamgauge.diff.compare import types_of
from streamgauge.diff.value_sql import normal
from streamgauge.verification.user_job.rows import ARRIVAL_NUMBER, BATCH

DELIVERY_TIMES_MATCH = "(event_time, ingest_time) as delivered"
"""An added column: whether both times are those of an event. Examples of wrong results show it."""
_TIMES = (INT, TIMESTAMP)


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
        times = (EVENT_TIME, INGEST_TIME)
        self.unstated = tuple(
            name
            for name in times
            if name in received_types
            and received_types[name].name in _TIMES
            and (name not in columns or not independent)
        )
        """The times that the truth does not define."""
        own_columns = {*columns, *self.unstated, EMISSION_TIME, BATCH, ARRIVAL_NUMBER}
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
            right.append(f"(coalesce({ingest_time}, 0) = 0 OR {is_delivery_time})")
            right.append(f"coalesce({ingest_time} = 0 OR {ingest_time} BETWEEN h.earliest AND h.latest, true)")
        joined = f"_result_rows AS r LEFT JOIN _deliveries AS h ON h.{EVENT_TIME} = {event_time}"
        return f"SELECT r.*, {' AND '.join(right)} AS {quote(DELIVERY_TIMES_MATCH)} FROM {joined}"


def _micros(name: str, received_types: dict[str, ValueType]) -> str:
    return normal(f"r.{name}", received_types[name], received_types[name])
