"""Spark's DStreams: capabilities and validation. Does not load Spark.

The lowering is that of Structured Streaming, but batches are those of `pyspark.streaming`: one per batch interval. Its
data is fixed when the batch is created, no matter how long it then waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Source
from streamgauge.engines.spark import validate
from streamgauge.engines.spark.lowering.windows import non_mergeable
from streamgauge.engines.spark.options import CAPABILITIES as SPARK
from streamgauge.engines.spark.options import LOWERING, RULES, WAREHOUSE
from streamgauge.engines.spark.options import SETTINGS as MICRO_BATCH
from streamgauge.engines.spark.parallelism import requested_master
from streamgauge.engines.spark.session.masters import local_slots
from streamgauge.engines.spark.session.progress import BATCH_STEPS
from streamgauge.engines.spi import BatchInterval, Capabilities, StartRequest

RECEIVERS = "socket"
"""The transport that Spark's receivers read. Over another transport each batch is a range of the queue."""
BATCH, BLOCK, PRESSURE = "batch_interval", "block_interval", "back_pressure"
_ALIKE = ("source", "driver_memory", "jit")

SETTINGS = (
    Setting(BATCH, "1s", "how often a batch is made, in s or ms"),
    Setting(BLOCK, "200ms", "over a socket: how often a receiver makes a block of what came, in s or ms; a task each"),
    Setting(
        PRESSURE, "off", "over a socket: whether Spark slows its receivers down to what it works off", ("on", "off")
    ),
    *(setting for setting in MICRO_BATCH if setting.name in _ALIKE),
)
BATCH_LEAST_S, BLOCK_LEAST_S = 0.05, 0.001

UNSUPPORTED_REASONS = {
    "SessionAggregate": "DStreams have no session windows",
    "IntervalJoin": "DStreams join windows only",
    "Distinct": "the earliest row of each key needs Structured Streaming's state",
    "Process": "keyed processes need Structured Streaming's state",
    "UserJobNode": "a user job is written for Structured Streaming",
}
"""Node kind to the reason why it is not supported."""

CARRIED = ("int", "bigint", "double", "boolean", "string")
"""Field types that a line of text can carry."""

CAPABILITIES = Capabilities(
    name="spark-dstream",
    summary="Spark DStreams, the streaming before Structured Streaming",
    nodes=tuple(name for name in SPARK.nodes if name not in UNSUPPORTED_REASONS),
    sink_modes=("append", "update"),
    transports=("flight", RECEIVERS),
    needs_java=True,
    near_limit=SPARK.near_limit,
    settings=SETTINGS,
    location_settings=(WAREHOUSE,),
    batch_steps=BATCH_STEPS,
    unsupported_reasons=UNSUPPORTED_REASONS,
    fallback_engine="spark",
    sets_parallelism=True,
)

_OWN_OPTIONS = {
    "spark.streaming.blockInterval": BLOCK,
    "spark.streaming.backpressure.enabled": PRESSURE,
}
"""Spark settings that have an option of streamgauge."""
_JOBS_AT_ONCE = "spark.streaming.concurrentJobs"


def seconds(interval: str) -> float:
    """`200ms` or `200 milliseconds` as 0.2; 0 if the format is invalid."""
    match = re.fullmatch(r"([0-9]+)(?:(ms| milliseconds?)|s| seconds?)", interval)
    return int(match.group(1)) * (0.001 if match.group(2) else 1.0) if match else 0.0


def requested_value(options: Mapping[str, str], name: str) -> str:
    """An option's value or its default."""
    return options.get(name) or next(setting.default for setting in SETTINGS if setting.name == name)


def interval(request: StartRequest) -> BatchInterval:
    """The batch interval, before a start."""
    return BatchInterval(seconds(requested_value(request.options, BATCH)), BATCH)


def receiving(options: Mapping[str, str], transport: str) -> dict[str, str]:
    """Spark's settings for receivers; empty without receivers."""
    if transport != RECEIVERS:
        return {}
    on = "true" if requested_value(options, PRESSURE) == "on" else "false"
    return {
        "spark.streaming.blockInterval": requested_value(options, BLOCK),
        "spark.streaming.backpressure.enabled": on,
    }


def receivers(transport: str, partitions: int) -> int:
    """The number of receivers; each occupies a slot permanently."""
    return partitions if transport == RECEIVERS else 0


def master_for(processors: int, transport: str, partitions: int) -> str:
    """A local Spark with a slot per processor and one per receiver."""
    return f"local[{processors + receivers(transport, partitions)}]"


def check(request: StartRequest) -> None:
    """Raises InputError with every problem that DStreams would fail on or ignore."""
    problems = list(validate.option_problems(request, CAPABILITIES, {"driver_memory": RULES["driver_memory"]}))
    problems += [*_set_twice(request.options), *_frontier(request), *_of_batches(request.options)]
    if request.transport == RECEIVERS:
        problems += [*_blocks(request.options), *_master(request)]
    else:
        problems += _without_receivers(request.options)
    if request.flow is not None:
        problems += _of_flow(request.flow, request)
    if problems:
        raise InputError(problems)


def _of_flow(flow: Flow, request: StartRequest) -> Iterator[Problem]:
    for node in graph.operators(flow):
        if isinstance(node, RunningAggregate) and (names := non_mergeable(node)):
            rule = f"needs mergeable running aggregates, and {', '.join(names)} of {node.name} is not mergeable"
            yield Problem("engine", rule, CAPABILITIES.name, f"--engine {CAPABILITIES.fallback_engine}")
        if isinstance(node, RunningAggregate) and receivers(request.transport, request.partitions) > 1:
            rule = "must be 1 for updates over sockets: receivers are not cut at one event time"
            yield Problem("partitions", rule, request.partitions, validate.ONE_PARTITION)
    if request.transport == RECEIVERS:
        yield from _lines(flow)


def _lines(flow: Flow) -> Iterator[Problem]:
    """Problems of flows whose input does not fit into lines of text."""
    sources = {node.name: node for node in graph.operators(flow) if isinstance(node, Source)}
    if len(sources) > 1:
        rule = f"carries one stream, and there are {', '.join(sources)}"
        yield Problem("transport", rule, RECEIVERS, "--transport flight")
    for node in sources.values():
        if not {field.type for field in node.schema.fields} <= set(CARRIED):
            rule = f"carries {', '.join(CARRIED)}, and {node.name} has others"
            yield Problem("transport", rule, RECEIVERS, "--transport flight")
        if any(field.nullable for field in node.schema.fields):
            rule = f"carries no nulls, and values of {node.name} may be null"
            yield Problem("transport", rule, RECEIVERS, "--transport flight")


def _set_twice(options: Mapping[str, str]) -> Iterator[Problem]:
    for name, own_option in _OWN_OPTIONS.items():
        if name in options:
            rule = "has its own option in streamgauge"
            yield Problem(
                f"option {name}", rule, options[name], f"--option {own_option}={requested_value({}, own_option)}"
            )
    if options.get(_JOBS_AT_ONCE, "1") != "1":
        rule = "must be 1: a batch needs the state of earlier batches"
        yield Problem(f"option {_JOBS_AT_ONCE}", rule, options[_JOBS_AT_ONCE], "leave it out")
    for name, value in options.items():
        if name.startswith(LOWERING) and value in ("packed", "sliding"):
            yield Problem(f"option {name}", f"must not be {value} in DStreams", value, "leave it out")


def _frontier(request: StartRequest) -> Iterator[Problem]:
    if request.frontier != "common":
        yield Problem(
            "frontier", "must be common for DStreams: a batch is one range", request.frontier, "--frontier common"
        )


def _of_batches(options: Mapping[str, str]) -> Iterator[Problem]:
    for name, least_s in ((BATCH, BATCH_LEAST_S), (BLOCK, BLOCK_LEAST_S)):
        value = requested_value(options, name)
        if seconds(value) < least_s:
            rule = f"must be a whole number of s or ms, at least {least_s * 1000:g}ms"
            yield Problem(f"option {name}", rule, value, f"--option {name}={requested_value({}, name)}")


def _blocks(options: Mapping[str, str]) -> Iterator[Problem]:
    """A block that spans two batches would go to the later one, so batches would be uneven."""
    batch, block = (round(1000 * seconds(requested_value(options, name))) for name in (BATCH, BLOCK))
    if batch and block and batch % block:
        rule = f"must be a multiple of {BLOCK} ({requested_value(options, BLOCK)})"
        yield Problem(
            f"option {BATCH}", rule, requested_value(options, BATCH), f"--option {BLOCK}={batch}ms, or a part of it"
        )


def _master(request: StartRequest) -> Iterator[Problem]:
    """Receivers use this machine's loopback, and without a free slot batches would wait forever."""
    needed = receivers(request.transport, request.partitions) + 1
    master = requested_master(request)
    if master is None or (local_slots(master) or 0) >= needed:
        return
    rule = f"must be local[N] with a slot for each receiver and at least one more: {needed} here"
    if request.master is None:
        yield Problem("parallelism", rule, request.parallelism, f"--parallelism {needed}, or leave it out")
        return
    yield Problem("master", rule, request.master, f"--master local[{needed}], or leave --master out")


def _without_receivers(options: Mapping[str, str]) -> Iterator[Problem]:
    for name in (BLOCK, PRESSURE):
        if requested_value(options, name) != requested_value({}, name):
            rule = "is for receivers, and over this transport each batch is a range of the queue"
            yield Problem(f"option {name}", rule, options[name], f"--transport {RECEIVERS}, or leave it out")
