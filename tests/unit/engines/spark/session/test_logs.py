"""Spark's logs: tasks by batch in the event log, and reports of blocks in the block log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamgauge.engines.spark.session.logs import (
    BLOCK_LOG_NEEDS,
    BLOCKS_REPORTED,
    JAVA,
    BatchWork,
    block_log_options,
    blocks_stored,
    conflicts,
    work,
)


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


def test_a_block_was_told_of_at_the_time_of_its_line(tmp_path: Path) -> None:
    """As Spark 4.3 writes it; half a line, and lines of anything else, are passed over."""
    lines = [
        "1795565482616 Stream 0 received block input-0-1795565482500",
        "1795565482618 Stream 1 received block input-1-1795565482500",
        "1795565482700 Deleting batches: 1795565482000 ms",
        "1795565482764 Stream 0 received bl",
    ]
    (tmp_path / "blocks.log").write_text("\n".join(lines))
    assert blocks_stored(tmp_path) == {(0, 1795565482500): 1795565482616000, (1, 1795565482500): 1795565482618000}


def test_spark_is_told_where_it_finds_how(tmp_path: Path) -> None:
    """Beside its own configuration, in the folder that takes the log."""
    asked = block_log_options(tmp_path)
    assert asked[BLOCKS_REPORTED]
    own, ours = asked[JAVA].removeprefix("-Dlog4j2.configurationFile=").split(",")
    assert own.endswith("log4j2-defaults.properties")
    how = Path(ours.removeprefix("file://")).read_text()
    assert f"appender.blocks.fileName = {tmp_path / 'blocks.log'}" in how


def test_what_it_sets_is_not_to_be_given(tmp_path: Path) -> None:
    """Each by name, and nothing else."""
    given = {**block_log_options(tmp_path), "spark.driver.memory": "1g"}
    assert {problem.setting for problem in conflicts(given, BLOCK_LOG_NEEDS)} == {
        f"option {BLOCKS_REPORTED}",
        f"option {JAVA}",
    }
