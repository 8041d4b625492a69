"""Spark's real-time mode: capabilities and validation. Does not load Spark.

The lowering is that of micro-batch mode, but all tasks of the query run at once. Each row passes through them as it
arrives, and every row that changes a value gives an update.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Distinct, Explode, Flow, InWindows, RunningAggregate, Source, Where
from streamgauge.engines.spark import validate
from streamgauge.engines.spark.intervals import seconds
from streamgauge.engines.spark.options import CAPABILITIES as SPARK
from streamgauge.engines.spark.options import SETTINGS as MICRO_BATCH
from streamgauge.engines.spark.options import WAREHOUSE
from streamgauge.engines.spark.parallelism import SETTING, requested_master
from streamgauge.engines.spark.session.masters import local_slots
from streamgauge.engines.spark.session.progress import BATCH_STEPS
from streamgauge.engines.spi import Capabilities, StartRequest

INSTANCES = "1"
"""The default of `SETTING`: each additional instance is a task that always runs."""
TRIGGER_LEAST_S = 5.0
"""Spark's minimum (spark.sql.streaming.realTimeMode.minBatchDuration)."""
SILENT_MOST_S = 10.0
"""A part of the 30 s that the queue holds by default."""
CHUNK_US = 2_000
"""Events wait for half a chunk on average, which must be small compared to a latency of milliseconds. At 20 k events/s,
generator, broker and recorder used 50 to 53 % of a core with chunks of 2 ms, and 36 % with 5 ms.
"""
SETTLES_S = 15.0
"""Warm-up after the first checkpoint of positions, which takes about twice as long as later ones."""
RETENTION_MAX_S = 60.0
"""No warm-up waits for a longer trigger interval by default."""
_ALIKE = ("driver_memory", "jit")

SETTINGS = (
    Setting(
        "trigger",
        "auto",
        "how often positions are checkpointed, at least 5 seconds; only this delays rows. auto: 1 minute, but 5 "
        "seconds if rows may give no result, because only the checkpoint shows that they were read",
    ),
    *(setting for setting in MICRO_BATCH if setting.name in _ALIKE),
)

UNSUPPORTED_REASONS = {
    "WindowAggregate": "real-time mode gives windows' current values as updates, which no operator can follow",
    "SessionAggregate": "real-time mode has no session windows",
    "WindowJoin": "real-time mode joins no two streams",
    "IntervalJoin": "real-time mode joins no two streams",
    "TopN": "real-time mode has no aggregate of an aggregate",
    "Lookup": "a lookup broadcasts its table in each batch, and real-time mode has no batches",
    "Union": "real-time mode supports only unions of different sources",
    "Process": "real-time mode runs no Python",
    "UserJobNode": "real-time mode needs Spark's Kafka sink, and a user job returns a DataFrame without a sink",
}
"""Node kind to the reason why it is not supported."""

CAPABILITIES = Capabilities(
    name="spark-rtm",
    summary="Spark Structured Streaming, real-time mode",
    nodes=(*(name for name in SPARK.nodes if name not in UNSUPPORTED_REASONS), InWindows.__name__),
    sink_modes=("append", "update"),
    transports=("kafka",),
    encodings=SPARK.encodings,
    # Spark's sink writes again what came after the last checkpoint of positions.
    delivery="at_least_once",
    fetches=SPARK.fetches,
    needs_java=True,
    near_limit=SPARK.near_limit,
    settings=SETTINGS,
    location_settings=(WAREHOUSE,),
    batch_steps=BATCH_STEPS,
    unsupported_reasons=UNSUPPORTED_REASONS,
    fallback_engine="spark",
    chunk_us=CHUNK_US,
    # No linger, because it would add to a latency of a few milliseconds.
    transport_options={"linger": "0ms"},
    early_firing=True,
    has_batch_ids=False,
    sets_parallelism=True,
)


def trigger(flow: Flow, requested: str) -> str:
    """The trigger interval (checkpoint of positions), in Spark's format."""
    if requested != "auto":
        return requested
    return f"{TRIGGER_LEAST_S:g} seconds" if _silent(flow) else "1 minute"


def warmup_s(request: StartRequest) -> float:
    """The shortest warm-up of a fresh query: until its first checkpoint of positions."""
    if request.flow is None:
        return 0.0
    every_s = seconds(trigger(request.flow, request.options.get("trigger", "auto")))
    return every_s + SETTLES_S if every_s <= RETENTION_MAX_S else 0.0


def slots(flow: Flow) -> int:
    """The number of tasks, which all run at once: one per source and one behind each exchange."""
    sources = {node.name for node in graph.operators(flow) if isinstance(node, Source)}
    return len(sources) + sum(isinstance(node, RunningAggregate | Distinct) for node in graph.operators(flow))


def master_for(flow: Flow, processors: int) -> str:
    """A local Spark with enough slots for all tasks."""
    return f"local[{max(processors, slots(flow))}]"


def check(request: StartRequest) -> None:
    """Raises InputError with every problem that real-time mode would refuse or fail on at its start."""
    problems = list(validate.option_problems(request, CAPABILITIES, {"trigger": _check_trigger}))
    problems += _one_by_one(request)
    if request.flow is not None:
        problems += [*_of_one_time(request.flow), *_of_windows(request.flow), *_few_slots(request.flow, request)]
        problems += _seldom(request.flow, request.options.get("trigger", "auto"))
    if problems:
        raise InputError(problems)


def _silent(flow: Flow) -> str:
    """The first operator that may drop rows; empty without one."""
    return next((node.name for node in graph.operators(flow) if isinstance(node, Where | Explode | Distinct)), "")


def _one_by_one(request: StartRequest) -> Iterator[Problem]:
    """Positions are inferred from results, which needs one partition and one task per operator."""
    because = "because only with one task per operator do results show how far it has read"
    if request.partitions > 1:
        rule = f"must be 1 in real-time mode, {because}"
        yield Problem("partitions", rule, request.partitions, validate.ONE_PARTITION)
    if (instances := request.options.get(SETTING, INSTANCES)) != INSTANCES:
        yield Problem(f"option {SETTING}", f"must be 1 in real-time mode, {because}", instances, "leave it out")


def _of_one_time(flow: Flow) -> Iterator[Problem]:
    """Several rows of one event would give indistinguishable updates of one key and time."""
    for node in graph.operators(flow):
        before = graph.walk(node.input) if isinstance(node, RunningAggregate) else ()
        for each in before:
            if isinstance(each, Explode):
                rule = (
                    f"makes an update of every row, and {each.name} makes several indistinguishable ones of one event"
                )
                way_out = f"--engine {CAPABILITIES.fallback_engine}"
                yield Problem("engine", rule, CAPABILITIES.name, way_out)


def _of_windows(flow: Flow) -> Iterator[Problem]:
    """First rows of windows are an aggregate, and real-time mode would emit its intermediate values."""
    for node in graph.operators(flow):
        if isinstance(node, Distinct) and node.window is not None:
            rule = f"emits no results at a window's end, and {node.name} gives the first rows of windows"
            yield Problem("engine", rule, CAPABILITIES.name, f"--engine {CAPABILITIES.fallback_engine}")


def _seldom(flow: Flow, requested_value: str) -> Iterator[Problem]:
    """Rows without a result count as read only after a checkpoint, so the queue would fill."""
    if _silent(flow) and seconds(trigger(flow, requested_value)) > SILENT_MOST_S:
        rule = f"must be at most {SILENT_MOST_S:g} seconds where rows may leave no result ({_silent(flow)})"
        yield Problem("option trigger", rule, requested_value, '--option trigger="5 seconds", or leave it out')


def _few_slots(flow: Flow, request: StartRequest) -> Iterator[Problem]:
    """Too few slots for all tasks. Only those of `local[N]` are known before the start."""
    master = requested_master(request)
    if master is None or (local_slots(master) or 0) >= slots(flow):
        return
    because = f"because all run at once in real-time mode: {slots(flow)} here"
    if request.master is None:
        rule, way_out = f"must be a slot for each task, {because}", f"--parallelism {slots(flow)}, or leave it out"
        yield Problem("parallelism", rule, request.parallelism, way_out)
        return
    rule = f"must be local[N] with a slot for each task, {because}"
    yield Problem("master", rule, master, f"--master local[{slots(flow)}], or leave --master out")


def _check_trigger(value: str) -> Problem | None:
    if value == "auto" or seconds(value) >= TRIGGER_LEAST_S:
        return None
    rule = f"must be auto, or at least {TRIGGER_LEAST_S:g} seconds in real-time mode, in seconds or minutes"
    return Problem("option trigger", rule, value, '--option trigger="1 minute"')
