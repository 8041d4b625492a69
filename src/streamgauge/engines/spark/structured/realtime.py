"""Spark's real-time mode: what it can do, and what is refused before it is started; loads no Spark.

The same flows and the same lowering, but one query that never waits for a batch: its tasks all run at once, each row
goes through all of them as it comes, and every row that changes a value gives an update.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Distinct, Explode, Flow, RunningAggregate, Source, Where
from streamgauge.engines.spark import validate
from streamgauge.engines.spark.batch_interval import seconds
from streamgauge.engines.spark.options import SETTINGS as MICRO_BATCH
from streamgauge.engines.spark.parallelism import SETTING
from streamgauge.engines.spi import Capabilities, StartRequest

INSTANCES = "1"
"""Of `SETTING`, unless an option says so: each one more is a task more that always runs."""
TRIGGER_LEAST_S = 5.0
"""Spark's own least (spark.sql.streaming.realTimeMode.minBatchDuration)."""
SILENT_MOST_S = 10.0
"""Of the 30 s that the queue holds unless told otherwise."""
CHUNK_US = 2_000
"""Events wait for half a chunk in the mean, which is to be little beside some milliseconds. Shorter ones cost: of 20 k
events/s generator, broker and recorder took 50 to 53 % of a core with chunks of 2 ms, and 36 % with chunks of 5 ms.
"""
SETTLES_S = 15.0
"""After it has kept for the first time how far it is, which takes about twice as long as later on."""
RETENTION_MAX_S = 60.0
"""An interval of more is its user's affair: no warm-up waits for it unless asked to."""
_ALIKE = ("driver_memory", "jit")

SETTINGS = (
    Setting(
        "trigger",
        "auto",
        "how often it keeps how far it is, at least 5 seconds; rows are held up then, and at no other time. auto: 1 "
        "minute, but 5 seconds where rows may leave no result, since only then is it known that they were read",
    ),
    *(setting for setting in MICRO_BATCH if setting.name in _ALIKE),
)

UNSUPPORTED_REASONS = {
    "WindowAggregate": "its windows give their values so far, as updates, which nothing can follow",
    "SessionAggregate": "real-time mode has no session windows",
    "WindowJoin": "real-time mode joins no two streams",
    "IntervalJoin": "real-time mode joins no two streams",
    "TopN": "real-time mode has no aggregate of an aggregate",
    "Lookup": "tables are broadcast in each batch here",
    "Union": "real-time mode takes a union of different sources only",
    "Process": "real-time mode runs no Python",
    "NativeJob": "real-time mode takes Kafka's own sink, in which an own job would have to end itself",
}
"""Of what it cannot do, the rule."""

CAPABILITIES = Capabilities(
    name="spark-rtm",
    summary="Spark Structured Streaming, real-time mode",
    nodes=("Source", "Select", "Where", "Explode", "InWindows", "RunningAggregate", "Distinct"),
    sink_modes=("append", "update"),
    transports=("kafka",),
    runs_streams=True,
    computes_truth=False,
    needs_java=True,
    settings=SETTINGS,
    unsupported_reasons=UNSUPPORTED_REASONS,
    fallback_engine="spark",
    chunk_us=CHUNK_US,
    # A millisecond of its few. Where events come in large chunks that would make too many requests of them.
    transport_options={"linger": "0ms"},
    early_firing=True,
    has_batch_ids=False,
)


def trigger(flow: Flow, requested: str) -> str:
    """How often it keeps how far it is, in Spark's words."""
    if requested != "auto":
        return requested
    return f"{TRIGGER_LEAST_S:g} seconds" if _silent(flow) else "1 minute"


def warmup_s(request: StartRequest) -> float:
    """So long a fresh one's warm-up is at least: until it has kept once how far it is."""
    if request.flow is None:
        return 0.0
    every_s = seconds(trigger(request.flow, request.options.get("trigger", "auto")))
    return every_s + SETTLES_S if every_s <= RETENTION_MAX_S else 0.0


def slots(flow: Flow) -> int:
    """How many tasks run at once, all of a query's: one for each source, and one behind each exchange."""
    sources = {node.name for node in graph.operators(flow) if isinstance(node, Source)}
    return len(sources) + sum(isinstance(node, RunningAggregate | Distinct) for node in graph.operators(flow))


def master_for(flow: Flow, processors: int) -> str:
    """A local Spark on so many processors, in which all tasks can run at once."""
    return f"local[{max(processors, slots(flow))}]"


def check(request: StartRequest) -> None:
    """Refuse what real-time mode would refuse, or would end as it starts; InputError with every problem."""
    problems = list(validate.option_problems(request, CAPABILITIES, {"trigger": _check_trigger}))
    problems += _one_by_one(request)
    if request.flow is not None:
        problems += [*_of_one_time(request.flow), *_of_windows(request.flow), *_few_slots(request.flow, request.master)]
        problems += _seldom(request.flow, request.options.get("trigger", "auto"))
    if problems:
        raise InputError(problems)


def _silent(flow: Flow) -> str:
    """The first operator whose rows may leave none; nothing where every row leaves one."""
    return next((node.name for node in graph.operators(flow) if isinstance(node, Where | Explode | Distinct)), "")


def _one_by_one(request: StartRequest) -> Iterator[Problem]:
    """How far it has read is shown by results, of one partition that goes through one task after the other."""
    because = "as only one task after the other shows by its results how far it has read"
    if request.partitions > 1:
        yield Problem(
            "load.generators", f"must be 1 in real-time mode, {because}", request.partitions, "--generators 1"
        )
    if (instances := request.options.get(SETTING, INSTANCES)) != INSTANCES:
        yield Problem(f"option {SETTING}", f"must be 1 in real-time mode, {because}", instances, "leave it out")


def _of_one_time(flow: Flow) -> Iterator[Problem]:
    """Several rows of one event make several updates of one key and time, which could not be told apart."""
    for node in graph.operators(flow):
        before = graph.walk(node.input) if isinstance(node, RunningAggregate) else ()
        for each in before:
            if isinstance(each, Explode):
                rule = f"makes an update of every row, and {each.name} makes several of one event"
                way_out = f"--engine {CAPABILITIES.fallback_engine}: here nobody could tell them apart"
                yield Problem("engine", rule, CAPABILITIES.name, way_out)


def _of_windows(flow: Flow) -> Iterator[Problem]:
    """A window's first rows are an aggregate here, of which real-time mode would give values so far."""
    for node in graph.operators(flow):
        if isinstance(node, Distinct) and node.window is not None:
            rule = f"gives nothing at a window's end, and the first rows of {node.name} are those of windows"
            yield Problem("engine", rule, CAPABILITIES.name, f"--engine {CAPABILITIES.fallback_engine}")


def _seldom(flow: Flow, requested_value: str) -> Iterator[Problem]:
    """Rows that leave nothing would wait to be known as read, until the queue is full."""
    if _silent(flow) and seconds(trigger(flow, requested_value)) > SILENT_MOST_S:
        rule = f"must be at most {SILENT_MOST_S:g} seconds where rows may leave no result ({_silent(flow)})"
        yield Problem("option trigger", rule, requested_value, '--option trigger="5 seconds", or leave it out')


def _few_slots(flow: Flow, master: str | None) -> Iterator[Problem]:
    """Spark would end the query when it is to run. Only those of `local[N]` can be counted before the start."""
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\s*\d+)?\])?", master or "")
    if master is None or (found is not None and int(found.group(1) or 1) >= slots(flow)):
        return
    rule = f"must be local[N] with a slot for each task, as all run at once in real-time mode: {slots(flow)} here"
    yield Problem("master", rule, master, f"--master local[{slots(flow)}], or leave --master out")


def _check_trigger(value: str) -> Problem | None:
    if value == "auto" or seconds(value) >= TRIGGER_LEAST_S:
        return None
    rule = f"must be auto, or at least {TRIGGER_LEAST_S:g} seconds in real-time mode, in seconds or minutes"
    return Problem("option trigger", rule, value, '--option trigger="1 minute"')
