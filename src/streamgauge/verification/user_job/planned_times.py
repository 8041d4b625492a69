"""Event times of results that carry none: the planned time of the input record with the same key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.schema import EVENT_TIME, quote, quoted
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.jobs import RecordKey
from streamgauge.verification.spool import ReceivedResults

UNDATED_SHARE_MAX = 0.01
"""With more expected results without a time, those with one may not stand for all."""
_NUMBER, _TIME = "__number", "__time"


class DatedResults(ReceivedResults):
    """Received results with the event times `times` (rows,), in the order of `batches`; null where unknown."""

    def __init__(self, received: ReceivedResults, times: pa.Array) -> None:
        self._received, self._given = received, times
        self.rows = received.rows

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
