"""The table of the engine's batches."""

from __future__ import annotations

from typing import Any

from streamgauge.artifacts.tables import BATCHES
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.metrics.summary.engine_batches import batches_table

START = 1_700_000_000 * US


def progress(batch: int, second: int, **took_us: int) -> BatchProgress:
    start_us = START + second * US + 250_000
    return BatchProgress("", batch, start_us, start_us + 800_000, {"add_batch": 600_000, **took_us})


def test_batches_are_read_from_the_engines_progress(make: Any) -> None:
    """One row a batch, in order, its steps as the engine says; steps that it does not give are null."""
    table = batches_table([progress(1, 2), progress(0, 1, wal_commit=30_000)], START, make.story().trial_log())
    assert table.schema == BATCHES
    rows = table.to_pylist()
    assert [row["batch_id"] for row in rows] == [0, 1]
    assert rows[0]["start_us"] == START + US + 250_000
    assert rows[0]["end_us"] == rows[0]["start_us"] + 800_000
    assert (rows[0]["add_batch_ms"], rows[0]["wal_commit_ms"], rows[1]["wal_commit_ms"]) == (600, 30, None)
    assert [row["trigger_ms"] for row in rows] == [800, 800]


def test_a_batch_without_an_end_has_no_duration(make: Any) -> None:
    """Both are null, so that reports leave it out."""
    (row,) = batches_table([BatchProgress("q", 1, START)], START, make.story().trial_log()).to_pylist()
    assert (row["query"], row["end_us"], row["trigger_ms"]) == ("q", None, None)


def test_batches_of_earlier_trials_are_left_out(make: Any) -> None:
    """A warm engine's progress goes back further than this trial."""
    table = batches_table([progress(0, 0), progress(1, 5)], START + 3 * US, make.story().trial_log())
    assert table.column("batch_id").to_pylist() == [1]


def test_a_batch_told_twice_is_one(make: Any) -> None:
    """An engine may repeat a batch's number while it idles; the last report counts."""
    table = batches_table([progress(3, 1, add_batch=9000), progress(3, 2)], START, make.story().trial_log())
    assert table.column("add_batch_ms").to_pylist() == [600]


def test_a_batchs_events_are_the_drivers_count(make: Any) -> None:
    """Whatever the engine calls an input row; a batch that nothing was delivered for has none."""
    table = batches_table([progress(2, 1), progress(99, 2)], START, make.story().trial_log())
    assert table.column("rows").to_pylist() == [1000, 0]
