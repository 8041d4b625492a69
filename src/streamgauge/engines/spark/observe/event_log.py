"""Reads from Spark's event log when the tasks of each batch ran (to the millisecond). No verdict depends on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.core.errors import Problem

MS = 1000
"""Microseconds."""
BATCH_ID, BATCH_TIME = "streaming.sql.batchId", "spark.streaming.internal.batchTime"
"""Job properties that identify its batch: by number (set for queries and by our DStreams), and for DStreams by time
(ms)."""
_JOB, _END = "SparkListenerJobStart", "SparkListenerTaskEnd"


def options(folder: Path) -> dict[str, str]:
    """Spark options to write its event log into a folder as one file."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def conflicts(user_options: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of user options that the event log needs."""
    for name in options(Path()):
        if name in user_options:
            yield Problem(f"option {name}", "is set by anatomy itself", user_options[name], "leave it out")


@dataclass(frozen=True)
class BatchWork:
    """A batch's tasks: first launch, last finish (microseconds since the epoch), and total run time."""

    batch: int
    launched_us: int
    finished_us: int
    run_us: int


def work(folder: Path) -> dict[int, BatchWork]:
    """Batch number to its work. The log has one query, or DStreams."""
    works: dict[int, BatchWork] = {}
    for one in _work_in(_events(folder, (_JOB, _END))):
        works[one.batch] = _together(works[one.batch], one) if one.batch in works else one
    return works


def batch_times(folder: Path) -> dict[int, int]:
    """DStream batch number to its batch time, microseconds since the epoch."""
    times: dict[int, int] = {}
    for event in _events(folder, (_JOB,)):
        properties = event.get("Properties") or {}
        if BATCH_ID in properties and BATCH_TIME in properties:
            times[int(properties[BATCH_ID])] = int(properties[BATCH_TIME]) * MS
    return times


def _events(folder: Path, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The events of these kinds. Skips a truncated last line."""
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if any(kind in line for kind in kinds):
                    with suppress(ValueError):
                        yield json.loads(line)


def _work_in(events: Iterable[dict[str, Any]]) -> Iterator[BatchWork]:
    """The work of each task."""
    batches: dict[int, int] = {}
    for event in events:
        if event["Event"] == _JOB:
            batch = (event.get("Properties") or {}).get(BATCH_ID)
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
