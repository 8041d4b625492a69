"""What Spark says of its batches: in progress reports, and in logs to the millisecond.

Progress reports are those of streaming queries (`StreamingQueryProgress`, as JSON) and of DStreams. Logs say when the
tasks of each batch ran, and when received blocks were reported. The event log has the tasks, but lists blocks without a
time. Spark's block tracker logs each block at debug level. Debug logs of receivers would have more, but one line per
record. No verdict depends on either log.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import Problem

MS = 1000
"""Microseconds."""
BATCH_ID, BATCH_TIME = "streaming.sql.batchId", "spark.streaming.internal.batchTime"
"""Job properties that identify its batch: by number (set for queries and by our DStreams), and for DStreams by time
(ms)."""
_JOB, _END = "SparkListenerJobStart", "SparkListenerTaskEnd"
BLOCKS_REPORTED = "spark.streamgauge.blocks"
"""If set, the SUT reports the blocks of each batch and their number of lines."""
JAVA = "spark.driver.extraJavaOptions"
BLOCK_LOG_NEEDS = (BLOCKS_REPORTED, JAVA)
_SPARKS_OWN = "classpath:org/apache/spark/log4j2-defaults.properties"
_LOG4J = """
appender.blocks.type = File
appender.blocks.name = blocks
appender.blocks.fileName = FILE
appender.blocks.layout.type = PatternLayout
appender.blocks.layout.pattern = %d{UNIX_MILLIS} %m%n
logger.tracker.name = org.apache.spark.streaming.scheduler.ReceivedBlockTracker
logger.tracker.level = debug
logger.tracker.additivity = false
logger.tracker.appenderRef.console.ref = console
logger.tracker.appenderRef.console.level = warn
logger.tracker.appenderRef.blocks.ref = blocks
"""
"""Added to Spark's logging configuration: the tracker logs to a file, and only warnings to the console."""
_LINE = re.compile(r"(\d+) Stream \d+ received block input-(\d+)-(\d+)")


def event_log_options(folder: Path) -> dict[str, str]:
    """Spark options to write its event log into a folder as one file."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def conflicts(user_options: Mapping[str, str], needed: Iterable[str]) -> Iterator[Problem]:
    """Problems of user options that a log needs."""
    for name in needed:
        if name in user_options:
            yield Problem(f"option {name}", "is set by anatomy itself", user_options[name], "leave it out")


@dataclass(frozen=True)
class BatchWork:
    """A batch's tasks: first launch, last finish (microseconds since the epoch), and total run time."""

    launched_us: int
    finished_us: int
    run_us: int


def work(folder: Path) -> dict[int, BatchWork]:
    """Batch number to its work. The log has one query, or DStreams."""
    batches: dict[int, int] = {}
    works: dict[int, BatchWork] = {}
    for event in _events(folder, (_JOB, _END)):
        if event["Event"] == _JOB:
            batch = (event.get("Properties") or {}).get(BATCH_ID)
            if batch is not None:
                batches |= dict.fromkeys(event["Stage IDs"], int(batch))
        elif event["Event"] == _END and event["Stage ID"] in batches:
            number, task = batches[event["Stage ID"]], event["Task Info"]
            launched_us, finished_us = task["Launch Time"] * MS, task["Finish Time"] * MS
            ran_us = (event.get("Task Metrics") or {}).get("Executor Run Time", 0) * MS
            before = works.get(number, BatchWork(launched_us, finished_us, 0))
            launched_us, finished_us = min(before.launched_us, launched_us), max(before.finished_us, finished_us)
            works[number] = BatchWork(launched_us, finished_us, before.run_us + ran_us)
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


def block_log_options(folder: Path) -> dict[str, str]:
    """Spark options to write this log into a folder. Other logging does not change."""
    config = folder / "log4j2.properties"
    config.write_text(_LOG4J.replace("FILE", str((folder / "blocks.log").resolve())), encoding="utf-8")
    return {BLOCKS_REPORTED: "on", JAVA: f"-Dlog4j2.configurationFile={_SPARKS_OWN},{config.resolve().as_uri()}"}


def blocks_stored(folder: Path) -> dict[tuple[int, int], int]:
    """(stream, block number) to the time of its report, microseconds since the epoch; empty without a log."""
    path = folder / "blocks.log"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    matches = (_LINE.fullmatch(line) for line in lines)
    return {(int(one[2]), int(one[3])): int(one[1]) * MS for one in matches if one}


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


def with_scheduling_delays(batches: Iterable[BatchProgress], interval_us: int) -> list[BatchProgress]:
    """The batches of a query with their delays, in the order of their starts. `interval_us`: that of its trigger.

    Spark triggers at multiples of the interval. After a batch that ended later than the next of them, it starts at
    once: so late is that batch.
    """
    delayed: list[BatchProgress] = []
    for batch in batches:
        due_us = batch.start_us // interval_us * interval_us
        if delayed and (ended_us := delayed[-1].end_us) is not None:
            next_us = (delayed[-1].start_us // interval_us + 1) * interval_us
            due_us = next_us if ended_us > next_us else due_us
        delayed.append(replace(batch, waited_us=batch.start_us - due_us))
    return delayed


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
        waited_us=None if (delay_ms := info.schedulingDelay()) < 0 else delay_ms * MS,
    )
