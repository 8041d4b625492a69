"""When Spark was told of the blocks that receivers made: by its own log, to the millisecond.

The event log has blocks too, without a time. Spark's tracker of received blocks writes a line of each as it takes it
in, if it is asked to. Receivers could say more, but would write a line for every record then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgauge.core.errors import Problem
from streamgauge.engines.spark.observe.event_log import MS

COUNTED = "spark.streamgauge.blocks"
"""Where it is set, the SUT says which blocks a batch was made of, and how many lines are in each."""
JAVA = "spark.driver.extraJavaOptions"
_SPARKS_OWN = "classpath:org/apache/spark/log4j2-defaults.properties"
_TRACKER = "org.apache.spark.streaming.scheduler.ReceivedBlockTracker"
_LINE = re.compile(r"(\d+) Stream \d+ received block input-(\d+)-(\d+)")


def options(folder: Path) -> dict[str, str]:
    """Options of Spark's by which it writes this log into a folder, where it finds how; all else it logs as ever."""
    how = folder / "log4j2.properties"
    how.write_text(_how(folder / "blocks.log"), encoding="utf-8")
    return {COUNTED: "told", JAVA: f"-Dlog4j2.configurationFile={_SPARKS_OWN},{how.resolve().as_uri()}"}


def taken(given: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with options that are those of the log already."""
    for name in (COUNTED, JAVA):
        if name in given:
            yield Problem(f"option {name}", "is set by the anatomy itself", given[name], "leave it out")


def blocks_stored(folder: Path) -> dict[tuple[int, int], int]:
    """Of each block, by its stream and number, when Spark was told of it, microseconds since the epoch; empty where
    nothing was logged.
    """
    path = folder / "blocks.log"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = (_LINE.fullmatch(line) for line in lines)
    return {(int(one[2]), int(one[3])): int(one[1]) * MS for one in found if one}


def _how(log: Path) -> str:
    """What is added to Spark's own configuration: the tracker's lines to a file, and none but warnings to the rest."""
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
