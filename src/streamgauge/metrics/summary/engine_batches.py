"""The table of the engine's batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from streamgauge.artifacts.tables import BATCHES
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.metrics.log.trial_log import Batch, TrialLog


def batches_table(
    progress: Iterable[BatchProgress], since_us: int, trial_log: TrialLog, counted: bool = True
) -> pa.Table:
    """The table of the engine's batches from its own report, without those of earlier trials.

    The driver counts the events of a batch, because an engine's input row may be a bundle of them. The count is unknown
    (`counted` is false) if the engine's batches are not those that the recorder commits.
    """
    events: dict[Batch, int] = defaultdict(int)
    for part in trial_log.all_deliveries():
        events[part.query, part.batch] += part.events
    latest = {(one.query, one.batch): one for one in progress if one.start_us >= since_us}
    rows = [_batch_row(latest[key], events.get(key, 0) if counted else None) for key in sorted(latest)]
    return pa.Table.from_pylist(rows, schema=BATCHES)


def _batch_row(progress: BatchProgress, events: int | None) -> dict[str, Any]:
    """Steps that the engine does not report become null."""
    return {
        "batch_id": progress.batch,
        "query": progress.query,
        "start_us": progress.start_us,
        "end_us": progress.end_us,
        "rows": events,
        "trigger_ms": None if progress.end_us is None else (progress.end_us - progress.start_us) / 1000,
        **{f"{step}_ms": took_us / 1000 for step, took_us in progress.steps_us.items()},
    }
