"""Spark's progress report of a streaming query (`StreamingQueryProgress`, as JSON), decoded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from streamgauge.core import engine_reports as steps
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.engines.spark.observe.event_log import MS

_DURATIONS = {
    steps.LATEST_OFFSET: "latestOffset", steps.WAL_COMMIT: "walCommit", steps.QUERY_PLANNING: "queryPlanning",
    steps.ADD_BATCH: "addBatch", steps.COMMIT_OFFSETS: "commitOffsets",
}  # fmt: skip
_DROPPED = "numRowsDroppedByWatermark"
_WHOLE = "triggerExecution"
LATE_ROWS_OF = "late rows of "
"""The beginning of the names of observed metrics with late rows that operators in Python dropped."""


def batch_progress(report: Mapping[str, Any]) -> BatchProgress:
    """The batch of one report."""
    start_us = round(datetime.fromisoformat(report["timestamp"]).timestamp() * US)
    took_us = {name: round(MS * took_ms) for name, took_ms in report.get("durationMs", {}).items()}
    return BatchProgress(
        query=report.get("name") or "",
        batch=report["batchId"],
        start_us=start_us,
        end_us=start_us + took_us[_WHOLE] if _WHOLE in took_us else None,
        steps_us={step: took_us[name] for step, name in _DURATIONS.items() if name in took_us},
        late_rows=_late_rows(report),
    )


def _late_rows(report: Mapping[str, Any]) -> int | None:
    """The rows that operators dropped as late; None if no operator of the query has a state."""
    operators = report.get("stateOperators")
    if not operators:
        return None
    observed = (report.get("observedMetrics") or {}).items()
    by_python = [row for name, row in observed if name.startswith(LATE_ROWS_OF)]
    return sum(each.get(_DROPPED, 0) for each in operators) + sum(sum(row.values()) for row in by_python)
