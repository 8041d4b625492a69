"""Verification of user jobs without an engine: what arrives is made from the reference, with faults planted in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import EngineError
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_TIME
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType
from streamgauge.diff.compare import types_of
from streamgauge.engines.spi import BatchRequest
from streamgauge.metrics.log.ingest_times import IngestTimes
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check
from streamgauge.results.run import Verification
from streamgauge.verification.regenerated_input import RegeneratedInput
from streamgauge.verification.sink_comparison import comparison, due_after_early_end
from streamgauge.verification.user_job import rows as native_rows
from streamgauge.verification.user_job import truth
from streamgauge.verification.user_job import updates as native_updates
from streamgauge.verification.user_job.truth import verify_user_job

HEAD = """
from streamgauge.jobs import Integer, Key, job, stream

@job(stream("purchases", Key("user_id", 100), Integer("price", 1, 100)), {})
def asked(spark, inputs):
    raise AssertionError("no engine runs here")
"""
ROWS = "SELECT user_id, price / 3 AS third, event_time, ingest_time, event_id FROM purchases"
WINDOWS = """
    SELECT make_timestamp(event_time // 2000000 * 2000000) AS window_start,
           make_timestamp(event_time // 2000000 * 2000000 + 2000000) AS window_end, user_id,
           CAST(sum(price) AS BIGINT) AS spent, max(event_time) AS event_time
    FROM purchases GROUP BY ALL
"""
UPDATES = "SELECT user_id, count(*) AS n, max(event_time) AS event_time FROM purchases GROUP BY user_id"
LATE_US = 1_000_000


@dataclass
class Case:
    """A user job's trial: 2 partitions at 1000 events/s for 20 s, a batch a second."""

    resolved: ResolvedExperiment
    record: TrialRecord
    folder: Path

    def input(self, before_us: int = FAR_FUTURE_US) -> pa.Table:
        source = RegeneratedInput(self.record.trial_log.plan, IngestTimes(self.record.trial_log), self.resolved.columns)
        readers = source.readers(self.record.spans.start_us, min(before_us, self.record.spans.end_us))
        return readers["purchases"].read_all()

    def answer(self, query: str, before_us: int = FAR_FUTURE_US) -> pa.Table:
        """A query's rows over the input."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("purchases", self.input(before_us))
            return connection.sql(query).to_arrow_table()

    def receive(self, *batches: pa.Table) -> None:
        """Let these rows be what the sink committed, batch by batch."""
        trial_log, commits = self.record.trial_log, []
        for commit, rows in zip(trial_log.commits, batches, strict=False):
            path = self.folder / f"{commit.batch}.arrow"
            emitted = pc.add(pc.fill_null(rows.column(EVENT_TIME), 0), LATE_US)
            table = rows.append_column(EMISSION_TIME, emitted.cast(pa.int64()))
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            commits.append(replace(commit, rows=rows.num_rows, paths=[str(path)] if rows.num_rows else []))
        trial_log.commits = commits + trial_log.commits[len(commits) :]

    def verify(self) -> Verification:
        return verify_user_job(self.resolved, self.record, self.folder / "batch.log").verification


@pytest.fixture
def case(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Case]:
    monkeypatch.setattr(sys, "path", list(sys.path))

    def made(arguments: str, **more: Any) -> Case:
        path = tmp_path / "asked_job.py"
        path.write_text(HEAD.replace("{}", arguments))
        load = {"rate": "1k", "duration": "10s", "warmup": "5s", "generators": 2}
        resolved = check(build({"workload": str(path), "load": load, "out": str(tmp_path)}))
        return Case(resolved, make.story().record(**more), tmp_path)

    return made


def faults(found: Verification) -> dict[str, int]:
    assert found.judged, found.sentence
    names = ("missing", "extra", "duplicate", "wrong", "late")
    return {name: getattr(found, name) for name in names if getattr(found, name)}


def test_right_rows_match(case: Callable[..., Case]) -> None:
    """Told apart by event_id; floats may differ in their last places; the reference is independent."""
    asked = case(f'reference="{ROWS}"')
    rows = asked.answer(ROWS)
    asked.receive(rows.set_column(1, "third", pc.multiply(rows.column("third"), 1 + 1e-12)))
    found = asked.verify()
    assert faults(found) == {}
    assert (found.independent, found.expected, found.matched) == (True, 15_000, 15_000)
    assert found.sentence == "15,000 results expected of warm-up and span, all matched (identified by event_id)"


def test_each_planted_fault_is_named(case: Callable[..., Case]) -> None:
    asked = case(f'reference="{ROWS}"')
    rows = asked.answer(ROWS)
    row = pc.equal(rows.column("event_id"), rows.column("event_id")[5000])
    changed = rows.set_column(1, "third", pc.if_else(row, 0.5, rows.column("third")))
    renamed = rows.set_column(4, "event_id", pc.if_else(row, 2**50, rows.column("event_id")))
    stamped = rows.set_column(3, "ingest_time", pc.if_else(row, 1, rows.column("ingest_time")))
    planted = {
        "dropped": ([rows.filter(pc.invert(row))], {"missing": 1}),
        "a batch twice": ([rows, rows.slice(0, 100)], {"duplicate": 100}),
        "changed": ([changed], {"wrong": 1}),
        "never asked": ([renamed], {"missing": 1, "extra": 1}),
        "a false ingest time": ([stamped], {"wrong": 1}),
    }
    for name, (batches, expected) in planted.items():
        asked = case(f'reference="{ROWS}"')
        asked.receive(*batches)
        assert faults(asked.verify()) == expected, name


def test_what_came_after_the_deadline_is_late(case: Callable[..., Case]) -> None:
    asked = case(f'reference="{ROWS}"')
    asked.receive(asked.answer(ROWS))
    asked.record.deadline_us = asked.record.spans.start_us + 15_500_000 + LATE_US - 1_000_000
    assert set(faults(asked.verify())) == {"late"}


def test_windows_need_no_keys_declared(case: Callable[..., Case]) -> None:
    """The first columns that tell all apart are found; a window closed early is a wrong sum, and not two faults."""
    text = WINDOWS.replace("\n", " ")
    asked = case(f'reference="{text}", reach="2s"')
    rows = asked.answer(WINDOWS)
    row = pc.equal(rows.column("spent"), rows.column("spent")[7])
    asked.receive(rows)
    right = asked.verify()
    assert faults(right) == {}
    assert "identified by window_start, window_end, user_id" in right.sentence
    asked.receive(
        rows.set_column(3, "spent", pc.if_else(row, pc.subtract(rows.column("spent"), 1), rows.column("spent")))
    )
    assert set(faults(asked.verify())) == {"wrong"}


def test_whole_rows_are_a_multiset_where_nothing_tells_them_apart(case: Callable[..., Case]) -> None:
    """One of two equal rows lost is one missing; one of them thrice is one too many."""
    query = "SELECT user_id, event_time // 1000000 * 1000000 AS event_time FROM purchases"
    asked = case(f'reference="{query}"')
    rows = asked.answer(query)
    assert len(rows.group_by(["user_id", "event_time"]).aggregate([])) < len(rows)
    asked.receive(rows)
    assert faults(asked.verify()) == {}
    asked.receive(rows.slice(1))
    assert faults(asked.verify()) == {"missing": 1}
    asked.receive(rows, rows.slice(0, 1))
    assert faults(asked.verify()) == {"extra": 1}


def test_nothing_received_is_all_missing(case: Callable[..., Case]) -> None:
    assert faults(case(f'reference="{ROWS}"').verify()) == {"missing": 15_000}


def test_no_table_of_ours_can_have_a_streams_name(case: Callable[..., Case]) -> None:
    """A reference names its streams in the connection that has ours, which begin as no stream does."""
    with comparison(case(f'reference="{ROWS}"').record) as compared:
        names = [name for (name,) in compared.connection.execute("SHOW TABLES").fetchall()]
    assert names
    assert all(name.startswith("_") for name in names)


def test_a_reference_that_fails_on_the_data_leaves_the_answers_unjudged(case: Callable[..., Case]) -> None:
    """It passed over empty tables; a trial is then never called sustained, and nothing is raised."""
    query = "SELECT event_time, CAST('x' || price AS INTEGER) AS n FROM purchases"
    asked = case(f'reference="{query}"')
    asked.receive(asked.answer("SELECT event_time, price AS n FROM purchases"))
    found = asked.verify()
    assert (found.judged, found.right) == (False, False)
    assert "the answers could not be judged" in found.sentence
    assert "Conversion" in found.sentence


def test_a_column_of_another_kind_leaves_the_answers_unjudged(case: Callable[..., Case]) -> None:
    asked = case(f'reference="{ROWS}"')
    rows = asked.answer(ROWS)
    asked.receive(rows.set_column(0, "user_id", rows.column("user_id").cast(pa.string())))
    found = asked.verify()
    assert not found.judged
    assert "user_id" in found.sentence


def updates(asked: Case) -> list[pa.Table]:
    """After each batch, the values of all keys, as a running count gives them."""
    ends = asked.record.trial_log.batch_ends()
    return [asked.answer(UPDATES, ends[commit.query, commit.batch]) for commit in asked.record.trial_log.commits]


def test_updates_are_compared_at_every_batchs_end(case: Callable[..., Case]) -> None:
    """The last values of each key, as long as an answer of the reference is cheap."""
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    asked.receive(*updates(asked))
    found = asked.verify()
    assert faults(found) == {}
    assert found.expected == 20 * 100
    assert "last values of user_id at 20 of 20 batches' ends" in found.sentence


def test_updates_are_compared_at_a_few_ends_where_answers_are_dear(
    case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_updates, "COMPARISON_BUDGET_S", 0.0)
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    asked.receive(*updates(asked))
    found = asked.verify()
    assert faults(found) == {}
    assert found.expected == 4 * 100
    assert "last values of user_id at 4 of 20 batches' ends" in found.sentence


def added_to(rows: pa.Table, more: int, event_time: pa.Array | pa.ChunkedArray | None = None) -> pa.Table:
    """Updates whose count is so much greater, of another event time where that is given."""
    changed = rows.set_column(1, "n", pc.add(rows.column("n"), more))
    return changed if event_time is None else changed.set_column(2, EVENT_TIME, event_time)


def older(rows: pa.Table) -> pa.Table:
    return added_to(rows, 1_000_000, pc.subtract(rows.column(EVENT_TIME), 1))


def timeless(rows: pa.Table) -> pa.Table:
    return added_to(rows, 1_000_000, pa.nulls(len(rows), pa.int64()))


# What comes beside each batch's own rows, before or after them; how many of which fault; what the sentence says.
GARBAGE = [
    ("older by 1 us, after", lambda rows: [rows, older(rows)], {"extra": 2000, "wrong": 2000}, "beside another"),
    ("older by 1 us, before", lambda rows: [older(rows), rows], {"extra": 2000}, "beside another of their key"),
    ("without a time, before", lambda rows: [timeless(rows), rows], {"extra": 2000}, "without an event_time"),
    (
        "without a time, after", lambda rows: [rows, timeless(rows)], {"extra": 2000, "wrong": 2000},
        "2,000 came without an event_time, which the truth never lacks",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("beside", "expected", "said"), [each[1:] for each in GARBAGE], ids=[e[0] for e in GARBAGE])
def test_garbage_beside_each_update_is_extra(
    case: Callable[..., Case], beside: Callable[[pa.Table], list[pa.Table]], expected: dict[str, int], said: str
) -> None:
    """A batch owes one value of a key; the last is the one that arrived last, whatever time it claims."""
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    asked.receive(*[pa.concat_tables(beside(rows)) for rows in updates(asked)])
    found = asked.verify()
    assert faults(found) == expected
    assert said in found.sentence
    assert any(example["fault"] == "extra" for example in found.examples)


def test_a_last_batch_that_takes_values_back_is_wrong(case: Callable[..., Case]) -> None:
    """Alone or beside the right ones: of what a key had before, the last is no longer that with the newest events."""
    for alone in (True, False):
        asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
        rows = updates(asked)
        back = added_to(rows[-6], 7)
        rows[-1] = back if alone else pa.concat_tables([rows[-1], back])
        asked.receive(*rows)
        found = asked.verify()
        assert faults(found) == {"extra": 100, "wrong": 100}
        assert {example["fault"] for example in found.examples} == {"extra", "wrong"}
        assert "before that of their key in an earlier batch" in found.sentence


def test_wrong_updates_on_the_way_are_found(case: Callable[..., Case]) -> None:
    """Right at the four ends that alone were compared once."""
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    rows = [added_to(each, int(number not in (4, 8, 13, 19))) for number, each in enumerate(updates(asked))]
    asked.receive(*rows)
    assert faults(asked.verify()) == {"wrong": 1600}


def test_updates_of_a_window_are_told_apart_by_it_too(case: Callable[..., Case]) -> None:
    text = WINDOWS.replace("\n", " ")
    asked = case(f'mode="update", keys="user_id", reference="{text}"')
    ends = asked.record.trial_log.batch_ends()
    answers = [asked.answer(WINDOWS, ends[commit.query, commit.batch]) for commit in asked.record.trial_log.commits]
    newest = [rows.filter(pc.equal(rows.column(0), pc.max(rows.column(0)))) for rows in answers]
    asked.receive(*newest)
    assert faults(asked.verify()) == {}


@pytest.mark.parametrize(("batch", "least"), [(19, 100), (4, 100), (8, 100), (13, 100)])
def test_a_wrong_update_is_found(case: Callable[..., Case], batch: int, least: int) -> None:
    """The last value, and one on the way that was mended later: early in the measured span, in its middle, or late."""
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    rows = updates(asked)
    rows[batch] = rows[batch].set_column(1, "n", pc.add(rows[batch].column("n"), 1))
    asked.receive(*rows)
    assert faults(asked.verify())["wrong"] == least


@pytest.mark.parametrize(
    ("measured_s", "expected"),
    [((5, 15), [4, 8, 13]), ((5, 16), [4, 9, 14]), ((5, 9), [4, 5, 7]), ((5, 7), [4, 5]), ((5, 6), [4]), ((5, 5), [])],
)
def test_moments_are_spread_over_the_measured_span(make: Any, measured_s: tuple[int, int], expected: list[int]) -> None:
    """Batch n reads up to second n + 1: the first and the last that end in the span, one between, and the very last."""
    record = make.story().record()
    measured_from_us, measured_to_us = (make.start + second * 1_000_000 for second in measured_s)
    spans = TrialSpans(make.start, measured_from_us, measured_to_us, record.spans.end_us)
    record = replace(record, spans=spans)
    inside = [(batch, make.start + (batch + 1) * 1_000_000) for batch in expected]
    assert native_updates.compared_batch_ends(record, 3) == [*inside, (19, None)]


def over_broker(asked: Case, lag_us: int = 300_000) -> list[pa.Table]:
    """Makes it a trial over a broker, in which partition 1 is read less far until the last batch; its updates."""
    experiment = asked.resolved.experiment.model_copy(update={"transport": "kafka"})
    asked.resolved = replace(asked.resolved, experiment=experiment)
    trial_log, tables = asked.record.trial_log, []
    log, plan = trial_log.deliveries[1], trial_log.plan
    log[:] = [
        replace(
            part, from_us=max(part.from_us - lag_us, plan.start_us),
            to_us=part.to_us - (lag_us if part is not log[-1] else 0),
        )
        for part in log
    ]  # fmt: skip
    for batch in range(len(log)):
        ends = [deliveries[batch].to_us for deliveries in trial_log.deliveries]
        counts = [plan.count_before(0, partition, end) for partition, end in enumerate(ends)]
        names = ["user_id", "event_time"]
        read = pa.Table.from_batches([plan.batch(0, each, 0, count, names) for each, count in enumerate(counts)])
        with duckdb.connect() as connection:
            connection.register("purchases", read)
            tables.append(connection.sql(UPDATES).to_arrow_table())
    return tables


def test_updates_over_a_broker_are_of_what_their_batches_had_read(case: Callable[..., Case]) -> None:
    """Of each partition its own prefix, which no event time gives."""
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    tables = over_broker(asked)
    asked.receive(*tables)
    found = asked.verify()
    assert faults(found) == {}
    assert found.expected == 20 * 100
    tables[9] = tables[9].set_column(1, "n", tables[10].column("n"))
    asked.receive(*tables)
    assert faults(asked.verify())["wrong"] >= 90


def test_batches_of_a_broker_are_in_their_own_order(make: Any) -> None:
    """A batch may read only a partition that is behind, and so end before an earlier one."""
    record = make.story().record()
    for log in record.trial_log.deliveries:
        log[7] = replace(log[7], to_us=log[5].to_us)
    ends = native_updates.compared_batch_ends(record, 30, by_batch=True)
    assert ends == [*((batch, batch + 1) for batch in range(19)), (19, None)]


def test_an_update_that_came_twice_is_a_duplicate(case: Callable[..., Case]) -> None:
    asked = case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    rows = updates(asked)
    rows[3] = pa.concat_tables([rows[3], rows[3].slice(0, 1)])
    asked.receive(*rows)
    assert faults(asked.verify()) == {"duplicate": 1}


def test_without_a_reference_the_batch_run_is_the_truth(
    case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the input by file, and answers by file; the verification is not independent and says so."""
    asked = case('reach="0s"')
    asked.receive(asked.answer(ROWS).slice(1))

    @contextmanager
    def in_batch(request: BatchRequest) -> Iterator[Any]:
        def answer(out: Path, before_us: int | None = None) -> Path:
            out.mkdir()
            with duckdb.connect() as connection:
                table = f"'{request.inputs['purchases']}'"
                connection.sql(ROWS.replace("purchases", table)).write_parquet(f"{out}/a.parquet")
            return out

        yield answer

    monkeypatch.setattr("streamgauge.engines.spark.user_job.batch_answer.batch_answer", in_batch)
    found = asked.verify()
    assert faults(found) == {"missing": 1}
    assert (found.independent, found.reference) == (False, truth.by_batch(asked.resolved).reference)


def test_results_without_an_event_time_are_counted_and_in_no_latency(case: Callable[..., Case]) -> None:
    """Rows of an outer join may have none: they leave Spark as 0."""
    query = "SELECT event_id, CASE WHEN price > 50 THEN event_time END AS event_time FROM purchases"
    asked = case(f'reference="{query}"')
    rows = asked.answer(query)
    asked.receive(rows.set_column(1, EVENT_TIME, pc.fill_null(rows.column(EVENT_TIME), 0)))
    found = asked.verify()
    assert faults(found) == {}
    assert "carry no event_time" in found.sentence


def test_a_result_without_an_event_time_may_be_missing(case: Callable[..., Case]) -> None:
    """It is due like any other: null is 0 on both sides, before the end of all that is judged."""
    query = "SELECT event_id, CASE WHEN price > 50 THEN event_time END AS event_time FROM purchases"
    asked = case(f'reference="{query}"')
    rows = asked.answer(query)
    timeless = pc.is_null(rows.column(EVENT_TIME))
    first = pc.and_(timeless, pc.equal(pc.cumulative_sum(timeless.cast(pa.int64())), 1))
    rows = rows.filter(pc.invert(first))
    asked.receive(rows.set_column(1, EVENT_TIME, pc.fill_null(rows.column(EVENT_TIME), 0)))
    assert faults(asked.verify()) == {"missing": 1}


@pytest.mark.parametrize(
    ("commits", "ended", "runs"),
    [(0, "gone", False), (0, "", True), (1, "gone", True)],
    ids=["nothing committed", "every result is due", "a batch was committed"],
)
def test_the_batch_run_is_left_out_only_where_nothing_can_differ(
    case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch, commits: int, ended: str, runs: bool
) -> None:
    """An engine that died before its first batch owes nothing and gave nothing, whatever the truth is."""
    began: list[str] = []

    @contextmanager
    def batch_answer(_: BatchRequest) -> Iterator[Any]:
        began.append("batch")
        raise EngineError("no engine runs here")
        yield

    monkeypatch.setattr("streamgauge.engines.spark.user_job.batch_answer.batch_answer", batch_answer)
    asked = case('reach="0s"', engine_failed=ended)
    trial_log = asked.record.trial_log
    asked.record.trial_log = replace(trial_log, commits=[replace(one, rows=0) for one in trial_log.commits[:commits]])
    verified = verify_user_job(asked.resolved, asked.record, asked.folder / "batch.log")
    assert bool(began) == runs
    assert (verified.verification.sentence == truth.NOTHING_TO_COMPARE) != runs
    assert any(truth.NOTHING_TO_COMPARE in note for note in verified.notes) != runs


def test_of_a_trial_that_ended_early_stateful_results_may_come_later(make: Any) -> None:
    """What shows no window is owed up to the last commit less the job's reach; a window when it has ended."""
    record = make.story().record(engine_failed="gone")
    committed = record.trial_log.committed_until()
    kinds = {"event_id": ValueType(INT), EVENT_TIME: ValueType(INT)}
    windowed = {**kinds, "window_end": ValueType(TIMESTAMP)}
    judged = {
        (reach_us, bool(columns.get("window_end"))): truth._diff_spec(record, reach_us, ("event_id",), columns).required
        for reach_us in (0, 3_000_000)
        for columns in (kinds, windowed)
    }
    assert judged[0, False] == f"event_time < {committed}"
    assert judged[3_000_000, False] == f"event_time < {committed - 3_000_000}"
    assert judged[0, True] == due_after_early_end(record, True)
    assert judged[3_000_000, True] == due_after_early_end(record, True, delay_us=3_000_000)
    assert judged[0, True].startswith("window_end <=")


def test_lineage_tells_no_result_from_another() -> None:
    """Two results of one value may come in another order, so their times are no names; alone they are no help."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE _expected_rows AS SELECT * FROM (VALUES (1, 7, 'a', 1), (2, 8, 'a', 2), (3, 9, 'b', 1))"
            " AS rows(event_time, ingest_time, name, number)"
        )
        columns = types_of(connection, "_expected_rows")
        assert native_rows.identity(connection, columns, ()) == (("name", "number"), True)


def shifted(rows: pa.Table, **by_us: int) -> pa.Table:
    for name, more in by_us.items():
        rows = rows.set_column(rows.column_names.index(name), name, pc.add(rows.column(name), more))
    return rows


def test_columns_that_the_reference_leaves_out_are_named(case: Callable[..., Case]) -> None:
    """In the sentence, and in the notes of the result; where no value is left to compare that is said too."""
    few = "SELECT user_id, price, event_time, ingest_time, event_id FROM purchases"
    asked = case(f'reference="{few}"')
    asked.receive(asked.answer(few.replace("price,", "price, 7 AS seven,")))
    verified = verify_user_job(asked.resolved, asked.record, asked.folder / "batch.log")
    assert faults(verified.verification) == {}
    assert verified.verification.sentence.endswith("; not compared, as the reference leaves them out: seven")
    assert verified.notes == ("answers: not compared, as the reference leaves them out: seven",)
    asked = case('reference="SELECT event_time, event_id FROM purchases"')
    asked.receive(asked.answer(ROWS))
    said = asked.verify().sentence
    assert "leaves them out: user_id, third; so only the presence of results and their event_time were compared" in said


def test_an_ingest_time_that_the_reference_leaves_out_is_checked_by_the_log(case: Callable[..., Case]) -> None:
    """By event_id, where it is there; else it must be a stamp that was given to events of that time."""
    windows = WINDOWS.replace("\n", " ")
    stamped = windows.replace("max(event_time) AS", "max(ingest_time) AS ingest_time, max(event_time) AS")
    few = "SELECT user_id, price, event_time FROM purchases"
    cases = [
        ("SELECT user_id, event_time, event_id FROM purchases", ROWS, "by event_id", 15_000),
        (few, few.replace("price,", "price, ingest_time,"), "by the delivery log", 15_000),
        (windows, stamped, "ingest_time by the delivery log", 800),
    ]
    for query, full, said, count in cases:
        asked = case(f'reference="{query}", reach="2s"')
        rows = asked.answer(full)
        asked.receive(rows)
        right = asked.verify()
        assert faults(right) == {}, query
        assert said in right.sentence
        assert "ingest_time" not in right.sentence.partition("not compared")[2]
        asked = case(f'reference="{query}", reach="2s"')
        asked.receive(shifted(rows, ingest_time=5))
        assert faults(asked.verify())["wrong"] >= count * 0.8, query


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (ROWS, "event_time and ingest_time by event_id"),
        ("SELECT user_id, price, event_time, ingest_time FROM purchases", "event_time and ingest_time by the delivery"),
        ("SELECT user_id, price, event_time FROM purchases", "event_time by the delivery log"),
    ],
)
def test_lineage_that_the_function_moves_in_batch_too_is_wrong(
    case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch, query: str, said: str
) -> None:
    """The batch run shifts it alike, so the plan and the delivery log decide."""
    for shift, kinds in (({}, set()), ({"event_time": 40_007, "ingest_time": 5}, {"wrong"})):
        asked = case('reach="0s"')
        rows = asked.answer(query)
        moved = shifted(rows, **{name: more for name, more in shift.items() if name in rows.column_names})
        monkeypatch.setattr(
            "streamgauge.engines.spark.user_job.batch_answer.batch_answer", lambda _, rows=moved: in_file(rows)
        )
        asked.receive(moved)
        found = asked.verify()
        assert {*faults(found)} == kinds
        assert said in found.sentence
        assert found.wrong in (0, found.expected)


@contextmanager
def in_file(rows: pa.Table) -> Iterator[Any]:
    """A batch run that gives these rows."""

    def answer(out: Path, before_us: int | None = None) -> Path:
        out.mkdir()
        pq.write_table(rows, out / "a.parquet")
        return out

    yield answer


def test_rows_of_keys_that_are_not_unique_are_paired_by_their_times(case: Callable[..., Case]) -> None:
    """Last places of floats, a lost row and a tail that never came part no pairs."""
    query = "SELECT user_id, price * 0.1 AS x, event_time FROM purchases"

    def found(change: Callable[[pa.Table], pa.Table]) -> dict[str, int]:
        asked = case(f'keys="user_id", reference="{query}"')
        asked.receive(change(asked.answer(query)))
        return faults(asked.verify())

    def blurred(rows: pa.Table) -> pa.Table:
        odd = pc.bit_wise_and(rows.column(EVENT_TIME), 1).cast(pa.float64())
        return rows.set_column(1, "x", pc.multiply(rows.column("x"), pc.add(1.0, pc.multiply(1e-12, odd))))

    def without_tail(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.less(rows.column(EVENT_TIME), pc.subtract(pc.max(rows.column(EVENT_TIME)), 4_000_000)))

    assert found(lambda rows: rows) == {}
    assert found(blurred) == {}
    assert found(without_tail) == {}
    assert found(lambda rows: rows.slice(1)) == {"missing": 1}
    assert found(lambda rows: rows.set_column(1, "x", pc.add(rows.column("x"), 1))) == {"wrong": 15_000}


def test_types_that_differ_in_width_alone_are_compared(case: Callable[..., Case]) -> None:
    """Unsigned beside signed, and lists of whole numbers and of floats, the latter within the tolerance."""
    query = (
        "SELECT event_id, event_time, price::UBIGINT AS p, [price::INTEGER] AS ps, [price / 3] AS thirds FROM purchases"
    )
    asked = case(f'reference="{query}"')
    rows = asked.answer(
        query.replace("UBIGINT", "BIGINT").replace("INTEGER", "BIGINT").replace("/ 3", "/ 3.0000000000003")
    )
    asked.receive(rows)
    assert faults(asked.verify()) == {}
    asked = case(f'reference="{query}"')
    asked.receive(asked.answer(query.replace("price / 3]", "price / 3, 1]")))
    assert set(faults(asked.verify())) == {"wrong"}


BORDERS = "make_timestamp(event_time // 2000000 * 2000000)"
SESSION = f"""
    SELECT {{{{'start': {BORDERS}, 'end': {BORDERS} + INTERVAL 2 SECONDS}}}} AS session_window, user_id,
           max(event_time) AS event_time
    FROM purchases GROUP BY ALL
""".replace("{{", "{").replace("}}", "}")
RENAMED = f"""
    SELECT {BORDERS} AS since, {BORDERS} + INTERVAL 2 SECONDS AS until, user_id, max(event_time) AS event_time
    FROM purchases GROUP BY ALL
"""


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (SESSION, "closing delay: not given, as the window is in the column session_window"),
        (RENAMED, "if two of since, until are a window's borders, name them window_start and window_end"),
        (WINDOWS, ""),
        (ROWS, ""),
    ],
)
def test_windows_that_are_not_named_so_get_a_note(case: Callable[..., Case], query: str, said: str) -> None:
    """A missing closing delay without a reason looks as if there were none."""
    asked = case(f'reach="2s", keys="user_id", reference="{" ".join(query.split())}"')
    asked.receive(asked.answer(query))
    notes = verify_user_job(asked.resolved, asked.record, asked.folder / "batch.log").notes
    found = [note for note in notes if note.startswith("closing delay")]
    assert len(found) == bool(said)
    assert all(said in note for note in found)
