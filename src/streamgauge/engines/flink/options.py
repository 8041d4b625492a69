"""Flink: capabilities, options, and what they set. Loads nothing of Flink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.plugin_options import IDIOMATIC, TUNED, Fetch, Setting
from streamgauge.core.units import parse_duration, parse_size
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    IntervalJoin,
    Lookup,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    Where,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.spi import Capabilities, TuningProfile, node_names

SETTINGS = (
    Setting("memory", "2GiB", "the heap of the JVM, which has the cluster and the job"),
    Setting("buffer_timeout", "5ms", "how long rows wait for more before they go to the next task"),
    Setting("watermark_interval", "20ms", "how often watermarks are made, which delays the results of windows"),
    Setting("object_reuse", "true", "whether tasks pass rows on without a copy", ("true", "false")),
    Setting("checkpoint_interval", "1s", "how often state is kept and offsets are committed, which show the progress"),
)
"""The defaults are those of the profile `tuned`."""
FLINKS_OWN = {"buffer_timeout": "100ms", "watermark_interval": "200ms", "object_reuse": "false"}
"""What these options are where a job sets nothing."""
NAMES = {
    "buffer_timeout": "execution.buffer-timeout.interval", "watermark_interval": "pipeline.auto-watermark-interval",
    "object_reuse": "pipeline.object-reuse", "checkpoint_interval": "execution.checkpointing.interval",
}  # fmt: skip
"""Option to Flink's setting."""
MS = 1000
CHECKPOINT_LEAST_S = 0.01
TIMES = ("buffer_timeout", "watermark_interval", "checkpoint_interval")
FIXED = {
    # A job that fails shall be seen, not started again.
    "restart-strategy.type": "disable",
    "state.backend.type": "hashmap",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    # Everything listens on loopback. Its own files are not fetched over a port.
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "blob.offload.minsize": "1073741824",
    "rest.bind-address": "127.0.0.1",
    "rest.address": "127.0.0.1",
}
KINDS = (
    Source, Select, Where, Explode, Lookup, Union, WindowAggregate, SessionAggregate, RunningAggregate,
    WindowJoin, IntervalJoin, Distinct, TopN,
)  # fmt: skip
NO_PYTHON = "it runs no Python yet"

CAPABILITIES = Capabilities(
    name="flink",
    summary="Apache Flink, DataStream API",
    nodes=node_names(KINDS),
    sink_modes=("append", "update"),
    transports=("kafka",),
    encodings=("compact", "json"),
    delivery="at_least_once",
    fetches=(Fetch("Flink and its Kafka connector", 86_000_000, "--engine flink"),),
    location_settings=("execution.checkpointing.dir",),
    several_sinks=True,
    needs_java=True,
    settings=SETTINGS,
    unsupported_reasons={"Process": NO_PYTHON, "UserJobNode": "a PySpark function runs on Spark"},
    fallback_engine="spark",
    has_batch_ids=False,
    sets_parallelism=True,
    profiles={TUNED: TuningProfile(), IDIOMATIC: TuningProfile(options=FLINKS_OWN)},
)


def option_problems(options: Mapping[str, str]) -> Iterator[Problem]:
    """Sizes and times that cannot be read."""
    readers: dict[str, Callable[[str, str], float]] = {"memory": parse_size, **dict.fromkeys(TIMES, parse_duration)}
    for name in readers.keys() & options.keys():
        try:
            value = readers[name](options[name], f"option {name}")
        except InputError as error:
            yield from error.problems
            continue
        if name == "checkpoint_interval" and value < CHECKPOINT_LEAST_S:
            yield Problem(f"option {name}", "must be at least 10ms", options[name], f"--option {name}=1s")


def configuration(options: Mapping[str, str]) -> dict[str, str]:
    """Flink's settings for these options."""
    chosen = with_defaults(options)
    # A bare number is seconds here and milliseconds there.
    chosen |= {name: f"{round(MS * parse_duration(chosen[name]))} ms" for name in TIMES}
    return {**FIXED, **{flinks: chosen[name] for name, flinks in NAMES.items()}}


def with_defaults(options: Mapping[str, str]) -> dict[str, str]:
    """All options."""
    return {setting.name: setting.default for setting in SETTINGS} | dict(options)
