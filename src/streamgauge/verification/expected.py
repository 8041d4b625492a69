"""Verification of one trial: regenerate the planned input, compute the expected results with the oracle, compare.

The input is not stored. The lineage of each result is checked too. Row-by-row flows are compared in slices of event
time, other flows in one piece. Sinks are verified separately, and parsing twenty million lines for each of four sinks
took longer than the trial. So the rows of an operator that several sinks share, and that has only row-by-row operators
upstream, are stored in a file.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.arrays import Int64s
from streamgauge.core.clock import US
from streamgauge.core.schema import (
    EMISSION_TIME,
    EVENT_TIME,
    WINDOW_END,
    WINDOW_START,
    arrow_type,
    equal_columns,
    quoted,
)
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.lineage import identity, needed_columns, with_lineage
from streamgauge.dataflow.nodes import Distinct, Flow, Node, Process, RunningAggregate, Select, Sink, Source, Where
from streamgauge.dataflow.reach import reach_us
from streamgauge.diff.sql import DUE
from streamgauge.engines.duckdb_oracle.lowering import SPAN, at_points, by_spans, lower, retained_name, span_number
from streamgauge.engines.duckdb_oracle.lowering import sql as oracle_sql
from streamgauge.engines.duckdb_oracle.process_operator import computed, is_independent
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.replay.text import quoted_path
from streamgauge.metrics.delivery_times import IngestTimes, cuts, handed_over, ingest_times
from streamgauge.metrics.event_latency import LatencyRule, has_matches, kind_of
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.disk import Scratch
from streamgauge.transports.registry import STAMPS
from streamgauge.verification.received_results import ARRIVAL, BATCH, ReceivedResults, results_file
from streamgauge.verification.regenerated_input import RegeneratedInput, malformed_records
from streamgauge.verification.sink_comparison import (
    Comparison,
    DiffSpec,
    SinkDiff,
    Truth,
    VerificationResult,
    comparison,
    database,
    diff_spec_of,
    due_after_early_end,
    of_all,
    outcome,
)
from streamgauge.verification.uneven_reads import compare_without_batches, expect_by_batch

SLICE_US = 5 * US
BY_SQL = Truth("DuckDB, by SQL made from the flow", independent=True)
BY_CLASSES = Truth(
    "DuckDB, by SQL made from the flow, and the flow's own classes over the whole input in order", independent=False
)


def verify(
    resolved: ResolvedExperiment, record: TrialRecord, results_folder: RunFolder | None = None
) -> VerificationResult:
    """Compares every result of a trial and computes latencies. Writes results to `results_folder` if given.

    Each sink is verified separately. Malformed records are counted in the input of the first one.
    """
    several = len(resolved.flow.sinks) > 1
    begun_s, sinks = time.monotonic(), []
    with shared_plans(resolved, record) as shared:
        for sink_experiment in resolved.by_sink():
            name = sink_experiment.flow.sink.name
            results_path = results_folder.path / results_file(name, several) if results_folder else None
            of_sink = replace(record, trial_log=record.trial_log.of_sink(name))
            sinks.append(_verify_sink(sink_experiment, of_sink, results_path, shared))
    malformed = malformed_records(record.trial_log.plan, resolved.malformed, _measured_until(record))
    verification = of_all(sinks, record) if several else sinks[0].verification
    return VerificationResult(
        verification.model_copy(update={"malformed": malformed, "seconds": time.monotonic() - begun_s}),
        tuple(sinks),
    )


def _verify_sink(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    results_path: Path | None,
    shared: Mapping[str, str],
) -> SinkDiff:
    """Verifies a flow with one sink; `record` has only that sink's commits.

    `shared` are relations with precomputed operator rows.
    """
    received = ReceivedResults(record)
    truth = BY_SQL if is_independent(resolved.flow) else BY_CLASSES
    with comparison(record) as compared:
        source = RegeneratedInput(record.trial_log.plan, ingest_times(record.trial_log), resolved.columns, shared)
        compare = _compare_slices if resolved.reach_us == 0 else _compare_whole
        note = compare(resolved, record, received, source, compared) or _uneven_batches_note(resolved, record)
        noun = "windows" if WINDOW_START in identity(resolved.flow) and not has_matches(resolved.flow) else "results"
        sentence = outcome(compared.counts, record.owes_all, noun) + (note and f"; {note}")
        rule = rule_of(resolved, record)
        return compared.verified(resolved, received, rule, truth, sentence, results_path, guarantee=resolved.guarantee)


def _uneven_batches_note(resolved: ResolvedExperiment, record: TrialRecord) -> str:
    """A note about batches whose last values cannot be demanded; empty if there are none."""
    if not isinstance(resolved.flow.sink.input, RunningAggregate) or _by_batch(resolved):
        return ""
    times, uneven = cuts(record.trial_log)
    if not uneven:
        return ""
    return (
        f"{uneven} of {uneven + len(times)} batches ended at no common event time, "
        "so their last values are checked at the next batch that did"
    )


def _diff_spec(resolved: ResolvedExperiment, record: TrialRecord) -> DiffSpec:
    flow = resolved.flow
    whole = tuple(schema.columns(resolved.lineage_flow.sink.input))
    if isinstance(flow.sink.input, RunningAggregate):
        required = "true" if record.owes_all else f"event_time < {record.trial_log.committed_until()}"
        due = f"{DUE} AND event_time < {_measured_until(record)}"
        return DiffSpec(identity(flow), whole, required, due, update=True, complete=record.owes_all)
    windowed, held_us = WINDOW_END in whole, _held_us(flow)
    # Held rows wait for the watermark alone, so the least time stands for them.
    held_us = held_us if held_us is None else max(held_us, int(resolved.holds_rows))
    return diff_spec_of(
        record,
        identity(flow),
        whole,
        windowed,
        due_after_early_end(record, windowed, held_us, resolved.watermark_delay_us),
    )


def _measured_until(record: TrialRecord) -> int:
    return min(record.spans.measured_to_us, record.offered_until())


def _held_us(flow: Flow) -> int | None:
    """How long a process holds results until the watermark releases them; None if unknown."""
    has_identity = any(isinstance(node, Process) and node.identity for node in graph.walk(flow.sink.input))
    return reach_us(flow) if has_identity else 0


def _compare_whole(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    received: ReceivedResults,
    source: RegeneratedInput,
    compared: Comparison,
) -> str:
    """A note on how results were compared; empty if there is nothing to add."""
    if _by_batch(resolved):
        _compare_by_batch(resolved, record, received, source, compared)
        return ""
    spec, connection, empty = _diff_spec(resolved, record), compared.connection, _empty_results(resolved)
    if resolved.hides_reads and spec.update:
        bounds = compare_without_batches(resolved, record, received, source, empty.schema, compared)
        return f"the engine does not say what it had read, so last values are compared, and {bounds}"
    connection.register("received", received.table() if not received.empty else empty)
    if spec.update:
        _expect_updates(resolved, record, source, connection)
    else:
        relations = _planned(resolved, record, source, connection)
        connection.execute(f"CREATE TABLE expected AS {oracle_sql(resolved.lineage_flow, relations)}")
    compared.add("expected", "received", spec)
    return ""


def _by_batch(resolved: ResolvedExperiment) -> bool:
    """Whether results are compared by what each batch had read, because its partitions end at different times.

    Then updates and the first row of each key depend on it.
    """
    return resolved.reads_unevenly and any(
        isinstance(node, RunningAggregate) or (isinstance(node, Distinct) and node.window is None)
        for node in graph.operators(resolved.flow)
    )


def _compare_by_batch(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    received: ReceivedResults,
    source: RegeneratedInput,
    compared: Comparison,
) -> None:
    """Updates: each key has one value in each batch that read it. First rows: as for other flows."""
    spec, connection = _diff_spec(resolved, record), compared.connection
    expect_by_batch(resolved.flow, record, source, connection)
    if spec.update:
        due = f"event_time < {_measured_until(record)}"
        ids, columns = (tuple(name for name in names if name != EVENT_TIME) for names in (spec.identity, spec.columns))
        spec = DiffSpec((*ids, BATCH), (*columns, EVENT_TIME, BATCH), "true", due, complete=record.owes_all)
        connection.register(
            "received", received.numbered(_empty_results(resolved).schema).read_all().drop_columns([ARRIVAL])
        )
    else:
        connection.register("received", received.table() if not received.empty else _empty_results(resolved))
    compared.add("expected", "received", spec)


def _planned(
    resolved: ResolvedExperiment, record: TrialRecord, source: RegeneratedInput, connection: Any
) -> dict[str, str]:
    """Relations of all offered events, each readable once, and of precomputed operator rows."""
    relations = source.registered(connection, record.spans.start_us, record.offered_until())
    return computed(connection, resolved.lineage_flow, {**relations, **source.shared})


def _expect_updates(
    resolved: ResolvedExperiment, record: TrialRecord, source: RegeneratedInput, connection: Any
) -> None:
    """Creates `expected`: the right value for each update that was due, and for each other update that came.

    Due is the value of each key at the end of each batch that contained the key. Otherwise an engine that emits fewer
    updates would choose when its latency is measured. If a trial ended early, the events offered after its last batch
    form one more batch, which never came. Other updates need a second pass over the events, of their keys only.
    """
    flow, columns = resolved.lineage_flow, (*resolved.flow.sink.input.keys, EVENT_TIME)  # type: ignore[union-attr]
    times, _ = cuts(record.trial_log)
    if times and not record.owes_all:
        times.append(max(times[-1], _measured_until(record)))
    values = by_spans(flow, _planned(resolved, record, source, connection), span_number(times))
    connection.execute(
        f"CREATE TABLE expected AS SELECT * EXCLUDE ({SPAN}), {SPAN} < {len(times)} AS {DUE} FROM ({values})"
    )
    same = equal_columns(columns, "received", "expected")
    connection.execute(
        f"CREATE TABLE others AS SELECT DISTINCT {quoted(columns)} FROM received ANTI JOIN expected ON {same}"
    )
    if connection.execute("SELECT 1 FROM others LIMIT 1").fetchall():
        values = at_points(flow, _planned(resolved, record, source, connection), "others")
        connection.execute(f"INSERT INTO expected BY NAME SELECT *, false AS {DUE} FROM ({values})")


def _compare_slices(
    resolved: ResolvedExperiment,
    record: TrialRecord,
    received: ReceivedResults,
    source: RegeneratedInput,
    compared: Comparison,
) -> str:
    spec, connection = _diff_spec(resolved, record), compared.connection
    start, end = record.spans.start_us, record.offered_until()
    for low, high in pairwise([FAR_PAST_US, *range(start, max(end, start + 1), SLICE_US), FAR_FUTURE_US]):
        for name, reader in source.readers(max(low, start), max(start, min(high, end))).items():
            connection.register(f"input_{name}", reader.read_all())
        relations = computed(connection, resolved.lineage_flow, {name: f"input_{name}" for name in resolved.columns})
        connection.register("received", received.table(low, high) if not received.empty else _empty_results(resolved))
        compared.add(f"({oracle_sql(resolved.lineage_flow, relations)})", "received", spec)
    return ""


def _empty_results(resolved: ResolvedExperiment) -> pa.Table:
    """An empty result table with the expected columns."""
    kinds = schema.columns(resolved.lineage_flow.sink.input) | {EMISSION_TIME: "bigint"}
    return pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()]).empty_table()


def rule_of(resolved: ResolvedExperiment, record: TrialRecord) -> LatencyRule:
    """The latency definition for results of this flow (one sink)."""
    since, kind = handed_over(record.trial_log, resolved.waits_for_all), kind_of(resolved.flow)
    if kind == "join":
        last_of = partial(_last_in_window, record.trial_log.plan, ingest_times(record.trial_log), resolved.columns)
        ingest_time = (lambda ends_us: last_of(ends_us)[:, 1]) if resolved.experiment.transport in STAMPS else None
        return LatencyRule(kind, lambda ends_us: last_of(ends_us)[:, 0], ingest_time, since)
    return LatencyRule(kind, handed_over=since)


def _last_in_window(plan: Plan, ingest: IngestTimes, streams: Collection[str], ends_us: Int64s) -> Int64s:
    """Event and ingest time of a window join's results by the ends of their windows, (n, 2) (Karimov et al. 2018, IV).

    Each tuple takes the maximum of its stream's window, and a result takes the maximum of both streams: the time of
    the last event before the window's end. 0 if the window ends before the first event.
    """
    unique_us, index = np.unique(ends_us, return_inverse=True)
    times = np.zeros((len(unique_us), 2), np.int64)
    read = [(number, stream.name) for number, stream in enumerate(plan.streams) if stream.name in streams]
    for (number, name), partition in product(read, range(plan.partitions)):
        for row, end_us in enumerate(unique_us.tolist()):
            if (last_us := plan.last_before(number, partition, end_us)) is not None:
                (ingest_us,) = ingest(name, partition, np.array([last_us]))
                times[row] = np.maximum(times[row], (last_us, ingest_us))
    return times[index]


@contextmanager
def shared_plans(resolved: ResolvedExperiment, record: TrialRecord) -> Iterator[dict[str, str]]:
    """Name to relation of the shared operator's rows; empty without one."""
    node = shared_operator(_compared_whole(resolved))
    if node is None:
        yield {}
        return
    shared = with_lineage(Flow((Sink(node, "shared", "append"),)))
    source = RegeneratedInput(record.trial_log.plan, ingest_times(record.trial_log), needed_columns(shared))
    with Scratch("verify") as folder:
        path = Path(folder) / "rows.parquet"
        with database() as connection:
            relations = source.registered(connection, record.spans.start_us, record.offered_until())
            connection.sql(lower(shared.sink.input, relations)).write_parquet(str(path), compression="lz4_raw")
        yield {retained_name(node): f"read_parquet({quoted_path(path)})"}


def _compared_whole(resolved: ResolvedExperiment) -> Flow:
    """The sinks that are compared in one piece; row-by-row sinks are compared in slices."""
    pairs = zip(resolved.flow.sinks, resolved.by_sink(), strict=True)
    return Flow(tuple(sink for sink, each in pairs if each.reach_us != 0))


def shared_operator(flow: Flow) -> Node | None:
    """The operator with only row-by-row operators upstream that saves most steps if sinks share its rows; or None."""
    steps_saved: dict[Node, int] = {}
    for node in graph.operators(flow):
        upstream = list(graph.walk(node))
        if isinstance(node, Select | Where) and all(isinstance(each, Source | Select | Where) for each in upstream):
            users = sum(node in graph.walk(sink.input) for sink in flow.sinks)
            steps_saved[node] = (users - 1) * len(upstream)
    best = max(steps_saved, key=steps_saved.__getitem__, default=None)
    return best if best is not None and steps_saved[best] else None
