"""Verification of a program's updates: the last value of each key.

A program over Kafka has no batches, so how much input an earlier value covers is not known.
"""

from __future__ import annotations

from typing import Any

from streamgauge.core.errors import JobError, Problem
from streamgauge.core.schema import WINDOW_END, quoted
from streamgauge.verification.sink_comparison import Comparison, DiffSpec
from streamgauge.verification.spool import ReceivedResults
from streamgauge.verification.user_job.rows import ARRIVAL_NUMBER, BATCH, copies, expect, with_window
from streamgauge.verification.user_job.updates import store_received


def compare_last(
    compared: Comparison, received: ReceivedResults, keys: tuple[str, ...], answer: Any, complete: bool
) -> tuple[str, tuple[str, ...]]:
    """(how values were compared, the columns that identify one). `complete`: whether all input was worked off.

    `answer` is the relation of the expected results for all input. Raises JobError if keys have several of them.
    """
    connection = compared.connection
    columns = expect(connection, answer)
    store_received(connection, received)
    ids = with_window(keys, columns)
    if WINDOW_END in columns and copies(connection, "_expected_rows", ids):
        ids = (*ids, *({WINDOW_END} - {*ids}))
    _require_one_row_each(connection, ids)
    last = f"PARTITION BY {quoted(ids)} ORDER BY {ARRIVAL_NUMBER} DESC"
    connection.execute(
        f"CREATE VIEW _received AS SELECT * EXCLUDE ({BATCH}, {ARRIVAL_NUMBER}) FROM _result_rows"
        f" QUALIFY row_number() OVER ({last}) = 1"
    )
    required = "true" if complete else "false"
    compared.add("_expected_rows", "_received", DiffSpec(ids, tuple(columns), required, due=None, complete=complete))
    note = "" if complete else ", not compared because the trial ended early"
    return f"last values of {', '.join(ids)}{note}; earlier values are not compared", ids


def _require_one_row_each(connection: Any, ids: tuple[str, ...]) -> None:
    """Raises JobError if some keys have several expected rows, so that none is the last value."""
    query = f"SELECT count(*) FROM (SELECT 1 FROM _expected_rows GROUP BY {quoted(ids)} HAVING count(*) > 1)"
    ((several,),) = connection.execute(query).fetchall()
    if several:
        rule = f"must identify one row of the reference, and {', '.join(ids)} do not"
        way_out = f"add the field that tells rows apart, or GROUP BY {', '.join(ids)} in the reference"
        raise JobError(Problem("keys", rule, f"{several:,} keys with several rows", way_out))
