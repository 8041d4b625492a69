"""Spark's progress reports, decoded."""

from __future__ import annotations

from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.engines.spark.session.progress import batch_progress

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
