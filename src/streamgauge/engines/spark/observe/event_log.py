"""What Spark's event log says of a query's batches: when their tasks ran.

Spark writes the log by itself, to the millisecond, outside of the query. Nothing of it decides.
"""

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
"""The properties of a job that say to which batch it belongs: of a query by number, which our DStreams set too, and of
DStreams by time (ms)."""
_JOB, _END = "SparkListenerJobStart", "SparkListenerTaskEnd"


def options(folder: Path) -> dict[str, str]:
    """Options of Spark's by which it writes its log into a folder: one file, as it goes."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def taken(given: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with options that are those of the log already."""
    for name in options(Path()):
        if name in given:
            yield Problem(f"option {name}", "is set by the anatomy itself", given[name], "leave it out")


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
    """Of each batch that has run a task; of a log with one query, or with DStreams."""
    found: dict[int, BatchWork] = {}
    for one in _work_in(_events(folder, (_JOB, _END))):
        found[one.batch] = _together(found[one.batch], one) if one.batch in found else one
    return found


def batch_times(folder: Path) -> dict[int, int]:
    """Of each batch of DStreams that has run a job: the time at which it was made, microseconds since the epoch."""
    found: dict[int, int] = {}
    for event in _events(folder, (_JOB,)):
        said = event.get("Properties") or {}
        if BATCH_ID in said and BATCH_TIME in said:
            found[int(said[BATCH_ID])] = int(said[BATCH_TIME]) * MS
    return found


def _events(folder: Path, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Those that are wanted; the last line of a Spark that was ended may be half a one."""
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if any(kind in line for kind in kinds):
                    with suppress(ValueError):
                        yield json.loads(line)


def _work_in(events: Iterable[dict[str, Any]]) -> Iterator[BatchWork]:
    """A task's work each."""
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
