"""Updates of an own job: successive values of each key, compared as they stood at batches' ends.

Its truth answers for whole inputs alone, so each end that is compared costs one answer: all of them where that is
cheap, else some. The last value of a key is the one that arrived last, whatever time it claims. Whether a value may
stand where it does is looked at of every one: a batch owes one value of a key, and no value is of older events than
those before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_TIME
from streamgauge.core.schema import quoted
from streamgauge.diff import compare as answers
from streamgauge.diff.sql import normal_rows
from streamgauge.metrics.latency.event_latency import ENGINE_BATCH
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.verification.sink_comparison import Comparison, DiffSpec
from streamgauge.verification.spool import Received
from streamgauge.verification.user_job.lineage import Lineage
from streamgauge.verification.user_job.rows import BATCH, PLACE, copies, empty_relation, expect, with_window

MOMENTS = 3
"""So many batches' ends, besides the last, are compared however long that takes."""
ENOUGH_S = 20.0
"""As many more are as fit into so many seconds, by what the last one took."""

AnswerBefore = Callable[[int | None], Any]
"""What the job should have given for the input before an event time (None: all of it), as a relation of DuckDB."""

SHOWN = answers.EXAMPLES_MAX // 2
"""Examples of misplaced updates, which leave room for some of wrong ones."""
MISPLACED = {
    "beside": "beside another of their key in one batch",
    "timeless": "without an event_time, which the truth never lacks",
    "older": "of an event_time before what their key had had in an earlier batch",
}
"""Why an update is extra, in words."""


@dataclass(frozen=True)
class Updates:
    """One trial's updates: what is compared, and by what."""

    record: TrialRecord
    compared: Comparison
    keys: tuple[str, ...]
    answer_before: AnswerBefore
    inputs: dict[str, Path]
    independent: bool

    def compare(self) -> tuple[str, tuple[str, ...], Lineage | None]:
        """(how they were compared, what tells them apart, which times by what: None where nothing was committed)."""
        ends = moments(self.record, 0)
        if not ends:
            return self._said(0, ""), self.keys, None
        (last,) = ends
        began = time.monotonic()
        columns = expect(self._connection, self.answer_before(last[1]))
        _keep(self._connection, Received(self.record))
        lineage = Lineage(self._connection, self.inputs, columns, self.independent, by_id=False)
        ids = with_window(self.keys, columns)
        timeless = self._compare_last(lineage, ids, last[0])
        room = int(ENOUGH_S / max(time.monotonic() - began, 0.001))
        others = moments(self.record, max(MOMENTS, room))[:-1]
        for batch, before_us in others:
            expect(self._connection, self.answer_before(before_us))
            timeless |= self._compare_last(lineage, ids, batch)
        misplaced = self._count_misplaced(ids, tuple(columns), timeless)
        return self._said(1 + len(others), misplaced), ids, lineage

    @property
    def _connection(self) -> Any:
        return self.compared.connection

    def _said(self, count: int, misplaced: str) -> str:
        ends = f"{count} of {len(self.record.trial_log.batch_ends())} batches' ends"
        return f"last values of {', '.join(self.keys)} at {ends}{misplaced}"

    def _compare_last(self, lineage: Lineage, ids: tuple[str, ...], batch: int) -> bool:
        """Each key's last value after a batch; whether one that should have come has no event time."""
        columns = lineage.demand()
        last = f"PARTITION BY {quoted(ids)} ORDER BY {BATCH} DESC, {PLACE} DESC"
        self._connection.execute(
            f"CREATE OR REPLACE VIEW _received AS SELECT * EXCLUDE ({BATCH}, {PLACE}) FROM _claimed"
            f" WHERE {BATCH} <= {batch} QUALIFY row_number() OVER ({last}) = 1"
        )
        self.compared.add("_wanted", "_received", DiffSpec(ids, tuple(columns), "true", due=None))
        found = self._connection.execute(f"SELECT count(*) FROM _wanted WHERE {EVENT_TIME} = 0").fetchone()
        return bool(found[0])

    def _count_misplaced(self, ids: tuple[str, ...], columns: tuple[str, ...], timeless: bool) -> str:
        """Count updates that came more than once, and those that may not stand where they do; the latter in words."""
        self._connection.execute(f"CREATE VIEW _misplaced AS {_misplaced(ids, columns, timeless)}")
        rows = self._connection.execute("SELECT __why, count(*) FROM _misplaced GROUP BY __why").fetchall()
        why = dict(rows)
        found = answers.Counts(
            duplicate=copies(self._connection, "_came", columns),
            extra=sum(why.values()),
            examples=tuple(self._examples(ids)) if why else (),
        )
        self.compared.counts = found + self.compared.counts
        return "".join(f"; {why[each]:,} came {words}" for each, words in MISPLACED.items() if each in why)

    def _examples(self, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        types = answers.types_of(self._connection, "_misplaced")
        rows = normal_rows("_misplaced", types, types)
        some = f"SELECT * EXCLUDE ({BATCH}, {PLACE}, __why, {EMISSION_TIME}) FROM {rows} LIMIT {SHOWN}"
        found = self._connection.execute(some)
        names = [column[0] for column in found.description]
        for row in found.fetchall():
            shown = answers.shown(dict(zip(names, row, strict=True)), types)
            came = {name: value for name, value in shown.items() if name not in ids}
            yield {"fault": "extra"} | {name: shown[name] for name in ids} | {"expected": [], "received": [came]}


def _misplaced(ids: tuple[str, ...], columns: tuple[str, ...], timeless: bool) -> str:
    """The updates, each once, that may not stand where they do, and why; of several of a batch the last one may."""
    each = f"SELECT * FROM _came QUALIFY row_number() OVER (PARTITION BY {quoted(columns)} ORDER BY {PLACE}) = 1"
    earlier = f"PARTITION BY {quoted(ids)} ORDER BY {BATCH} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    time_ = (
        f"CASE WHEN {EVENT_TIME} = 0 AND NOT {timeless} THEN 'timeless'"
        f" WHEN {EVENT_TIME} < max({EVENT_TIME}) OVER ({earlier}) THEN 'older' END"
    )
    last = f"row_number() OVER (PARTITION BY {quoted(ids)}, {BATCH}, __time IS NULL ORDER BY {PLACE} DESC) = 1"
    why = f"coalesce(__time, CASE WHEN NOT {last} THEN 'beside' END)"
    timed = f"SELECT *, {time_} AS __time FROM ({each})"
    return f"SELECT * EXCLUDE (__time), {why} AS __why FROM ({timed}) QUALIFY __why IS NOT NULL"


def _keep(connection: Any, received: Received) -> None:
    """Make the table `_came`, with each row's batch and place; no event time is 0."""
    if received.empty:
        connection.register("_read", empty_relation(connection))
        stamped = f"SELECT *, 0::BIGINT AS {BATCH}, 0::BIGINT AS {PLACE} FROM _read"
    else:
        schema = received.schema.remove_metadata()
        schema = schema.append(pa.field(BATCH, pa.int64())).append(pa.field(PLACE, pa.int64()))
        connection.register("_read", pa.RecordBatchReader.from_batches(schema, _placed(received)))
        stamped = "SELECT * FROM _read"
    timed = f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})"
    connection.execute(f"CREATE TABLE _came AS SELECT {timed} FROM ({stamped})")
    connection.unregister("_read")


def _placed(received: Received) -> Iterator[pa.RecordBatch]:
    place = 0
    for batch in received.batches():
        number = int(batch.schema.metadata[ENGINE_BATCH].rpartition(b"/")[2])
        plain, rows = batch.replace_schema_metadata(None), batch.num_rows
        plain = plain.append_column(BATCH, pa.array(np.full(rows, number, np.int64)))
        yield plain.append_column(PLACE, pa.array(np.arange(place, place + rows)))
        place += rows


def moments(record: TrialRecord, most: int) -> list[tuple[int, int | None]]:
    """(batch, event time before which it and all earlier ones read): the last, after at most so many others.

    All others where there are no more, else some of the measured span.
    """
    ends = {batch: end for (_, batch), end in record.trial_log.batch_ends().items()}  # of one query
    committed = sorted(
        {commit.batch for commit in record.trial_log.commits if commit.batch in ends}, key=ends.__getitem__
    )
    if not committed:
        return []
    earlier = committed[:-1]
    if most < len(earlier):
        earlier = [one for one in earlier if record.spans.measured_from_us <= ends[one] < record.spans.measured_to_us]
    last = max(commit.batch for commit in record.trial_log.commits)
    until_us = None if record.owes_all else ends[committed[-1]]
    return [*((one, ends[one]) for one in _spread(earlier, most)), (last, until_us)]


def _spread(batches: list[int], most: int) -> list[int]:
    """At most so many of them, with gaps as equal as can be from the first one to the last."""
    if len(batches) <= most:
        return batches
    last = len(batches) - 1
    return [batches[last * number // (most - 1)] for number in range(most)] if most > 1 else batches[:most]
