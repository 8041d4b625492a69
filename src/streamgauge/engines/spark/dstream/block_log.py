"""Reads from Spark's log when received blocks were reported to the Spark driver, to the millisecond.

The event log lists blocks without a time. Spark's block tracker logs each block at debug level. Debug logs of
receivers would have more, but one line per record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgauge.core.errors import Problem
from streamgauge.engines.spark.observe.event_log import MS

BLOCKS_REPORTED = "spark.streamgauge.blocks"
"""If set, the SUT reports the blocks of each batch and their number of lines."""
JAVA = "spark.driver.extraJavaOptions"
_SPARKS_OWN = "classpath:org/apache/spark/log4j2-defaults.properties"
_TRACKER = "org.apache.spark.streaming.scheduler.ReceivedBlockTracker"
_LINE = re.compile(r"(\d+) Stream \d+ received block input-(\d+)-(\d+)")


def options(folder: Path) -> dict[str, str]:
    """Spark options to write this log into a folder. Other logging does not change."""
    config = folder / "log4j2.properties"
    config.write_text(_log4j_config(folder / "blocks.log"), encoding="utf-8")
    return {BLOCKS_REPORTED: "on", JAVA: f"-Dlog4j2.configurationFile={_SPARKS_OWN},{config.resolve().as_uri()}"}


def conflicts(options_: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of user options that the block log needs."""
    for name in (BLOCKS_REPORTED, JAVA):
        if name in options_:
            yield Problem(f"option {name}", "is set by anatomy itself", options_[name], "leave it out")


def blocks_stored(folder: Path) -> dict[tuple[int, int], int]:
    """(stream, block number) to the time of its report, microseconds since the epoch; empty without a log."""
    path = folder / "blocks.log"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    matches = (_LINE.fullmatch(line) for line in lines)
    return {(int(one[2]), int(one[3])): int(one[1]) * MS for one in matches if one}


def _log4j_config(log: Path) -> str:
    """Added to Spark's logging configuration: the tracker logs to a file, and only warnings to the console."""
    return f"""
appender.blocks.type = File
appender.blocks.name = blocks
appender.blocks.fileName = {log.resolve()}
appender.blocks.layout.type = PatternLayout
appender.blocks.layout.pattern = %d{{UNIX_MILLIS}} %m%n
logger.tracker.name = {_TRACKER}
logger.tracker.level = debug
logger.tracker.additivity = false
logger.tracker.appenderRef.console.ref = console
logger.tracker.appenderRef.console.level = warn
logger.tracker.appenderRef.blocks.ref = blocks
"""
