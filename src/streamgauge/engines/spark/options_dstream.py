"""Spark's DStreams: capabilities and validation. Does not load Spark.

The lowering is that of Structured Streaming, but batches are those of `pyspark.streaming`: one per batch interval. Its
data is fixed when the batch is created, no matter how long it then waits.
"""

import re
from collections.abc import Iterator, Mapping

from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Source
from streamgauge.engines.spark import options, validate
from streamgauge.engines.spark.lowering.windows import non_mergeable
from streamgauge.engines.spark.options import CAPABILITIES as SPARK
from streamgauge.engines.spark.parallelism import slot_problems
from streamgauge.engines.spark.session.reports import BATCH_STEPS
from streamgauge.engines.spi import Capabilities, StartRequest

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
    *(setting for setting in options.SETTINGS if setting.name in _ALIKE),
)
LEAST_S = {BATCH: 0.05, BLOCK: 0.001}
"""The least interval of each option that is one."""

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
    transports=("memory", RECEIVERS),
    needs_java=True,
    near_limit=SPARK.near_limit,
    settings=SETTINGS,
    location_settings=SPARK.location_settings,
    batch_steps=BATCH_STEPS,
    unsupported_reasons=UNSUPPORTED_REASONS,
    fallback_engine="spark",
    sets_parallelism=True,
)

_OWN_OPTIONS = validate.OWN_OPTIONS | {
    "spark.streaming.blockInterval": f"--option {BLOCK}=200ms",
    "spark.streaming.backpressure.enabled": f"--option {PRESSURE}=off",
}
_JOBS_AT_ONCE = "spark.streaming.concurrentJobs"


def seconds(interval: str) -> float:
    """`200ms` or `200 milliseconds` as 0.2; 0 if the format is invalid."""
    match = re.fullmatch(r"([0-9]+)(?:(ms| milliseconds?)|s| seconds?)", interval)
    return int(match.group(1)) * (0.001 if match.group(2) else 1.0) if match else 0.0


def requested_value(options: Mapping[str, str], name: str) -> str:
    """An option's value or its default."""
    return options.get(name) or next(setting.default for setting in SETTINGS if setting.name == name)


def receiving(options: Mapping[str, str], transport: str) -> dict[str, str]:
    """Spark's settings for receivers; empty without receivers."""
    if transport != RECEIVERS:
        return {}
    return {
        "spark.streaming.blockInterval": requested_value(options, BLOCK),
        "spark.streaming.backpressure.enabled": "true" if requested_value(options, PRESSURE) == "on" else "false",
    }


def master_for(processors: int, transport: str, partitions: int) -> str:
    """A local Spark with a slot per processor and one per receiver, which occupies it permanently."""
    return f"local[{processors + (partitions if transport == RECEIVERS else 0)}]"


def request_problems(request: StartRequest) -> Iterator[Problem]:
    """What DStreams would fail on or ignore."""
    yield from validate.option_problems(request, CAPABILITIES, _OWN_OPTIONS)
    not_here = {lowering: f"must not be {lowering} in DStreams" for lowering in ("packed", "sliding")}
    yield from validate.refused_lowerings(request.options, not_here)
    yield from broken(*_common_rules(request), *_length_rules(request), *_receiver_rules(request))
    if request.transport == RECEIVERS:
        yield from slot_problems(request, request.partitions + 1, "a slot for each receiver and at least one more")
    if request.flow is not None:
        yield from _flow_problems(request.flow, request)


def _common_rules(request: StartRequest) -> Iterator[Rule]:
    jobs, frontier = request.options.get(_JOBS_AT_ONCE, "1"), request.frontier
    rule = "must be 1: a batch needs the state of earlier batches"
    yield Rule(jobs == "1", f"option {_JOBS_AT_ONCE}", rule, jobs, "leave it out")
    rule = "must be common for DStreams: a batch is one range"
    yield Rule(frontier == "common", "frontier", rule, frontier, "--frontier common")


def _length_rules(request: StartRequest) -> Iterator[Rule]:
    """On the lengths of batches and blocks."""
    for name, least_s in LEAST_S.items():
        length, way_out = requested_value(request.options, name), f"--option {name}={requested_value({}, name)}"
        rule = f"must be a whole number of s or ms, at least {least_s * 1000:g}ms"
        yield Rule(seconds(length) >= least_s, f"option {name}", rule, length, way_out)


def _receiver_rules(request: StartRequest) -> Iterator[Rule]:
    """On the options of receivers: with them a batch is whole blocks, without them they have no effect."""
    values = {name: requested_value(request.options, name) for name in (BATCH, BLOCK, PRESSURE)}
    if request.transport == RECEIVERS:
        batch_ms, block_ms = (round(1000 * seconds(values[name])) for name in (BATCH, BLOCK))
        # A block that spans two batches would go to the later one, so batches would be uneven.
        is_even = not batch_ms or not block_ms or batch_ms % block_ms == 0
        rule, way_out = f"must be a multiple of {BLOCK} ({values[BLOCK]})", f"--option {BLOCK}={batch_ms}ms"
        yield Rule(is_even, f"option {BATCH}", rule, values[BATCH], f"{way_out}, or a part of it")
        return
    for name in (BLOCK, PRESSURE):
        rule = "is for receivers, and over this transport each batch is a range of the queue"
        is_default = values[name] == requested_value({}, name)
        way_out = f"--transport {RECEIVERS}, or leave it out"
        yield Rule(is_default, f"option {name}", rule, values[name], way_out)


def _flow_problems(flow: Flow, request: StartRequest) -> Iterator[Problem]:
    for node in graph.operators(flow):
        if isinstance(node, RunningAggregate):
            names, way_out = non_mergeable(node), f"--engine {CAPABILITIES.fallback_engine}"
            mergeable = f"needs mergeable running aggregates, and {', '.join(names)} of {node.name} is not mergeable"
            uncut = "must be 1 for updates over sockets: receivers are not cut at one event time"
            is_cut = request.transport != RECEIVERS or request.partitions <= 1
            yield from broken(
                Rule(not names, "engine", mergeable, CAPABILITIES.name, way_out),
                Rule(is_cut, "partitions", uncut, request.partitions, validate.ONE_PARTITION),
            )
    if request.transport == RECEIVERS:
        yield from (Problem("transport", rule, RECEIVERS, "--transport memory") for rule in _lines(flow))


def _lines(flow: Flow) -> Iterator[str]:
    """The rules of lines of text that the input of a flow breaks."""
    sources = {node.name: node for node in graph.operators(flow) if isinstance(node, Source)}
    if len(sources) > 1:
        yield f"carries one stream, and there are {', '.join(sources)}"
    for name, node in sources.items():
        if not {field.type for field in node.schema.fields} <= set(CARRIED):
            yield f"carries {', '.join(CARRIED)}, and {name} has others"
        if any(field.nullable for field in node.schema.fields):
            yield f"carries no nulls, and values of {name} may be null"
