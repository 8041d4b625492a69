"""Spark's DStreams: what they can do, and what is refused before they are started; loads no Spark.

The same flows and the same lowering, but the batches are those of `pyspark.streaming`: one at every batch interval,
whose data is fixed when the batch is made, however long it then waits for the batches before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Source
from streamgauge.engines.spark import validate
from streamgauge.engines.spark.lowering.mergeable import non_mergeable
from streamgauge.engines.spark.options import LOWERING, RULES
from streamgauge.engines.spark.options import SETTINGS as MICRO_BATCH
from streamgauge.engines.spi import BatchInterval, Capabilities, StartRequest

RECEIVERS = "socket"
"""The transport of which Spark's own receivers take lines; over another one each batch is a range of the queue."""
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
    "Distinct": "the earliest of each key is found by Structured Streaming's state here",
    "Process": "its state is one of Structured Streaming here",
    "NativeJob": "an own job is written for Structured Streaming",
}
"""Of what they cannot do, the rule."""

CARRIED = ("int", "bigint", "double", "boolean", "string")
"""Types of fields that a line of text carries."""

CAPABILITIES = Capabilities(
    name="spark-dstream",
    summary="Spark DStreams, the streaming before Structured Streaming",
    nodes=(
        "Source", "Select", "Where", "WindowAggregate", "RunningAggregate", "WindowJoin", "TopN", "Explode", "Lookup",
        "Union",
    ),
    sink_modes=("append", "update"),
    transports=("flight", RECEIVERS),
    runs_streams=True,
    computes_truth=False,
    needs_java=True,
    settings=SETTINGS,
    unsupported_reasons=UNSUPPORTED_REASONS,
    fallback_engine="spark",
)  # fmt: skip

_ELSEWHERE = {
    "spark.streaming.blockInterval": BLOCK,
    "spark.streaming.backpressure.enabled": PRESSURE,
}
"""Settings of Spark's that are asked for by options of ours."""
_JOBS_AT_ONCE = "spark.streaming.concurrentJobs"


def seconds(interval: str) -> float:
    """`200ms`, or `200 milliseconds` as Spark has it, as 0.2; 0 where it is not written so."""
    found = re.fullmatch(r"([0-9]+)(?:(ms| milliseconds?)|s| seconds?)", interval)
    return int(found.group(1)) * (0.001 if found.group(2) else 1.0) if found else 0.0


def requested_value(options: Mapping[str, str], name: str) -> str:
    """An option's value, its default where it was not given."""
    return options.get(name) or next(setting.default for setting in SETTINGS if setting.name == name)


def interval(request: StartRequest) -> BatchInterval:
    """How far apart batches are, as far as it is known before a start."""
    return BatchInterval(seconds(requested_value(request.options, BATCH)), BATCH)


def receiving(options: Mapping[str, str], transport: str) -> dict[str, str]:
    """Spark's settings of receivers, where there are any."""
    if transport != RECEIVERS:
        return {}
    on = "true" if requested_value(options, PRESSURE) == "on" else "false"
    return {
        "spark.streaming.blockInterval": requested_value(options, BLOCK),
        "spark.streaming.backpressure.enabled": on,
    }


def receivers(transport: str, partitions: int) -> int:
    """How many receivers there are, each of which takes a slot for good."""
    return partitions if transport == RECEIVERS else 0


def master_for(processors: int, transport: str, partitions: int) -> str:
    """A local Spark with a slot for each processor, beside those of receivers, which work on no batch."""
    return f"local[{processors + receivers(transport, partitions)}]"


def check(request: StartRequest) -> None:
    """Refuse what DStreams cannot do, or would do without a word; InputError with every problem."""
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
            rule = f"keeps aggregates that are joined from parts, and {', '.join(names)} of {node.name} is none"
            yield Problem("engine", rule, CAPABILITIES.name, f"--engine {CAPABILITIES.fallback_engine}")
        if isinstance(node, RunningAggregate) and receivers(request.transport, request.partitions) > 1:
            rule = "must be 1 for updates over sockets: receivers stand at no common event time"
            yield Problem("load.generators", rule, request.partitions, "--generators 1")
    if request.transport == RECEIVERS:
        yield from _lines(flow)


def _lines(flow: Flow) -> Iterator[Problem]:
    """What lines of text cannot carry."""
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
    for name, ours in _ELSEWHERE.items():
        if name in options:
            rule = "is asked for by an option of streamgauge"
            yield Problem(f"option {name}", rule, options[name], f"--option {ours}={requested_value({}, ours)}")
    if options.get(_JOBS_AT_ONCE, "1") != "1":
        rule = "must be 1: a batch needs what the batches before it have left"
        yield Problem(f"option {_JOBS_AT_ONCE}", rule, options[_JOBS_AT_ONCE], "leave it out")
    for name, value in options.items():
        if name.startswith(LOWERING) and value == "packed":
            yield Problem(f"option {name}", "must not be packed in DStreams", value, "leave it out")


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
    """A block that two batches share would be one of the later, and batches would be uneven."""
    batch, block = (round(1000 * seconds(requested_value(options, name))) for name in (BATCH, BLOCK))
    if batch and block and batch % block:
        rule = f"must be a multiple of {BLOCK} ({requested_value(options, BLOCK)})"
        yield Problem(
            f"option {BATCH}", rule, requested_value(options, BATCH), f"--option {BLOCK}={batch}ms, or a part of it"
        )


def _master(request: StartRequest) -> Iterator[Problem]:
    """Receivers listen to this machine's loopback, and batches would wait for a slot without end."""
    needed = receivers(request.transport, request.partitions) + 1
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\s*\d+)?\])?", request.master or "")
    if request.master is None or (found is not None and int(found.group(1) or 1) >= needed):
        return
    rule = f"must be local[N] with a slot for each receiver and one more at least: {needed} here"
    yield Problem("master", rule, request.master, f"--master local[{needed}], or leave --master out")


def _without_receivers(options: Mapping[str, str]) -> Iterator[Problem]:
    for name in (BLOCK, PRESSURE):
        if requested_value(options, name) != requested_value({}, name):
            rule = "is for receivers, and over this transport each batch is a range of the queue"
            yield Problem(f"option {name}", rule, options[name], f"--transport {RECEIVERS}, or leave it out")
