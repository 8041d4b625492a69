"""What Spark's event log says of a query's batches: when their tasks ran.

Spark writes the log by itself, to the millisecond, outside of the query. Nothing of it decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MS = 1000
"""Microseconds."""
_BATCH, _JOB = "streaming.sql.batchId", "SparkListenerJobStart"
_END = "SparkListenerTaskEnd"


def options(folder: Path) -> dict[str, str]:
    """Options of Spark's by which it writes its log into a folder: one file, as it goes."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


@dataclass(frozen=True)
class BatchWork:
    """A batch's tasks: when the first was launched and the last one finished, microseconds since the epoch; how long
    they ran, all together.
    """

    batch: int
    launched_us: int
    finished_us: int
    run_us: int


def work(folder: Path) -> dict[int, BatchWork]:
    """Of each batch that has run a task; of a log with one query."""
    found: dict[int, BatchWork] = {}
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf-8") as lines:
            for one in _work_in(_events(lines)):
                found[one.batch] = _together(found[one.batch], one) if one.batch in found else one
    return found


def _events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Those that are wanted; the last line of a Spark that was ended may be half a one."""
    for line in lines:
        if _JOB in line or _END in line:
            with suppress(ValueError):
                yield json.loads(line)


def _work_in(events: Iterable[dict[str, Any]]) -> Iterator[BatchWork]:
    """A task's work each."""
    batches: dict[int, int] = {}
    for event in events:
        if event["Event"] == _JOB:
            batch = (event.get("Properties") or {}).get(_BATCH)
            if batch is not None:
                batches |= dict.fromkeys(event["Stage IDs"], int(batch))
        elif event["Event"] == _END and event["Stage ID"] in batches:
            task, spent = event["Task Info"], event.get("Task Metrics") or {}
            ran_us = spent.get("Executor Run Time", 0) * MS
            yield BatchWork(batches[event["Stage ID"]], task["Launch Time"] * MS, task["Finish Time"] * MS, ran_us)


def _together(one: BatchWork, other: BatchWork) -> BatchWork:
    return BatchWork(
        one.batch,
        min(one.launched_us, other.launched_us),
        max(one.finished_us, other.finished_us),
        one.run_us + other.run_us,
    )
