"""Whether an own job's results carry the event and ingest times that its events had: by the plan and the hand-out log.

A reference says what event_time is; one that leaves ingest_time out says nothing of that. The same function in batch
says nothing of either: it moves both times as it did in the stream. So what the truth does not say is taken from the
events themselves:

- by event_id, where results keep it and the job has one input: the two times are that event's;
- else by the log: event_time is that of some event, and ingest_time a stamp that was given, no earlier than those of
  the events of that time and no later than the last of all events up to it. A row's own pair is such a one, and so are
  the maxima of a group and the greater times of a join.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.core.schema import quote
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType
from streamgauge.diff.compare import types_of
from streamgauge.diff.value_sql import normal
from streamgauge.verification.user_job.rows import BATCH, PLACE

AS_HANDED_OUT = "(event_time, ingest_time) as handed out"
"""A column beside the job's: true where both times are some event's. Examples of wrong results show it."""
_TIMES = (INT, TIMESTAMP)


class Lineage:
    """The check of one trial's results. Makes the view `_claimed`: the rows of `_came`, and what is checked of each.

    `columns`: those that the truth gives. `said`: which times were checked, and how; "" where the truth says them all.
    `passed_over`: columns of the results of which nothing is known.
    """

    def __init__(
        self, connection: Any, inputs: dict[str, Path], columns: dict[str, ValueType], independent: bool, by_id: bool
    ) -> None:
        self._connection, self._inputs, self._independent = connection, inputs, independent
        came = types_of(connection, "_came")
        times = (EVENT_TIME, INGEST_TIME)
        self.taken = tuple(
            name
            for name in times
            if name in came and came[name].name in _TIMES and (name not in columns or not independent)
        )
        """The times that the truth does not say."""
        ours = {*columns, *self.taken, EMISSION_TIME, BATCH, PLACE}
        self.columns, self.passed_over = columns, tuple(name for name in came if name not in ours)
        self._by_id = by_id and self._has_ids(columns, came)
        self._checked = bool(self.taken) and not self._by_id
        how = EVENT_ID if self._by_id else "the hand-out log"
        self.said = f"{' and '.join(self.taken)} by {how}" if self.taken else ""
        if self._checked:
            self._keep_log()
        claims = self._claims(came) if self._checked else "SELECT * FROM _came"
        connection.execute(f"CREATE VIEW _claimed AS {claims}")

    def demand(self) -> dict[str, ValueType]:
        """Give `_wanted` what the truth does not say; column name to type."""
        if self._by_id:
            self._take_from_events()
        elif self._checked:
            self._connection.execute(f"ALTER TABLE _wanted ADD COLUMN {quote(AS_HANDED_OUT)} BOOLEAN DEFAULT true")
        return types_of(self._connection, "_wanted")

    def _has_ids(self, columns: dict[str, ValueType], came: dict[str, ValueType]) -> bool:
        """Whether each expected result names the event that it is of."""
        if not self.taken or len(self._inputs) > 1 or not columns.get(EVENT_ID) == came.get(EVENT_ID) == ValueType(INT):
            return False
        other = f" OR w.{EVENT_TIME} <> e.{EVENT_TIME}" if self._independent else ""
        query = f"SELECT count(*) FROM _wanted AS w LEFT JOIN {self._events()} AS e USING ({EVENT_ID})"
        (strange,) = self._connection.execute(f"{query} WHERE e.{EVENT_TIME} IS NULL{other}").fetchone()
        return not strange

    def _take_from_events(self) -> None:
        there = types_of(self._connection, "_wanted")
        old = ", ".join(f"e.{name} AS {name}" for name in self.taken if name in there)
        new = "".join(f", e.{name}" for name in self.taken if name not in there)
        rows = f"SELECT w.*{f' REPLACE ({old})' if old else ''}{new} FROM _wanted AS w"
        self._connection.execute(f"CREATE TABLE _dated AS {rows} JOIN {self._events()} AS e USING ({EVENT_ID})")
        self._connection.execute("DROP TABLE _wanted")
        self._connection.execute("ALTER TABLE _dated RENAME TO _wanted")

    def _events(self) -> str:
        """The events of the job's one input, by file."""
        (path,) = self._inputs.values()
        return f"read_parquet('{path}')"

    def _keep_log(self) -> None:
        """Event time to the stamps that a result of it may have."""
        of_each = " UNION ALL ".join(
            f"SELECT {EVENT_TIME}, {INGEST_TIME} FROM read_parquet('{path}')" for path in self._inputs.values()
        )
        bounds = f"min({INGEST_TIME}) AS earliest, max(max({INGEST_TIME})) OVER (ORDER BY {EVENT_TIME}) AS latest"
        self._connection.execute(
            f"CREATE TABLE _handed_out AS SELECT {EVENT_TIME}, {bounds} FROM ({of_each}) GROUP BY {EVENT_TIME}"
        )
        self._connection.execute(f"CREATE TABLE _stamps AS SELECT DISTINCT {INGEST_TIME} FROM ({of_each})")

    def _claims(self, came: dict[str, ValueType]) -> str:
        """A result without one of the times claims nothing by it; a reference's event_time may be that of no event."""
        event_time = f"coalesce({_micros(EVENT_TIME, came)}, 0)"
        right = [] if EVENT_TIME not in self.taken else [f"({event_time} = 0 OR h.{EVENT_TIME} IS NOT NULL)"]
        if INGEST_TIME in self.taken:
            stamp = _micros(INGEST_TIME, came)
            given = f"{stamp} IN (SELECT {INGEST_TIME} FROM _stamps)"
            right.append(f"(coalesce({stamp}, 0) = 0 OR {given})")
            right.append(f"coalesce({stamp} = 0 OR {stamp} BETWEEN h.earliest AND h.latest, true)")
        joined = f"_came AS r LEFT JOIN _handed_out AS h ON h.{EVENT_TIME} = {event_time}"
        return f"SELECT r.*, {' AND '.join(right)} AS {quote(AS_HANDED_OUT)} FROM {joined}"


def _micros(name: str, came: dict[str, ValueType]) -> str:
    return normal(f"r.{name}", came[name], came[name])
