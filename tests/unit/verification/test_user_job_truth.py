"""Verification of user jobs without an engine: what arrives is made from the reference, with faults planted in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.errors import EngineError
from streamgauge.core.schema import EVENT_TIME
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import BatchRequest
from streamgauge.verification import user_job_truth
from streamgauge.verification.sink_comparison import due_after_early_end
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.verification.helpers_user_jobs import ROWS, WINDOWS, Case, faults


def test_right_rows_match(job_case: Callable[..., Case]) -> None:
    """Told apart by event_id; floats may differ in their last places; the reference is independent."""
    trial = job_case(f'reference="{ROWS}"')
    rows = trial.answer(ROWS)
    found = trial.verify(rows.set_column(1, "third", pc.multiply(rows.column("third"), 1 + 1e-12)))
    assert faults(found) == {}
    assert (found.independent, found.expected, found.matched) == (True, 15_000, 15_000)
    assert found.sentence == "15,000 results expected of warm-up and span, all matched (identified by event_id)"


def test_each_planted_fault_is_named(job_case: Callable[..., Case]) -> None:
    trial = job_case(f'reference="{ROWS}"')
    rows = trial.answer(ROWS)
    row = pc.equal(rows.column("event_id"), rows.column("event_id")[5000])
    changed = rows.set_column(1, "third", pc.if_else(row, 0.5, rows.column("third")))
    renamed = rows.set_column(4, "event_id", pc.if_else(row, 2**50, rows.column("event_id")))
    stamped = rows.set_column(3, "ingest_time", pc.if_else(row, 1, rows.column("ingest_time")))
    planted = {
        "nothing came": ([], {"missing": 15_000}),
        "dropped": ([rows.filter(pc.invert(row))], {"missing": 1}),
        "a batch twice": ([rows, rows.slice(0, 100)], {"duplicate": 100}),
        "changed": ([changed], {"wrong": 1}),
        "never due": ([renamed], {"missing": 1, "extra": 1}),
        "a false ingest time": ([stamped], {"wrong": 1}),
    }
    for name, (batches, expected) in planted.items():
        trial = job_case(f'reference="{ROWS}"')
        assert faults(trial.verify(*batches)) == expected, name


def test_windows_need_no_keys_declared(job_case: Callable[..., Case]) -> None:
    """The first columns that tell all apart are found; a window closed early is a wrong sum, and not two faults."""
    text = WINDOWS.replace("\n", " ")
    trial = job_case(f'reference="{text}", reach="2s"')
    rows = trial.answer(WINDOWS)
    row = pc.equal(rows.column("spent"), rows.column("spent")[7])
    right = trial.verify(rows)
    assert faults(right) == {}
    assert "identified by window_start, window_end, user_id" in right.sentence
    early = pc.if_else(row, pc.subtract(rows.column("spent"), 1), rows.column("spent"))
    assert set(faults(trial.verify(rows.set_column(3, "spent", early)))) == {"wrong"}


def test_whole_rows_are_a_multiset_where_nothing_tells_them_apart(job_case: Callable[..., Case]) -> None:
    """One of two equal rows lost is one missing; one of them thrice is one too many."""
    query = "SELECT user_id, event_time // 1000000 * 1000000 AS event_time FROM purchases"
    trial = job_case(f'reference="{query}"')
    rows = trial.answer(query)
    assert len(rows.group_by(["user_id", "event_time"]).aggregate([])) < len(rows)
    assert faults(trial.verify(rows)) == {}
    assert faults(trial.verify(rows.slice(1))) == {"missing": 1}
    assert faults(trial.verify(rows, rows.slice(0, 1))) == {"extra": 1}


def test_a_reference_that_fails_on_the_data_leaves_the_answers_unjudged(job_case: Callable[..., Case]) -> None:
    """It passed over empty tables; a trial is then never called sustained, and nothing is raised."""
    query = "SELECT event_time, CAST('x' || price AS INTEGER) AS n FROM purchases"
    trial = job_case(f'reference="{query}"')
    found = trial.verify(trial.answer("SELECT event_time, price AS n FROM purchases"))
    assert (found.judged, found.right) == (False, False)
    assert "the answers could not be judged" in found.sentence
    assert "Conversion" in found.sentence


def test_without_a_reference_the_batch_run_is_the_truth(
    job_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the input by file, and answers by file; the verification is not independent and says so."""
    trial = job_case('reach="0s"')
    trial.receive(trial.answer(ROWS).slice(1))

    @contextmanager
    def in_batch(request: BatchRequest) -> Iterator[Any]:
        def answer(out: Path, before_us: int | None = None) -> Path:
            out.mkdir()
            with duckdb_session() as connection:
                table = f"'{request.inputs['purchases']}'"
                connection.sql(ROWS.replace("purchases", table)).write_parquet(f"{out}/a.parquet")
            return out

        yield answer

    monkeypatch.setattr("streamgauge.engines.spark.batch_answer.batch_answer", in_batch)
    found = trial.verify()
    assert faults(found) == {"missing": 1}
    assert (found.independent, found.reference) == (False, entry(trial.resolved.engine.name).batch_truth)


def test_results_without_an_event_time_are_counted_and_in_no_latency(job_case: Callable[..., Case]) -> None:
    """Rows of an outer join may have none: they leave Spark as 0."""
    query = "SELECT event_id, CASE WHEN price > 50 THEN event_time END AS event_time FROM purchases"
    trial = job_case(f'reference="{query}"')
    rows = trial.answer(query)
    found = trial.verify(rows.set_column(1, EVENT_TIME, pc.fill_null(rows.column(EVENT_TIME), 0)))
    assert faults(found) == {}
    assert "carry no event_time" in found.sentence


def test_a_result_without_an_event_time_may_be_missing(job_case: Callable[..., Case]) -> None:
    """It is due like any other: null is 0 on both sides, before the end of all that is judged."""
    query = "SELECT event_id, CASE WHEN price > 50 THEN event_time END AS event_time FROM purchases"
    trial = job_case(f'reference="{query}"')
    rows = trial.answer(query)
    timeless = pc.is_null(rows.column(EVENT_TIME))
    first = pc.and_(timeless, pc.equal(pc.cumulative_sum(timeless.cast(pa.int64())), 1))
    rows = rows.filter(pc.invert(first))
    found = trial.verify(rows.set_column(1, EVENT_TIME, pc.fill_null(rows.column(EVENT_TIME), 0)))
    assert faults(found) == {"missing": 1}


@pytest.mark.parametrize(
    ("commits", "ended", "runs"),
    [(0, "gone", False), (0, "", True), (1, "gone", True)],
    ids=["nothing committed", "every result is due", "a batch was committed"],
)
def test_the_batch_run_is_left_out_only_where_nothing_can_differ(
    job_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch, commits: int, ended: str, runs: bool
) -> None:
    """An engine that died before its first batch owes nothing and gave nothing, whatever the truth is."""
    began: list[str] = []

    @contextmanager
    def batch_answer(_: BatchRequest) -> Iterator[Any]:
        began.append("batch")
        raise EngineError("no engine runs here")
        yield

    monkeypatch.setattr("streamgauge.engines.spark.batch_answer.batch_answer", batch_answer)
    trial = job_case('reach="0s"', engine_failed=ended)
    trial_log = trial.record.trial_log
    trial.record.trial_log = replace(trial_log, commits=[replace(one, rows=0) for one in trial_log.commits[:commits]])
    verified = trial.result()
    assert bool(began) == runs
    assert (verified.verification.sentence == user_job_truth.NOTHING_TO_COMPARE) != runs
    assert any(user_job_truth.NOTHING_TO_COMPARE in note for note in verified.notes) != runs


def test_of_a_trial_that_ended_early_stateful_results_may_come_later(make: Any) -> None:
    """What shows no window is owed up to the last commit less the job's reach; a window when it has ended."""
    record = make.story().record(engine_failed="gone")
    committed = record.trial_log.committed_until()
    kinds = {"event_id": ValueType(INT), EVENT_TIME: ValueType(INT)}
    windowed = {**kinds, "window_end": ValueType(TIMESTAMP)}
    judged = {
        (reach_us, bool(columns.get("window_end"))): user_job_truth._diff_spec(
            record, reach_us, ("event_id",), columns
        ).required
        for reach_us in (0, 3_000_000)
        for columns in (kinds, windowed)
    }
    assert judged[0, False] == f"event_time < {committed}"
    assert judged[3_000_000, False] == f"event_time < {committed - 3_000_000}"
    assert judged[0, True] == due_after_early_end(record, True)
    assert judged[3_000_000, True] == due_after_early_end(record, True, delay_us=3_000_000)
    assert judged[0, True].startswith("window_end <=")


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
    ("query", "message"),
    [
        (SESSION, "closing delay: not given, as the window is in the column session_window"),
        (RENAMED, "if two of since, until are a window's borders, name them window_start and window_end"),
        (WINDOWS, ""),
        (ROWS, ""),
    ],
)
def test_windows_that_are_not_named_so_get_a_note(job_case: Callable[..., Case], query: str, message: str) -> None:
    """A missing closing delay without a reason looks as if there were none."""
    trial = job_case(f'reach="2s", keys="user_id", reference="{" ".join(query.split())}"')
    notes = trial.result(trial.answer(query)).notes
    found = [note for note in notes if note.startswith("closing delay")]
    assert len(found) == bool(message)
    assert all(message in note for note in found)
    if query == RENAMED:  # without a reach there are no windows
        trial = job_case(f'reach="0s", keys="user_id", reference="{" ".join(query.split())}"')
        notes = trial.result(trial.answer(query)).notes
        assert not any(note.startswith("closing delay") for note in notes)
