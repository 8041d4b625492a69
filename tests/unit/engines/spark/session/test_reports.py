"""What Spark says: tasks by batch in the event log, reports of blocks in the block log, and progress reports."""

import json
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.engines.spark.session.reports import (
    BLOCK_LOG_NEEDS,
    BLOCKS_REPORTED,
    JAVA,
    BatchWork,
    batch_progress,
    block_log_options,
    blocks_stored,
    conflicts,
    with_scheduling_delays,
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
        5: BatchWork(110_000, 160_000, 30_000),
        6: BatchWork(202_000, 210_000, 4_000),
    }


def test_a_block_was_reported_at_the_time_of_its_line(tmp_path: Path) -> None:
    """As Spark 4.3 writes it; half a line, and lines of anything else, are passed over."""
    lines = [
        "1795565482616 Stream 0 received block input-0-1795565482500",
        "1795565482618 Stream 1 received block input-1-1795565482500",
        "1795565482700 Deleting batches: 1795565482000 ms",
        "1795565482764 Stream 0 received bl",
    ]
    (tmp_path / "blocks.log").write_text("\n".join(lines))
    assert blocks_stored(tmp_path) == {(0, 1795565482500): 1795565482616000, (1, 1795565482500): 1795565482618000}


def test_spark_gets_the_path_of_the_compiler_options(tmp_path: Path) -> None:
    """Beside its own configuration, in the folder that takes the log."""
    requested = block_log_options(tmp_path)
    assert requested[BLOCKS_REPORTED]
    own, ours = requested[JAVA].removeprefix("-Dlog4j2.configurationFile=").split(",")
    assert own.endswith("log4j2-defaults.properties")
    assert f"appender.blocks.fileName = {tmp_path / 'blocks.log'}" in Path(ours.removeprefix("file://")).read_text()


def test_what_it_sets_is_not_to_be_given(tmp_path: Path) -> None:
    """Each by name, and nothing else."""
    given = {**block_log_options(tmp_path), "spark.driver.memory": "1g"}
    assert {problem.setting for problem in conflicts(given, BLOCK_LOG_NEEDS)} == {
        f"option {BLOCKS_REPORTED}",
        f"option {JAVA}",
    }


START_US = 1_700_000_000 * US


def report(**fields: Any) -> dict[str, Any]:
    """As Spark writes it, without what is not read."""
    return {"batchId": 7, "timestamp": "2023-11-14T22:13:20.250Z", "numInputRows": 1, **fields}


def test_a_report_is_decoded() -> None:
    """Times become microseconds; durations that have no step are left out."""
    took_ms = {
        "latestOffset": 1, "getBatch": 99, "queryPlanning": 3, "walCommit": 2, "addBatch": 600, "commitOffsets": 4,
        "triggerExecution": 800,
    }  # fmt: skip
    assert batch_progress(report(name="purchases", durationMs=took_ms)) == BatchProgress(
        query="purchases",
        batch=7,
        start_us=START_US + 250_000,
        end_us=START_US + 1_050_000,
        steps_us={
            "latest_offset": 1000, "wal_commit": 2000, "query_planning": 3000, "add_batch": 600_000,
            "commit_offsets": 4000,
        },
    )  # fmt: skip


def test_rows_that_operators_dropped_as_late_are_summed() -> None:
    """A query without state reports no operators, and so no such rows."""
    operators = [{"operatorName": "dedupe", "numRowsDroppedByWatermark": 3}, {"numRowsDroppedByWatermark": 4}, {}]
    assert batch_progress(report(stateOperators=operators)).late_rows == 7
    assert batch_progress(report(stateOperators=[])).late_rows is None


def test_late_rows_of_operators_in_python_are_added() -> None:
    """They hold rows themselves, so Spark drops none of them. Other observed metrics are not rows."""
    counted = {"late rows of average, 1": {"_late": 5}, "late rows of sum, 2": {"_late": 0}}
    observed = counted | {"rows of average": {"n": 9}}
    operators = [{"numRowsDroppedByWatermark": 2}]
    assert batch_progress(report(stateOperators=operators, observedMetrics=observed)).late_rows == 7


def test_a_report_may_lack_name_and_durations() -> None:
    """The only query has no name (null), and an idle one no durations."""
    assert batch_progress(report(name=None)) == BatchProgress("", 7, START_US + 250_000)
    idle = batch_progress(report(durationMs={"latestOffset": 5, "triggerExecution": 5}))
    assert (idle.end_us, idle.steps_us) == (START_US + 255_000, {"latest_offset": 5000})


def test_a_batch_is_as_late_as_its_trigger() -> None:
    """Triggers are at whole seconds. Where a batch ran past the next one, it counts; an idle time does not."""
    spans_ms = ((3, 500), (1002, 2400), (2410, 4500), (4510, 4900), (8001, 8400))
    batches = [BatchProgress("", n, start * 1000, end * 1000) for n, (start, end) in enumerate(spans_ms)]
    delayed = with_scheduling_delays(batches, US)
    assert [one.waited_us for one in delayed] == [3_000, 2_000, 410_000, 1_510_000, 1_000]
