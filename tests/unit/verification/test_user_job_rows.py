"""Times and ids of user jobs' results: compared where the reference has them, else by the delivery log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.core.schema import EVENT_TIME
from streamgauge.diff.compare import types_of
from streamgauge.verification import user_job_rows
from tests.unit.verification.helpers_user_jobs import ROWS, WINDOWS, Case, faults


def test_lineage_tells_no_result_from_another() -> None:
    """Two results of one value may come in another order, so their times are no names; alone they are no help."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE _expected_rows AS SELECT * FROM (VALUES (1, 7, 'a', 1), (2, 8, 'a', 2), (3, 9, 'b', 1))"
            " AS rows(event_time, ingest_time, name, number)"
        )
        columns = types_of(connection, "_expected_rows")
        assert user_job_rows.identity(connection, columns, ()) == (("name", "number"), True)


def shifted(rows: pa.Table, **by_us: int) -> pa.Table:
    for name, more in by_us.items():
        rows = rows.set_column(rows.column_names.index(name), name, pc.add(rows.column(name), more))
    return rows


def test_columns_that_the_reference_leaves_out_are_named(job_case: Callable[..., Case]) -> None:
    """In the sentence, and in the notes of the result; where no value is left to compare that is said too."""
    few = "SELECT user_id, price, event_time, ingest_time, event_id FROM purchases"
    trial = job_case(f'reference="{few}"')
    verified = trial.result(trial.answer(few.replace("price,", "price, 7 AS seven,")))
    assert faults(verified.verification) == {}
    assert verified.verification.sentence.endswith("; not compared, as the reference leaves them out: seven")
    assert verified.notes == ("answers: not compared, as the reference leaves them out: seven",)
    trial = job_case('reference="SELECT event_time, event_id FROM purchases"')
    message = trial.verify(trial.answer(ROWS)).sentence
    assert (
        "leaves them out: user_id, third; so only the presence of results and their event_time were compared" in message
    )


def test_an_ingest_time_that_the_reference_leaves_out_is_checked_by_the_log(job_case: Callable[..., Case]) -> None:
    """By event_id, where it is there; else it must be a stamp that was given to events of that time."""
    windows = WINDOWS.replace("\n", " ")
    stamped = windows.replace("max(event_time) AS", "max(ingest_time) AS ingest_time, max(event_time) AS")
    few = "SELECT user_id, price, event_time FROM purchases"
    cases = [
        ("SELECT user_id, event_time, event_id FROM purchases", ROWS, "by event_id", 15_000),
        (few, few.replace("price,", "price, ingest_time,"), "by the delivery log", 15_000),
        (windows, stamped, "ingest_time by the delivery log", 800),
    ]
    for query, full, message, count in cases:
        trial = job_case(f'reference="{query}", reach="2s"')
        rows = trial.answer(full)
        right = trial.verify(rows)
        assert faults(right) == {}, query
        assert message in right.sentence
        assert "ingest_time" not in right.sentence.partition("not compared")[2]
        trial = job_case(f'reference="{query}", reach="2s"')
        assert faults(trial.verify(shifted(rows, ingest_time=5)))["wrong"] >= count * 0.8, query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (ROWS, "event_time and ingest_time by event_id"),
        ("SELECT user_id, price, event_time, ingest_time FROM purchases", "event_time and ingest_time by the delivery"),
        ("SELECT user_id, price, event_time FROM purchases", "event_time by the delivery log"),
    ],
)
def test_lineage_that_the_function_moves_in_batch_too_is_wrong(
    job_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch, query: str, message: str
) -> None:
    """The batch run shifts it alike, so the plan and the delivery log decide."""
    for shift, kinds in (({}, set()), ({"event_time": 40_007, "ingest_time": 5}, {"wrong"})):
        trial = job_case('reach="0s"')
        rows = trial.answer(query)
        moved = shifted(rows, **{name: more for name, more in shift.items() if name in rows.column_names})
        monkeypatch.setattr("streamgauge.engines.spark.batch_answer.batch_answer", lambda _, rows=moved: in_file(rows))
        found = trial.verify(moved)
        assert {*faults(found)} == kinds
        assert message in found.sentence
        assert found.wrong in (0, found.expected)


@contextmanager
def in_file(rows: pa.Table) -> Iterator[Any]:
    """A batch run that gives these rows."""

    def answer(out: Path, before_us: int | None = None) -> Path:
        out.mkdir()
        pq.write_table(rows, out / "a.parquet")
        return out

    yield answer


def test_rows_of_keys_that_are_not_unique_are_paired_by_their_times(job_case: Callable[..., Case]) -> None:
    """Last places of floats, a lost row and a tail that never came part no pairs."""
    query = "SELECT user_id, price * 0.1 AS x, event_time FROM purchases"

    def found(change: Callable[[pa.Table], pa.Table]) -> dict[str, int]:
        trial = job_case(f'keys="user_id", reference="{query}"')
        return faults(trial.verify(change(trial.answer(query))))

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
