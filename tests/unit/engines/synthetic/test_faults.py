"""Planted faults: each changes what it says it changes, and counts it."""

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.engines.synthetic.faults import FAR_ID, Faults


def _rows(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({
        "user": pa.array(ids, pa.int32()),
        "price": pa.array([5] * count, pa.int32()),
        "event_time": pa.array([1000 + i for i in ids], pa.int64()),
        "ingest_time": pa.array([2000 + i for i in ids], pa.int64()),
        "event_id": pa.array(ids, pa.int64()),
    })  # fmt: skip


def _ids(table: pa.Table) -> list[int]:
    return sorted(table.column("event_id").to_pylist())


def test_every_nth_row_over_all_batches_is_hit() -> None:
    """Counting goes on from batch to batch: of 10 rows in two batches, every third is the 3rd, 6th and 9th."""
    faults = Faults("drop", 3)
    assert [*_ids(faults.apply(_rows(0, 4))), *_ids(faults.apply(_rows(4, 6)))] == [0, 1, 3, 4, 6, 7, 9]
    assert faults.planted_us == [1002, 1005, 1008]


@pytest.mark.parametrize(
    ("fault", "every", "ids"), [("double", 4, [0, 1, 2, 3, 3, 4]), ("invent", 5, [0, 1, 2, 3, 4, 4 + FAR_ID])]
)
def test_a_row_too_many_is_there_twice_or_has_an_id_that_no_event_has(fault: Any, every: int, ids: list[int]) -> None:
    """All true rows are still there."""
    assert _ids(Faults(fault, every).apply(_rows(0, 5))) == ids


def test_altered_rows_keep_their_identity() -> None:
    """One value differs by one; ids and stamps stay."""
    got = Faults("alter", 4).apply(_rows(0, 5)).sort_by("event_id")
    assert got.column("price").to_pylist() == [5, 5, 5, 6, 5]
    assert got.drop_columns("price").equals(_rows(0, 5).drop_columns("price"))


def test_keys_are_never_altered() -> None:
    """What identifies a window's result is left alone even where it is the last number."""
    got = Faults("alter", 1, keys=("price",)).apply(_rows(0, 1))
    assert (got.column("price")[0].as_py(), got.column("user")[0].as_py()) == (5, 1)


def test_untimed_rows_have_no_event_time_and_are_else_as_they_were() -> None:
    """What was planted is known by the time that the row had."""
    faults = Faults("untime", 4)
    got = faults.apply(_rows(0, 5)).sort_by("event_id")
    assert got.column("event_time").to_pylist() == [1000, 1001, 1002, None, 1004]
    assert got.drop_columns("event_time").equals(_rows(0, 5).drop_columns("event_time"))
    assert faults.planted_us == [1003]


def test_an_invented_window_starts_where_none_does() -> None:
    """Windows have no event id; their start is moved by a microsecond."""
    starts = pa.array([0, 1_000_000], pa.timestamp("us", "UTC"))
    got = Faults("invent", 2).apply(_rows(0, 2).drop_columns("event_id").append_column("window_start", starts))
    assert got.column("window_start").cast(pa.int64()).to_pylist() == [0, 1_000_000, 1_000_001]


def test_late_rows_are_held() -> None:
    """They are missing first, and come whole later."""
    faults = Faults("late", 2)
    assert _ids(faults.apply(_rows(0, 4))) == [0, 2]
    assert _ids(*faults.held) == [1, 3]
