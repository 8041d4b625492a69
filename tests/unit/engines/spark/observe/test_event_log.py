"""Spark's event log: a batch's jobs and tasks, and nothing of jobs that are of no batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamgauge.engines.spark.observe.event_log import BatchWork, work


def job(stages: list[int], batch: str | None) -> dict[str, Any]:
    properties = {} if batch is None else {"streaming.sql.batchId": batch}
    return {"Event": "SparkListenerJobStart", "Stage IDs": stages, "Properties": properties}


def task(stage: int, launched_ms: int, finished_ms: int, ran_ms: int) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd", "Stage ID": stage,
        "Task Info": {"Launch Time": launched_ms, "Finish Time": finished_ms},
        "Task Metrics": {"Executor Run Time": ran_ms},
    }  # fmt: skip


def test_a_batch_is_its_jobs_together(tmp_path: Path) -> None:
    """Of two stages and two jobs; a job of no batch, other events, and half a line are passed over."""
    events = [
        {"Event": "SparkListenerApplicationStart"},
        job([1, 2], "5"), task(1, 110, 130, 15), task(2, 131, 140, 8),
        job([3], "5"), task(3, 151, 160, 7),
        job([4], None), task(4, 171, 180, 9),
        job([5], "6"), task(5, 202, 210, 4),
    ]  # fmt: skip
    (tmp_path / "local-1").write_text("\n".join(map(json.dumps, events)) + '\n{"Event": "SparkListenerTaskEnd", "Stage')
    assert work(tmp_path) == {
        5: BatchWork(5, 110_000, 160_000, 30_000),
        6: BatchWork(6, 202_000, 210_000, 4_000),
    }
