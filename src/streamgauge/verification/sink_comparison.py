"""The comparison of one sink's results with what they should be, whoever says that [method 9], and how late they are.

`verification.expected` and `verification.user_job.truth` give the expected rows as a query; from there on this is the
one way. Both sides lie in a DuckDB that works out of core, so nothing of a long run is held in Python.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.lineage_columns import EVENT_TIME, INGEST_TIME, WINDOW_END
from streamgauge.diff import compare as answers
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.latency.event_latency import LatencyRule, Missing, SinkLatencies, sink_latencies
from streamgauge.metrics.latency.inclusion_latency import InclusionTimes
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.results.latency import Latency
from streamgauge.results.run import SinkResult, Verification
from streamgauge.system.machine import memory_bytes
from streamgauge.system.scratch import Scratch
from streamgauge.verification.spool import Received, keep_results

MS = 1000
"""Microseconds: Spark keeps watermarks in milliseconds, cut off."""
MEMORY_SHARE = 0.5
"""Of the machine's memory: the engine under test is still there while its answers are compared."""
ROWS_MAX = 262_144
LOST = (EVENT_TIME, INGEST_TIME, WINDOW_END)
LOST_ROWS = "_lost"
"""Tables of ours begin with what no stream's name does: a reference names streams in the same connection."""


@dataclass(frozen=True)
class SinkDiff:
    """What the answers of one sink were, and how late."""

    name: str
    query: str
    verification: Verification
    latencies: SinkLatencies
    rows: int
    kind: str = ""


@dataclass(frozen=True)
class Verified:
    """What the answers were, and how late: of every sink, and of all together; `notes` are for the result's own."""

    verification: Verification
    sinks: tuple[SinkDiff, ...]
    notes: tuple[str, ...] = ()

    @property
    def slowest(self) -> SinkDiff:
        """The sink whose results come latest, by the mean of their event-time latency, which every sink has."""
        return max(self.sinks, key=lambda sink: _mean(sink.latencies.latencies.event_time_us))

    @property
    def negatives(self) -> int:
        return sum(sink.latencies.negatives for sink in self.sinks)

    @property
    def windows_closed(self) -> int | None:
        """Of the windowed sink that closed fewest; None where nothing is windowed."""
        closed = [sink.latencies.windows_closed for sink in self.sinks]
        return min((number for number in closed if number is not None), default=None)

    @property
    def results(self) -> tuple[SinkResult, ...]:
        return tuple(
            SinkResult(
                name=sink.name, rows=sink.rows, latency=sink.latencies.latencies, query=sink.query, kind=sink.kind,
                verification=sink.verification,
            )
            for sink in self.sinks
        )  # fmt: skip


def _mean(latency: Latency | None) -> float:
    return latency.mean if latency is not None and latency.mean is not None else -1.0


@dataclass(frozen=True)
class DiffSpec:
    """What is asked of the rows. `judged`: which expected ones must be there; `due`: which of them, where they never
    came, enter the latencies (None: none); `complete`: whether all that is due is judged too.
    """

    identity: tuple[str, ...]
    columns: tuple[str, ...]
    judged: str
    due: str | None
    update: bool = False
    complete: bool = True


def diff_spec_of(
    record: TrialRecord, identity: tuple[str, ...], columns: tuple[str, ...], windowed: bool, early: str
) -> DiffSpec:
    """All of the measured span; `early` says what a trial that was not drained owes instead."""
    due = f"event_time < {min(record.spans.measured_to_us, record.offered_until())}"
    if windowed:
        due += f" AND epoch_us(window_end) <= {record.deadline_us}"  # what has not ended yet is not late yet
    judged = f"event_time < {record.spans.measured_to_us}" if record.owes_all else early
    return DiffSpec(identity, columns, judged, due, complete=record.owes_all)


def judged_early(record: TrialRecord, windowed: bool, held_us: int | None = 0, delay_us: int = 0) -> str:
    """A trial that ended early owes what its committed batches must have given: windows close one batch late.

    `held_us`: how long results are held back besides; None where nobody knows. `delay_us`: how far behind the latest
    event the watermark stays.
    """
    if held_us is None:
        return "false"
    (sink,) = record.trial_log.sinks
    reached = record.trial_log.running.furthest(sink)
    if not windowed and not held_us:
        return f"event_time < {reached[-1] if reached else 0}"
    passed_us = _watermark_us(record.trial_log.plan, reached[-2]) - delay_us if len(reached) > 1 else 0
    return f"window_end <= {passed_us}" if windowed else f"event_time < {passed_us - held_us}"


def _watermark_us(plan: Plan, cut_us: int) -> int:
    """How far a watermark is at least after all events before `cut_us`: the last of them, of the stream that is behind
    the others, in whole milliseconds. It stays below the cut, so a window that ends there closes a batch later.
    """
    streams, partitions = range(len(plan.streams)), range(plan.partitions)
    last_us = min(max(plan.last_before(stream, each, cut_us) or 0 for each in partitions) for stream in streams)
    return last_us // MS * MS


def outcome(counts: answers.Counts, whole: bool, noun: str = "results") -> str:
    """The counts as a sentence without its stop. `whole`: all that was offered was committed; else less is expected."""
    faults = {name: getattr(counts, name) for name in ("missing", "extra", "duplicate", "wrong", "late")}
    found = ", ".join(f"{count:,} {name}" for name, count in faults.items() if count)
    matched = f"{counts.matched:,} matched, {found}" if found else "all matched"
    of = " of warm-up and span" if whole else " of what was committed"
    if not counts.expected and not found:
        return f"no {noun} were due{of}, so nothing was compared"
    return f"{counts.expected:,} {noun} expected{of}, {matched}"


@dataclass(frozen=True)
class Truth:
    """Who said what the results should be, and whether that is another statement of the question than the job's."""

    reference: str
    independent: bool


@contextmanager
def comparison(record: TrialRecord) -> Iterator[Comparison]:
    """A comparison of the results of `done`, which has one sink's commits alone; its database is removed after it."""
    with database() as connection:
        yield Comparison(connection, record)


@contextmanager
def database() -> Iterator[Any]:
    """A DuckDB of its own that works out of core, and on time in UTC."""
    import duckdb

    with Scratch("verify") as folder:
        limit = f"{round(memory_bytes() * MEMORY_SHARE) >> 20}MiB"
        config = {"temp_directory": folder, "preserve_insertion_order": "false", "memory_limit": limit}
        connection = duckdb.connect(str(Path(folder) / "verify.duckdb"), config=config)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            # It takes a reader of batches for one row, and would compare every row of it with every cut.
            connection.execute("SET asof_loop_join_threshold = 0")
            yield connection
        finally:
            connection.close()


class Comparison:
    """Counts what is wrong with one sink's results, in one piece or slice by slice."""

    def __init__(self, connection: Any, record: TrialRecord) -> None:
        self.connection = connection
        self.counts = answers.Counts()
        self._done = record
        self._started = time.monotonic()
        connection.execute(f"CREATE TABLE {LOST_ROWS} ({', '.join(f'{name} BIGINT' for name in LOST)})")

    def add(self, expected: str, received: str, asked: DiffSpec) -> None:
        """Compare the rows of two relations of the connection; no identity may be in two slices."""
        found = answers.compare(
            self.connection, expected, received, asked.identity, asked.columns, asked.judged,
            update=asked.update, deadline_us=self._done.deadline_us,
        )  # fmt: skip
        self.counts += found
        if asked.due is not None and (found.missing or not asked.complete):
            self._keep_lost(expected, received, asked)

    def forget(self) -> None:
        """Begin anew: what was counted so far says nothing."""
        self.counts = answers.Counts()
        self.connection.execute(f"DELETE FROM {LOST_ROWS}")

    def verified(
        self, name: str, received: Received, rule: LatencyRule, truth: Truth, sentence: str, keep_at: Path | None,
        counted: InclusionTimes, judged: bool = True,
    ) -> SinkDiff:  # fmt: skip
        """What was found, with the latencies by `rule` and, of updates, until events were `counted`; the results are
        kept at `keep_at` where that is given.
        """
        record, seconds = self._done, time.monotonic() - self._started
        span = (record.spans.measured_from_us, record.spans.measured_to_us)
        latencies = counted.beside(sink_latencies(received.batches(), rule, span, self.lost(rule)))
        if keep_at is not None and not received.empty:
            keep_results(received, keep_at)
        verification = Verification(
            judged=judged, independent=truth.independent, reference=truth.reference,
            uncommitted=sum(record.trial_log.rows_ignored.values()), seconds=seconds, sentence=sentence,
            **self.counts.as_dict(),
        )  # fmt: skip
        rows = sum(commit.rows for commit in record.trial_log.commits)
        query = next((commit.query for commit in record.trial_log.commits), "")
        return SinkDiff(name, query, verification, latencies, rows, rule.kind)

    def lost(self, rule: LatencyRule) -> Iterator[Missing]:
        """The rows due in the measured span that never came, part by part: they enter the latencies as lower bounds.

        A stamp that some row lacks is left out of all: what was never handed out has nothing to count from.
        """
        if rule.window_event_time is not None:
            self._count_from_windows(rule)
        counted = ", ".join(f"count({name}) = count(*)" for name in LOST)
        (found,) = self.connection.execute(f"SELECT {counted} FROM {LOST_ROWS}").fetchall()
        known = [name for name, whole in zip(LOST, found, strict=True) if whole]
        for batch in self.connection.sql(f"SELECT * FROM {LOST_ROWS}").to_arrow_reader(ROWS_MAX):
            stamps = {name: batch.column(name).to_numpy() for name in known}
            yield Missing(self._done.deadline_us, stamps[EVENT_TIME], stamps.get(INGEST_TIME), stamps.get(WINDOW_END))

    def _keep_lost(self, expected: str, received: str, asked: DiffSpec) -> None:
        stamps = {
            EVENT_TIME: EVENT_TIME, INGEST_TIME: f"nullif({INGEST_TIME}, 0)", WINDOW_END: f"epoch_us({WINDOW_END})"
        }  # fmt: skip
        columns = ", ".join(stamps[name] if name in asked.columns else "NULL" for name in LOST)
        same = " AND ".join(f'e."{name}" IS NOT DISTINCT FROM r."{name}"' for name in asked.identity)
        self.connection.execute(
            f"INSERT INTO {LOST_ROWS} SELECT {columns} FROM {expected} AS e WHERE {asked.due}"
            f" AND NOT EXISTS (SELECT 1 FROM {received} AS r WHERE {same})"
        )

    def _count_from_windows(self, rule: LatencyRule) -> None:
        """A join's missing outputs count from the times that the driver computes, like those that came."""
        assert rule.window_event_time is not None
        ends = self.connection.execute(f"SELECT DISTINCT {WINDOW_END} FROM {LOST_ROWS}").fetchnumpy()[WINDOW_END]
        handed_out = rule.window_ingest_time(ends) if rule.window_ingest_time else np.zeros(len(ends), np.int64)
        times = {EVENT_TIME: rule.window_event_time(ends), INGEST_TIME: handed_out}
        self.connection.register("_last_events", pa.table({WINDOW_END: ends, **times}))
        self.connection.execute(
            f"UPDATE {LOST_ROWS} SET {EVENT_TIME} = l.{EVENT_TIME}, {INGEST_TIME} = nullif(l.{INGEST_TIME}, 0)"
            f" FROM _last_events AS l WHERE {LOST_ROWS}.{WINDOW_END} = l.{WINDOW_END}"
        )
        self.connection.unregister("_last_events")
