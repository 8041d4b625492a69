"""Verification of a user job: by the user's reference if there is one, else by the same function run in batch.

The batch run is a separate process over the regenerated input, after the measured span. It cannot find errors in the
function itself, but it finds errors of streaming: rows dropped as late, counted twice, lost state.
`verification.sink_comparison` compares, as for every workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.errors import EngineError, InputError
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, LINEAGE, WINDOW_END, WINDOW_START
from streamgauge.core.trial import ProgressText
from streamgauge.core.value_types import TIMESTAMP, ValueType
from streamgauge.diff import compare as answers
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import BatchRequest
from streamgauge.jobs import Description
from streamgauge.metrics.delivery_times import handed_over, ingest_times
from streamgauge.metrics.event_latency import Kind, LatencyRule
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.disk import Scratch
from streamgauge.system.user_code import first_line
from streamgauge.user_workloads.user_workload import user_workload
from streamgauge.verification.received_results import ReceivedResults, results_file
from streamgauge.verification.regenerated_input import PlacedInput, RegeneratedInput
from streamgauge.verification.sink_comparison import (
    Comparison,
    DiffSpec,
    SinkDiff,
    Truth,
    VerificationResult,
    allowed_by,
    comparison,
    diff_spec_of,
    due_after_early_end,
    of_all,
    outcome,
)
from streamgauge.verification.uneven_reads import BATCH, BatchNumbers
from streamgauge.verification.user_job_rows import (
    COPY,
    NO_RESULTS,
    Lineage,
    copies,
    date_by_key,
    expect,
    identity,
    numbered,
)
from streamgauge.verification.user_job_updates import AnswerBefore, Updates, compare_last

BY_REFERENCE = Truth("DuckDB, by the job's reference", independent=True)

NOTHING_TO_COMPARE = (
    "the trial ended before the engine had committed any input: no result came and none was due, "
    "so the job was not run again for its truth"
)
JOB_ERRORS = (EngineError, InputError, duckdb.Error)
"""Errors of the job or of its reference. The trial's other figures stand, but its results are not verified."""


def verify_user_job(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    log: Path,
    results_folder: RunFolder | None = None,
    stage: ProgressText | None = None,
) -> VerificationResult:
    """Compares every result of a user job's trial and computes latencies, for each of its sinks.

    The batch run's output goes to `log`. `stage` shows the current step.
    """
    experiments, sinks, notes = resolved.by_sink(), [], []
    several = len(experiments) > 1
    for one in experiments:
        name = one.flow.sink.name
        of_sink = replace(record, trial_log=record.trial_log.of_sink(name)) if several else record
        path = results_folder.path / results_file(name, several) if results_folder is not None else None
        sink, of_its = _verify_sink(one, of_sink, log, path, stage or ProgressText(""))
        sinks.append(sink)
        notes += [f"{name}: {note}" for note in of_its] if several else of_its
    return VerificationResult(of_all(sinks, record) if several else sinks[0].verification, tuple(sinks), tuple(notes))


def _verify_sink(
    resolved: ResolvedExperiment, record: TrialRecord, log: Path, results_path: Path | None, stage: ProgressText
) -> tuple[SinkDiff, list[str]]:
    """(the verification of the only sink, notes on the result)."""
    described, received, is_judged = _described(resolved), ReceivedResults(record), True
    in_batch = Truth(entry(resolved.engine.name).batch_truth, independent=False)
    truth, guarantee = in_batch if described.reference is None else BY_REFERENCE, described.guarantee
    with comparison(record) as compared:
        try:
            if nothing_to_compare(record, received):
                sentence, notes = NOTHING_TO_COMPARE, [f"answers: {NOTHING_TO_COMPARE}"]
            else:
                differences = _compare(resolved, record, received, compared, log, stage)
                received = differences.received or received
                sentence = _sentence(compared.counts, record.owes_all, differences, received, guarantee)
                notes = [f"answers: {differences.ignored}"] if differences.ignored else []
                notes += [differences.timeless] if differences.timeless else []
        except duckdb.InterruptException:
            raise
        except JOB_ERRORS as error:
            compared.reset()
            reason = first_line(error) if isinstance(error, duckdb.Error) else str(error)
            is_judged, notes, sentence = False, [], f"the answers could not be judged: {reason}"
        if missing := _borders_missing(resolved, received):
            notes.append(f"closing delay: {missing}")
        rule = rule_of(resolved, record, received)
        sink = compared.verified(resolved, received, rule, truth, sentence, results_path, is_judged, guarantee)
    return sink, notes


def nothing_to_compare(record: TrialRecord, received: ReceivedResults) -> bool:
    """Whether every comparison would find nothing, whatever the truth is. The batch run takes one to two minutes.

    A trial that ended early owes only what its committed batches gave. Any result may be wrong, and any committed input
    may owe one.
    """
    if record.owes_all or not received.empty:
        return False
    ends_us = record.trial_log.batch_ends()
    committed = ((commit.query, commit.batch) for commit in record.trial_log.commits)
    return all(ends_us.get(batch, 0) <= record.spans.start_us for batch in committed)


def _described(resolved: ResolvedExperiment) -> Description:
    """What the job declares of the only sink."""
    return user_workload(resolved.workload).described[resolved.flow.sink.name]


def rule_of(resolved: ResolvedExperiment, record: TrialRecord, received: ReceivedResults) -> LatencyRule:
    """The latency definition for a user job's results, from their columns."""
    kind: Kind = "row"
    if _described(resolved).mode == "update":
        kind = "update"
    elif not received.empty and WINDOW_END in received.schema.names:
        kind = "row" if any(batch.column(WINDOW_END).null_count for batch in received.batches()) else "window"
    return LatencyRule(kind, handed_over=handed_over(record.trial_log, resolved.waits_for_all))


def _borders_missing(resolved: ResolvedExperiment, received: ReceivedResults) -> str:
    """Why results that seem to be of windows have no closing delay, with the way out; empty where they do not."""
    described = _described(resolved)
    if described.mode == "update" or received.empty or WINDOW_END in received.schema.names:
        return ""
    kinds = {field.name: field.type for field in received.schema if field.name not in LINEAGE}
    for name, kind in kinds.items():
        if pa.types.is_struct(kind) and {"start", "end"} <= {kind.field(n).name for n in range(kind.num_fields)}:
            columns = f"F.col('{name}.start').alias('{WINDOW_START}'), F.col('{name}.end').alias('{WINDOW_END}')"
            return f"not given, as the window is in the column {name}; select {columns}"
    own = {given.time for given in described.inputs}
    times = [name for name, kind in kinds.items() if pa.types.is_timestamp(kind) and name not in own]
    if len(times) < 2 or described.reach_us == 0:  # without a reach there are no windows
        return ""
    return (
        f"not given, as no column is named {WINDOW_END}; if two of {', '.join(times)} are a window's borders, "
        f"name them {WINDOW_START} and {WINDOW_END}"
    )


def _compare(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    received: ReceivedResults,
    compared: Comparison,
    log: Path,
    stage: ProgressText,
) -> _Compared:
    described = _described(resolved)
    with Scratch("truth") as folder:
        stage.set("regenerating the input")
        by_batch = described.mode == "update" and resolved.reads_unevenly
        topics = resolved.workload.program_topics if described.mode == "update" else None
        order = BATCH if by_batch else INGEST_TIME if topics is not None else EVENT_TIME
        inputs = _write_input(resolved, record, Path(folder), order)
        with _truth(resolved, compared.connection, inputs, Path(folder), log, stage, order) as answer_before:
            if topics is not None:
                topic = topics.outputs[resolved.flow.sink.name]
                return _Compared(*compare_last(compared, record, described, topic, inputs, answer_before(None)), None)
            if described.mode == "update":
                updates = Updates(
                    record, compared, described.keys, answer_before, inputs, described.reference is not None, by_batch
                )
                return _Compared(*updates.compare())
            return _compare_rows(resolved, record, received, compared, inputs, answer_before(None))


@dataclass(frozen=True)
class _Compared:
    """How results were compared: a description, the columns that identify a result, and the check of times.

    `received`: the results with event times that they did not carry. `timeless`: a note on those without one.
    """

    how: str
    ids: tuple[str, ...]
    lineage: Lineage | None
    received: ReceivedResults | None = None
    timeless: str = ""

    @property
    def summary(self) -> str:
        lineage = self.lineage.summary if self.lineage is not None else ""
        return f"{self.how}; {lineage}" if lineage else self.how

    @property
    def ignored(self) -> str:
        """A note about result columns that the truth does not define; empty if it defines all."""
        if self.lineage is None or not self.lineage.ignored:
            return ""
        names = f"not compared, as the reference leaves them out: {', '.join(self.lineage.ignored)}"
        only = {*self.ids, *LINEAGE, WINDOW_START, WINDOW_END}
        if {*self.lineage.columns} <= only and not {*self.lineage.ignored} <= only:
            return f"{names}; so only the presence of results and their event_time were compared, not their values"
        return names


class _WithBatches(RegeneratedInput):
    """The planned input as a job reads it from a broker, with the batch that read each event."""

    def __init__(self, trial_log: TrialLog, columns: dict[str, tuple[str, ...]]) -> None:
        super().__init__(trial_log.plan, None, columns)
        self._numbers = BatchNumbers(next(iter(trial_log.by_query()), trial_log))

    def _with_ingest(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = self._numbers.batches_of(self._plan.streams[stream].name, partition, first, first + batch.num_rows)
        return super()._with_ingest(stream, partition, first, batch).append_column(BATCH, pa.array(numbers))


def _write_input(resolved: ResolvedExperiment, record: TrialRecord, folder: Path, order: str) -> dict[str, Path]:
    """Writes the regenerated input as one Parquet file per stream, with the column `order`.

    `EVENT_TIME` is as planned, `BATCH` the batch that read each event. For `INGEST_TIME` it is the event's partition.
    """
    plan, trial_log, paths = record.trial_log.plan, record.trial_log, {}
    if order == BATCH:
        made: RegeneratedInput = _WithBatches(trial_log, resolved.columns)
    elif order == INGEST_TIME:
        made = PlacedInput(plan, None, resolved.columns)
    else:
        made = RegeneratedInput(plan, ingest_times(trial_log) if resolved.sees_deliveries else None, resolved.columns)
    for name, reader in made.readers(record.spans.start_us, record.offered_until()).items():
        paths[name] = folder / f"{name}.parquet"
        with pq.ParquetWriter(paths[name], reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    return paths


@contextmanager
def _truth(
    resolved: ResolvedExperiment, connection: Any, inputs: dict[str, Path], folder: Path, log: Path,
    stage: ProgressText, order: str,
) -> Iterator[AnswerBefore]:  # fmt: skip
    workload = user_workload(resolved.workload)
    if _described(resolved).reference is not None:
        stage.set("running the reference and comparing every answer")
        sink = resolved.flow.sink.name
        yield lambda before_us: workload.answer(connection, sink, _tables(inputs, before_us, order))
        return
    assert workload.batch_job is not None
    request = BatchRequest(workload.batch_job, inputs, resolved.experiment.options, folder, log, stage, order)
    with entry(resolved.engine.name).batch_answer(request) as answer:
        yield lambda before_us: connection.read_parquet(
            str(answer(folder / f"answer-{before_us}", before_us) / "*.parquet")
        )


def _tables(inputs: dict[str, Path], before_us: int | None, order: str) -> dict[str, str]:
    """Stream to the query of its part that the truth is computed from."""
    until = "true" if before_us is None else f"{order} < {before_us}"
    columns = "*" if order == EVENT_TIME else f"* EXCLUDE ({order})"
    return {name: f"SELECT {columns} FROM read_parquet('{file}') WHERE {until}" for name, file in inputs.items()}


def _compare_rows(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    received: ReceivedResults,
    compared: Comparison,
    inputs: dict[str, Path],
    answer: Any,
) -> _Compared:
    connection, described = compared.connection, _described(resolved)
    truth_types = expect(connection, answer)
    dated, note = "", ""
    if (key := described.latency_key) is not None:
        received, dated, note = date_by_key(connection, key, inputs[key.stream], received)
    if received.empty:  # not through Arrow, in which a sum of whole numbers is a decimal
        connection.execute(f"CREATE TABLE _result_rows AS {NO_RESULTS}")
    else:
        rows, place = received.table(), received.schema.get_field_index(EVENT_TIME)
        if place >= 0 and pa.types.is_integer(rows.schema.field(place).type):
            # 0 instead of null, as in the expected ones.
            rows = rows.set_column(place, EVENT_TIME, pc.fill_null(rows.column(place), 0))
        connection.register("_result_rows", rows)
    lineage = Lineage(connection, inputs, truth_types, described.reference is not None, by_id=True)
    columns = lineage.demand()
    received_types = answers.types_of(connection, "_checked_rows")
    compared_as = answers.compared_types(columns, received_types, columns)
    ids, unique = identity(connection, truth_types, described.keys)
    delivery = described.guarantee.delivery if described.guarantee else None
    if not unique and delivery not in (None, "exactly_once"):
        shared = f"{copies(connection, '_expected_rows', ids):,} expected results have the same {', '.join(ids)}"
        advice = "name in keys what tells results apart"
        raise EngineError(f"{shared} as another one, so {delivery} cannot be judged; {advice}")
    connection.execute(
        f"CREATE VIEW _received AS {numbered('_checked_rows', ids, received_types, compared_as, unique)}"
    )
    connection.execute(f"CREATE VIEW _expected AS {numbered('_expected_rows', ids, columns, compared_as, unique)}")
    compared.add(
        "_expected", "_received", _diff_spec(record, resolved.reach_us or 0, ids if unique else (*ids, COPY), columns)
    )
    how = f"identified by {', '.join(ids)}" + ("" if unique else ", as a multiset") + (f"; {dated}" if dated else "")
    return _Compared(how, ids, lineage, received, note)


def _diff_spec(
    record: TrialRecord, reach_us: int, identity: tuple[str, ...], columns: dict[str, ValueType]
) -> DiffSpec:
    windowed = columns.get(WINDOW_END) == ValueType(TIMESTAMP)
    # The delay of the job's own watermark is not known, but its reach includes it.
    early = due_after_early_end(record, windowed, delay_us=reach_us)
    if reach_us and not windowed:  # without window columns, a stateful result may be due up to its reach later
        early = f"event_time < {record.trial_log.committed_until() - reach_us}"
    return diff_spec_of(record, identity, tuple(columns), windowed, early)


def _sentence(
    counts: answers.Counts, whole: bool, how: _Compared, received: ReceivedResults, guarantee: Guarantee | None
) -> str:
    timeless = sum(batch.num_rows for batch in received.batches(0, 1))
    note = f"; {timeless:,} carry no event_time and are in no latency" if timeless else ""
    ignored = f"; {how.ignored}" if how.ignored else ""
    return f"{outcome(counts, whole)} ({how.summary}){_promise(counts, guarantee)}{note}{ignored}"


def _promise(counts: answers.Counts, guarantee: Guarantee | None) -> str:
    """The promised guarantee, and the rows that it allows; empty without one."""
    if guarantee is None:
        return ""
    allowed = "".join(f", which allows {count:,} {kind}" for kind, count in allowed_by(guarantee, counts).items())
    loss = f" with at most {guarantee.loss_max:.3%} lost" if guarantee.loss_max else ""
    return f"; promised: {guarantee.delivery}{loss}{allowed}"
