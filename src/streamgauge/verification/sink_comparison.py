"""Compares one sink's results with the expected ones, and computes latencies.

`verification.expected` and `verification.user_job_truth` give the expected rows as a query. Both sides are tables of
an out-of-core DuckDB database, so a long run does not have to fit into memory.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, INGEST_TIME, LINEAGE_TIMES, WINDOW_END, equal_columns
from streamgauge.diff import compare as answers
from streamgauge.diff.sql import normal
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.event_latency import LatencyRule, Missing, SinkLatencies, sink_latencies
from streamgauge.metrics.inclusion_latency import with_inclusion_latency
from streamgauge.metrics.rates_and_backlog import rows_per_s
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.latency import Latency
from streamgauge.results.run import FAULTS, SinkResult, Verification
from streamgauge.results.text.sentences import columns_in_words
from streamgauge.system.disk import Scratch
from streamgauge.system.machine import memory_bytes
from streamgauge.verification.received_results import ReceivedResults, write_results

MS = 1000
"""Engines may truncate watermarks to milliseconds."""
MEMORY_SHARE = 0.5
"""Share of the machine's memory for DuckDB, because the engine still runs during verification."""
ROWS_MAX = 262_144
MISSING_COLUMNS = (EVENT_TIME, INGEST_TIME, WINDOW_END)
MISSING_ROWS = "_lost"
"""Internal tables start with an underscore, so that they cannot clash with streams that a reference names."""


@dataclass(frozen=True)
class SinkDiff:
    """The verification and the latencies of one sink."""

    name: str
    query: str
    verification: Verification
    latencies: SinkLatencies
    rows: int
    kind: str = ""
    too_early: int = 0
    """Right results that came before their event, which proves that a clock is wrong."""
    rows_per_s: float | None = None
    """As in `SinkResult`."""


@dataclass(frozen=True)
class VerificationResult:
    """The verification of all sinks together and of each; `notes` are added to the result's notes."""

    verification: Verification
    sinks: tuple[SinkDiff, ...]
    notes: tuple[str, ...] = ()

    @property
    def slowest(self) -> SinkDiff:
        """The sink with the greatest mean event-time latency."""
        return max(self.sinks, key=lambda sink: _mean(sink.latencies.latencies.event_time_us))

    @property
    def latencies(self) -> dict[str, SinkLatencies]:
        """The latencies by sink name."""
        return {sink.name: sink.latencies for sink in self.sinks}

    @property
    def negatives(self) -> int:
        return sum(sink.too_early for sink in self.sinks)

    @property
    def windows_closed(self) -> int | None:
        """The smallest number of closed windows over the windowed sinks; None if there are none."""
        return min(
            (closed for sink in self.sinks if (closed := sink.latencies.windows_closed) is not None), default=None
        )

    @property
    def window_gap_us(self) -> int:
        """How far apart windows end, of the windowed sink that has the longest; 0 where that is not known."""
        return max((gap for sink in self.sinks if (gap := sink.latencies.window_gap_us) is not None), default=0)

    @property
    def results(self) -> tuple[SinkResult, ...]:
        return tuple(
            SinkResult(
                name=sink.name, rows=sink.rows, rows_per_s=sink.rows_per_s, latency=sink.latencies.latencies,
                query=sink.query, kind=sink.kind, verification=sink.verification,
            )
            for sink in self.sinks
        )  # fmt: skip


def _mean(latency: Latency | None) -> float:
    return latency.mean if latency is not None and latency.mean is not None else -1.0


@dataclass(frozen=True)
class DiffSpec:
    """How to compare rows.

    - `required`: SQL condition for the expected rows that must have come.
    - `due`: SQL condition for the expected rows that enter the latencies even if they never came (None: no row).
    - `complete`: whether all rows that are due are also required.
    """

    identity: tuple[str, ...]
    columns: tuple[str, ...]
    required: str
    due: str | None
    update: bool = False
    complete: bool = True


def diff_spec_of(
    record: TrialRecord, identity: tuple[str, ...], columns: tuple[str, ...], windowed: bool, early: str
) -> DiffSpec:
    """Requires all rows of the measured span, or those of the condition `early` if the trial was not drained."""
    due = f"event_time < {min(record.spans.measured_to_us, record.offered_until())}"
    if windowed:
        due += f" AND epoch_us(window_end) <= {record.deadline_us}"  # an open window is not late
    required = f"event_time < {record.spans.measured_to_us}" if record.owes_all else early
    return DiffSpec(identity, columns, required, due, complete=record.owes_all)


def due_after_early_end(record: TrialRecord, windowed: bool, hold_us: int | None = 0, delay_us: int = 0) -> str:
    """SQL condition for the rows that a trial must have given if it ended early: those of its committed batches.

    Windows close one batch late. `hold_us`: additional delay of a process; None if unknown. `delay_us`: the delay of
    the watermark behind the latest event.
    """
    if hold_us is None:
        return "false"
    (sink,) = record.trial_log.sinks
    frontiers = record.trial_log.running.furthest(sink)
    if not windowed and not hold_us:
        return f"event_time < {frontiers[-1] if frontiers else 0}"
    passed_us = _watermark_us(record.trial_log.plan, frontiers[-2]) - delay_us if len(frontiers) > 1 else 0
    return f"window_end <= {passed_us}" if windowed else f"event_time < {passed_us - hold_us}"


def _watermark_us(plan: Plan, cut_us: int) -> int:
    """A lower bound of the watermark after all events before `cut_us`: the last event of the slowest stream.

    In whole milliseconds. It is below the cut, so a window that ends at the cut closes one batch later.
    """
    streams, partitions = range(len(plan.streams)), range(plan.partitions)
    last_us = min(max(plan.last_before(stream, each, cut_us) or 0 for each in partitions) for stream in streams)
    return last_us // MS * MS


def outcome(counts: answers.Counts, complete: bool, noun: str = "results") -> str:
    """The counts as a sentence without a full stop. `complete`: whether all offered events were committed."""
    differences = ", ".join(f"{count:,} {kind}" for kind in FAULTS if (count := getattr(counts, kind)))
    matched = f"{counts.matched:,} matched, {differences}" if differences else "all matched"
    of = " of warm-up and span" if complete else " of what was committed"
    if not counts.expected and not differences:
        return f"no {noun} were due{of}, so there was nothing to compare"
    return f"{counts.expected:,} {noun} expected{of}, {matched}{columns_in_words(counts.wrong_columns)}"


def allowed_by(guarantee: Guarantee | None, counts: answers.Counts, restarted: bool = False) -> dict[str, int]:
    """By kind, the rows that differ from the reference as a guarantee allows. A repeated result must have its value.

    `restarted`: whether the driver restarted the engine.
    """
    if guarantee is None:
        return {}
    repeated = counts.duplicate - counts.conflicting
    may_repeat = guarantee.delivery == "at_least_once" and (restarted or not guarantee.only_after_restart)
    if may_repeat and repeated:
        return {"duplicate": repeated}
    most = round(guarantee.loss_max * counts.expected, 6)  # 0.29 * 100 is less than 29
    if guarantee.delivery == "at_most_once" and 0 < counts.missing <= most:
        return {"missing": counts.missing}
    return {}


def of_all(sinks: list[SinkDiff], record: TrialRecord) -> Verification:
    """Sums over all sinks. Examples and the sentence name the sink."""
    each = [(sink.name, sink.verification) for sink in sinks]
    names = ("expected", "matched", *FAULTS, "not_judged", "seconds")
    promised = {one.delivery for _, one in each}
    wrong_first = sorted(each, key=lambda pair: pair[1].right)
    examples = [{"sink": name, **example} for name, one in each for example in one.examples]
    allowed = sum((Counter(one.allowed) for _, one in each), Counter[str]())
    sums: dict[str, Any] = {name: sum(getattr(one, name) for _, one in each) for name in names}
    return Verification(
        judged=all(one.judged for _, one in each),
        independent=all(one.independent for _, one in each),
        reference="; ".join(dict.fromkeys(one.reference for _, one in each)),
        uncommitted=sum(record.trial_log.rows_ignored.values()),
        sentence="; ".join(f"{name}: {one.sentence}" for name, one in wrong_first),
        examples=tuple(examples),
        delivery=promised.pop() if len(promised) == 1 else None,
        allowed=dict(allowed),
        wrong_columns={f"{name}.{column}": count for name, one in each for column, count in one.wrong_columns.items()},
        **sums,
    )


@dataclass(frozen=True)
class Truth:
    """Where the expected results come from, and whether that source is independent of the job."""

    reference: str
    independent: bool


@contextmanager
def comparison(record: TrialRecord) -> Iterator[Comparison]:
    """A comparison in a temporary database; `record` has only one sink's commits."""
    with database() as connection:
        yield Comparison(connection, record)


@contextmanager
def database() -> Iterator[Any]:
    """A temporary out-of-core DuckDB database with time zone UTC."""
    import duckdb

    with Scratch("verify") as folder:
        limit = f"{round(memory_bytes() * MEMORY_SHARE) >> 20}MiB"
        config = {
            "temp_directory": folder, "preserve_insertion_order": "false", "memory_limit": limit,
            # DuckDB estimates one row for a batch reader, and would choose a nested loop.
            "asof_loop_join_threshold": "0",
        }  # fmt: skip
        with duckdb.connect(str(Path(folder) / "verify.duckdb"), config=config) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection


class Comparison:
    """Compares one sink's results, in one piece or in slices, and accumulates the counts."""

    def __init__(self, connection: Any, record: TrialRecord) -> None:
        self.connection = connection
        self.counts = answers.Counts()
        self._too_early = 0
        self._record = record
        self._started = time.monotonic()
        connection.execute(f"CREATE TABLE {MISSING_ROWS} ({', '.join(f'{name} BIGINT' for name in MISSING_COLUMNS)})")

    def add(self, expected: str, received: str, spec: DiffSpec) -> None:
        """Compares the rows of two relations of the connection. No identity may occur in two slices."""
        counts = answers.compare(
            self.connection, expected, received, spec.identity, spec.columns, spec.required,
            update=spec.update, deadline_us=self._record.deadline_us,
        )  # fmt: skip
        self.counts += counts
        self._too_early += self._count_too_early(expected, received, spec.identity)
        if spec.due is not None and (counts.missing or not spec.complete):
            self._store_missing(expected, received, spec)

    def _count_too_early(self, expected: str, received: str, identity: tuple[str, ...]) -> int:
        """The results that came before a time that they carry and should carry."""
        sides = [answers.types_of(self.connection, side) for side in (expected, received)]
        names = [name for name in LINEAGE_TIMES if all(name in types for types in sides)]
        times = {name: [normal(f"{side}.{name}", types[name], types[name])
                        for side, types in zip("er", sides, strict=True)] for name in names}  # fmt: skip
        early = {name: f"r.{EMISSION_TIME} < {received_time}" for name, (_, received_time) in times.items()}
        rows = f"FROM {received} AS r WHERE ({' OR '.join(early.values()) or 'false'})"
        ((count,),) = self.connection.execute(f"SELECT count(*) {rows}").fetchall()
        if not count:
            return 0
        same = equal_columns(identity, "e", "r")
        right = " OR ".join(f"{early[name]} AND {planned} = {got}" for name, (planned, got) in times.items())
        ((count,),) = self.connection.execute(
            f"SELECT count(*) {rows} AND EXISTS (SELECT 1 FROM {expected} AS e WHERE {same} AND ({right}))"
        ).fetchall()
        return int(count)

    def reset(self) -> None:
        """Discards all counts."""
        self.counts, self._too_early = answers.Counts(), 0
        self.connection.execute(f"DELETE FROM {MISSING_ROWS}")

    def verified(
        self, resolved: ResolvedExperiment, received: ReceivedResults, rule: LatencyRule, truth: Truth, sentence: str,
        results_path: Path | None, judged: bool = True, guarantee: Guarantee | None = None,
    ) -> SinkDiff:  # fmt: skip
        """The counts and the latencies by `rule`, for updates also until events were counted.

        Writes the results to `results_path` if given.
        """
        record, seconds = self._record, time.monotonic() - self._started
        span = (record.spans.measured_from_us, record.spans.measured_to_us)
        latencies = sink_latencies(received.batches(), rule, span, self.missing_results(rule))
        if rule.kind == "update":
            in_batches = resolved.engine.has_batch_ids
            latencies = with_inclusion_latency(latencies, record, resolved.columns, in_batches)
        if results_path is not None and not received.empty:
            write_results(received, results_path)
        too_early = latencies.negatives
        if self.counts.wrong or self.counts.extra or self.counts.conflicting:
            too_early = min(self._too_early, too_early)
        if wrong_times := latencies.negatives - too_early:
            latencies = latencies.with_notes(
                f"{wrong_times:,} wrong results came before the time that they carry: correct how the job sets it"
            )
        allowed, counts = allowed_by(guarantee, self.counts, record.restarted), self.counts.as_dict()
        faulty = tuple(one for one in self.counts.examples if counts[one["fault"]] > allowed.get(one["fault"], 0))
        verification = Verification(
            judged=judged, independent=truth.independent, reference=truth.reference,
            uncommitted=sum(record.trial_log.rows_ignored.values()), seconds=seconds, sentence=sentence,
            delivery=guarantee.delivery if guarantee else None, allowed=allowed, **{**counts, "examples": faulty},
        )  # fmt: skip
        rows = sum(commit.rows for commit in record.trial_log.commits)
        query = next((commit.query for commit in record.trial_log.commits), "")
        return SinkDiff(
            resolved.flow.sink.name, query, verification, latencies, rows, rule.kind, too_early, rows_per_s(record)
        )

    def missing_results(self, rule: LatencyRule) -> Iterator[Missing]:
        """The rows due in the measured span that never came, in batches. They enter the latencies as lower bounds.

        A time that any row lacks is omitted for all: an event that was never delivered has no ingest time.
        """
        if rule.window_event_time is not None:
            self._count_from_windows(rule)
        complete = ", ".join(f"count({name}) = count(*)" for name in MISSING_COLUMNS)
        (flags,) = self.connection.execute(f"SELECT {complete} FROM {MISSING_ROWS}").fetchall()
        available = [name for name, whole in zip(MISSING_COLUMNS, flags, strict=True) if whole]
        for batch in self.connection.sql(f"SELECT * FROM {MISSING_ROWS}").to_arrow_reader(ROWS_MAX):
            times = {name: batch.column(name).to_numpy() for name in available}
            yield Missing(self._record.deadline_us, times[EVENT_TIME], times.get(INGEST_TIME), times.get(WINDOW_END))

    def _store_missing(self, expected: str, received: str, spec: DiffSpec) -> None:
        times = {
            EVENT_TIME: EVENT_TIME, INGEST_TIME: f"nullif({INGEST_TIME}, 0)", WINDOW_END: f"epoch_us({WINDOW_END})"
        }  # fmt: skip
        columns = ", ".join(times[name] if name in spec.columns else "NULL" for name in MISSING_COLUMNS)
        same = equal_columns(spec.identity, "e", "r")
        self.connection.execute(
            f"INSERT INTO {MISSING_ROWS} SELECT {columns} FROM {expected} AS e WHERE {spec.due}"
            f" AND NOT EXISTS (SELECT 1 FROM {received} AS r WHERE {same})"
        )

    def _count_from_windows(self, rule: LatencyRule) -> None:
        """Sets the times of a join's missing results as the driver computes them for received results."""
        assert rule.window_event_time is not None
        ends = self.connection.execute(f"SELECT DISTINCT {WINDOW_END} FROM {MISSING_ROWS}").fetchnumpy()[WINDOW_END]
        times = {
            EVENT_TIME: rule.window_event_time(ends),
            INGEST_TIME: rule.window_ingest_time(ends) if rule.window_ingest_time else np.zeros(len(ends), np.int64),
        }
        self.connection.register("_last_events", pa.table({WINDOW_END: ends, **times}))
        self.connection.execute(
            f"UPDATE {MISSING_ROWS} SET {EVENT_TIME} = l.{EVENT_TIME}, {INGEST_TIME} = nullif(l.{INGEST_TIME}, 0)"
            f" FROM _last_events AS l WHERE {MISSING_ROWS}.{WINDOW_END} = l.{WINDOW_END}"
        )
