"""Spark's own reports on batches, decoded: of streaming queries (`StreamingQueryProgress`, as JSON) and of DStreams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.engines.spark.session.logs import MS

ADD_BATCH = "add_batch"
BATCH_STEPS = {
    "latest_offset": "asking for the latest offset",
    "wal_commit": "writing the plan of the batch",
    "query_planning": "query planning",
    ADD_BATCH: "doing the work (add batch)",
    "commit_offsets": "committing",
}
"""The steps of a micro-batch in order, with their labels in reports."""
_DURATIONS = {
    "latest_offset": "latestOffset", "wal_commit": "walCommit", "query_planning": "queryPlanning",
    ADD_BATCH: "addBatch", "commit_offsets": "commitOffsets",
}  # fmt: skip
_DROPPED = "numRowsDroppedByWatermark"
LATE_ROWS_OF = "late rows of "
"""The beginning of the names of observed metrics with late rows that operators in Python dropped."""
_WHOLE = "triggerExecution"


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


Block = Sequence[int]
"""A received block: partition, Spark's stream, block number, lines."""


@dataclass(frozen=True)
class DStreamProgress(BatchProgress):
    """Also has the batch's received blocks, if they are reported."""

    blocks: Sequence[Block] = ()


def progress_of(query: str, batch: int, info: Any, blocks: Sequence[Block] = ()) -> DStreamProgress:
    """The progress of a finished batch, from Spark's `BatchInfo`. Uses the times of its output operation, because
    Spark's event loop takes the times of the batch late.
    """
    (output,) = info.outputOperationInfos().values()
    start_us, end_us = output.startTime() * MS, output.endTime() * MS
    return DStreamProgress(
        query=query,
        batch=batch,
        start_us=start_us,
        end_us=end_us,
        steps_us={ADD_BATCH: end_us - start_us},
        blocks=blocks,
    )
