"""Spark's settings: ours, each with its reason, and how a user's options are put over them."""

from __future__ import annotations

import re
from collections.abc import Callable

from streamgauge.engines.seam import Capabilities, Setting
from streamgauge.errors import InputError, Problem
from streamgauge.system.machine import memory_bytes

LOWERINGS = {"aggregate": ("auto", "panes", "window"), "join": ("stream_stream", "packed")}

_LOCAL_FILES = "org.apache.hadoop.fs.RawLocalFileSystem"
_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

SETTINGS = (
    Setting("trigger", "0 seconds", "how long a batch waits for the one before; 0 means back to back"),
    Setting("buckets", "8", "how many parts a packed lowering cuts its keys into"),
    Setting(
        "lowering.aggregate",
        "auto",
        "how a windowed aggregate is done; auto: by panes where every aggregate can be joined from parts",
        LOWERINGS["aggregate"],
    ),
    Setting("lowering.join", "stream_stream", "how a windowed join is done", LOWERINGS["join"]),
    Setting("driver_memory", "4g", "heap of the JVM in local mode"),
    Setting("probes", "on", "keep the engine's own progress as extra series", ("on", "off")),
)

CAPABILITIES = Capabilities(
    name="spark",
    summary="Spark Structured Streaming, micro-batch",
    nodes=("Source", "Select", "Where", "WindowAggregate", "RunningAggregate", "WindowJoin"),
    sink_modes=("append", "update"),
    transports=("flight",),
    runs_streams=True,
    computes_truth=False,
    several_sinks=True,
    settings=SETTINGS,
)


def defaults(partitions: int, local_checkpoint: bool) -> dict[str, str]:
    """Spark configuration that streamgauge sets unless the user sets it; every one stands in the result."""
    conf = {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Larger than Spark's 10 000: each batch crosses to Python and to the recorder as one piece.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
        # Kept until the end of a trial, when they are read once instead of polled.
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.adaptive.enabled": "false",
    }
    if local_checkpoint:
        # Hadoop's checksummed local files fork a chmod per file: 60 ms of every batch.
        conf |= {
            "spark.sql.streaming.checkpointFileManagerClass": _FILE_MANAGER,
            "spark.hadoop.fs.file.impl": _LOCAL_FILES,
            "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        }
    return conf


def check(options: dict[str, str]) -> None:
    """Refuse values that Spark would choke on only after its start; InputError with every problem."""
    problems = [problem for name, rule in _RULES.items() if name in options and (problem := rule(options[name]))]
    if problems:
        raise InputError(problems)


def _check_trigger(value: str) -> Problem | None:
    if re.fullmatch(r"\d+(\.\d+)? (millisecond|second|minute)s?", value):
        return None
    rule = "must be a number of milliseconds, seconds or minutes, as Spark writes it"
    return Problem("option trigger", rule, value, '--option trigger="1 second"')


def _check_buckets(value: str) -> Problem | None:
    if value.isdecimal() and 1 <= int(value) <= 4096:
        return None
    return Problem("option buckets", "must be a whole number from 1 to 4096", value, "--option buckets=8")


def _check_memory(value: str) -> Problem | None:
    found = re.fullmatch(r"(\d+)([mg])", value)
    asked = int(found.group(1)) * {"m": 2**20, "g": 2**30}[found.group(2)] if found else 0
    there = memory_bytes()
    if 2**28 <= asked <= there:
        return None
    rule = f"must be from 256m to what this machine has ({there / 2**30:.1f} GiB), with m or g"
    return Problem("option driver_memory", rule, value, "--option driver_memory=4g")


_RULES: dict[str, Callable[[str], Problem | None]] = {
    "trigger": _check_trigger,
    "buckets": _check_buckets,
    "driver_memory": _check_memory,
}


def split(options: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """(our engine options with defaults, Spark configuration the user gave)."""
    ours = {setting.name: setting.default for setting in SETTINGS}
    ours |= {name: value for name, value in options.items() if not name.startswith("spark.")}
    return ours, {name: value for name, value in options.items() if name.startswith("spark.")}
