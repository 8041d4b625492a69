"""Verification of an own job: by the user's reference where there is one, else by the same function run in batch.

The batch run is a process of its own over the regenerated input, after the measured span. It cannot find what the
function means wrongly, but it finds everything that streaming did to the answer: rows dropped as late, counted twice,
state lost. The other half, comparing, is `verification.sink_comparison`, as for every workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.errors import EngineError, InputError
from streamgauge.core.lineage_columns import EVENT_TIME, LINEAGE, WINDOW_END, WINDOW_START
from streamgauge.core.stage import Stage
from streamgauge.core.value_types import TIMESTAMP, ValueType
from streamgauge.diff import compare as answers
from streamgauge.metrics.latency.event_latency import LatencyRule
from streamgauge.metrics.latency.inclusion_latency import inclusion_times_of
from streamgauge.metrics.log.ingest_times import IngestTimes, handed_over
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.preflight import user_job_reference
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.user_job import UserJob
from streamgauge.system.scratch import Scratch
from streamgauge.system.user_code import first_line
from streamgauge.verification.regenerated_input import RegeneratedInput
from streamgauge.verification.sink_comparison import (
    Comparison,
    DiffSpec,
    Truth,
    Verified,
    comparison,
    diff_spec_of,
    judged_early,
    outcome,
)
from streamgauge.verification.spool import Received, results_file
from streamgauge.verification.user_job.lineage import Lineage
from streamgauge.verification.user_job.rows import COPY, empty_relation, expect, identity, numbered
from streamgauge.verification.user_job.updates import AnswerBefore, Updates

BY_BATCH = Truth("Spark, the same function in batch", independent=False)
BY_REFERENCE = Truth("DuckDB, by the job's own reference", independent=True)

UNJUDGED = (EngineError, InputError, duckdb.Error)
"""Errors of the job or of its reference: the trial's other figures stand, its answers are not judged."""


def verify_user_job(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    log: Path,
    keep_in: RunFolder | None = None,
    stage: Stage | None = None,
) -> Verified:
    """Compare every answer of a trial of an own job, and compute its latencies.

    `log` takes what the batch run says; `stage` is told what is done.
    """
    stage = stage or Stage("")
    received, judged = Received(record), True
    truth = BY_BATCH if _job(resolved).description.reference is None else BY_REFERENCE
    keep_at = keep_in.path / results_file() if keep_in is not None else None
    with comparison(record) as compared:
        try:
            found = _compare(resolved, record, received, compared, log, stage)
            sentence = _sentence(compared.counts, record.owes_all, found, received)
            notes = [f"answers: {found.passed_over}"] if found.passed_over else []
        except duckdb.InterruptException:
            raise  # somebody stopped it
        except UNJUDGED as error:
            compared.forget()
            judged, notes, sentence = False, [], f"the answers could not be judged: {_plain(error)}"
        rule = rule_of(resolved, record, received)
        counted = inclusion_times_of(record, rule.kind, resolved.columns, resolved.engine.has_batch_ids)
        sink = compared.verified(resolved.flow.sink.name, received, rule, truth, sentence, keep_at, counted, judged)
    return Verified(sink.verification, (sink,), tuple(notes))


def _plain(error: Exception) -> str:
    return first_line(error) if isinstance(error, duckdb.Error) else str(error)


def _job(resolved: ResolvedExperiment) -> UserJob:
    assert isinstance(resolved.workload, UserJob)
    return resolved.workload


def rule_of(resolved: ResolvedExperiment, record: TrialRecord, received: Received) -> LatencyRule:
    """Which latency the results of an own job have, by what came."""
    return LatencyRule(_kind(resolved, received), handed_over=handed_over(record.trial_log))


def _kind(resolved: ResolvedExperiment, received: Received) -> Any:
    if _job(resolved).description.mode == "update":
        return "update"
    if received.empty or WINDOW_END not in received.schema.names:
        return "row"
    return "row" if any(batch.column(WINDOW_END).null_count for batch in received.batches()) else "window"


def _compare(
    resolved: ResolvedExperiment, record: TrialRecord, received: Received, compared: Comparison, log: Path, stage: Stage
) -> _Compared:
    described = _job(resolved).description
    with Scratch("truth") as folder:
        stage.set("making the input again")
        inputs = _written(resolved, record, Path(folder))
        with _truth(resolved, compared.connection, inputs, Path(folder), log, stage) as answer_before:
            if described.mode == "update":
                independent = described.reference is not None
                updates = Updates(record, compared, described.keys, answer_before, inputs, independent)
                return _Compared(*updates.compare())
            return _compare_rows(resolved, record, received, compared, inputs, answer_before(None))


@dataclass(frozen=True)
class _Compared:
    """How results were compared: in words, the columns that tell them apart, and which of their times by what."""

    how: str
    ids: tuple[str, ...]
    lineage: Lineage | None

    @property
    def said(self) -> str:
        lineage = self.lineage.said if self.lineage is not None else ""
        return f"{self.how}; {lineage}" if lineage else self.how

    @property
    def passed_over(self) -> str:
        """Which columns of the results the truth says nothing of, in words; nothing where it says something of all."""
        if self.lineage is None or not self.lineage.passed_over:
            return ""
        names = f"not compared, as the reference leaves them out: {', '.join(self.lineage.passed_over)}"
        only = {*self.ids, *LINEAGE, WINDOW_START, WINDOW_END}
        if {*self.lineage.columns} <= only and not {*self.lineage.passed_over} <= only:
            return f"{names}; so of a result no value was looked at, only that it is there, and its event_time"
        return names


def _written(resolved: ResolvedExperiment, record: TrialRecord, folder: Path) -> dict[str, Path]:
    """The planned input again, a Parquet file a stream."""
    source = RegeneratedInput(record.trial_log.plan, IngestTimes(record.trial_log), resolved.columns)
    paths = {}
    for name, reader in source.readers(record.spans.start_us, record.offered_until()).items():
        paths[name] = folder / f"{name}.parquet"
        with pq.ParquetWriter(paths[name], reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    return paths


@contextmanager
def _truth(
    resolved: ResolvedExperiment, connection: Any, inputs: dict[str, Path], folder: Path, log: Path, stage: Stage
) -> Iterator[AnswerBefore]:
    job = _job(resolved)
    if job.description.reference is not None:
        stage.set("running the reference and comparing every answer")
        yield lambda before_us: _by_reference(job, connection, inputs, before_us)
        return
    from streamgauge.engines.spark.user_job.batch_answer import batch_answer

    with batch_answer(job.native, inputs, resolved.experiment.options, folder, log, stage) as answer:
        yield lambda before_us: connection.read_parquet(
            str(answer(folder / f"answer-{before_us}", before_us) / "*.parquet")
        )


def _by_reference(job: UserJob, connection: Any, inputs: dict[str, Path], before_us: int | None) -> Any:
    until = "true" if before_us is None else f"{EVENT_TIME} < {before_us}"
    tables = {name: f"SELECT * FROM read_parquet('{path}') WHERE {until}" for name, path in inputs.items()}
    return user_job_reference.answer(connection, job.path, job.description, tables)


def _compare_rows(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    received: Received,
    compared: Comparison,
    inputs: dict[str, Path],
    answer: Any,
) -> _Compared:
    connection, job = compared.connection, _job(resolved)
    wanted = expect(connection, answer)
    connection.register("_came", received.table() if not received.empty else empty_relation(connection))
    lineage = Lineage(connection, inputs, wanted, job.description.reference is not None, by_id=True)
    columns = lineage.demand()
    came = answers.types_of(connection, "_claimed")
    compared_as = answers.compared_types(columns, came, columns)
    ids, unique = identity(connection, wanted, job.description.keys)
    connection.execute(f"CREATE VIEW _received AS {numbered('_claimed', ids, came, compared_as, unique)}")
    connection.execute(f"CREATE VIEW _expected AS {numbered('_wanted', ids, columns, compared_as, unique)}")
    asked = _asked(record, resolved.reach_us or 0, ids if unique else (*ids, COPY), columns)
    compared.add("_expected", "_received", asked)
    return _Compared(f"told apart by {', '.join(ids)}" + ("" if unique else ", as a multiset"), ids, lineage)


def _asked(record: TrialRecord, reach_us: int, identity: tuple[str, ...], columns: dict[str, ValueType]) -> DiffSpec:
    windowed = columns.get(WINDOW_END) == ValueType(TIMESTAMP)
    early = judged_early(record, windowed)
    if reach_us and not windowed:  # a stateful result that shows no window may be due so much later
        early = f"event_time < {record.trial_log.committed_until() - reach_us}"
    return diff_spec_of(record, identity, tuple(columns), windowed, early)


def _sentence(counts: answers.Counts, whole: bool, found: _Compared, received: Received) -> str:
    timeless = sum(batch.num_rows for batch in received.batches(0, 1))
    note = f"; {timeless:,} carry no event_time and are in no latency" if timeless else ""
    passed_over = f"; {found.passed_over}" if found.passed_over else ""
    return f"{outcome(counts, whole)} ({found.said}){note}{passed_over}"
