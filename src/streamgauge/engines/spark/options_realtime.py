"""Spark's real-time mode: capabilities and validation. Does not load Spark.

The lowering is that of micro-batch mode, but all tasks of the query run at once. Each row passes through them as it
arrives, and every row that changes a value gives an update.
"""

from collections.abc import Iterator

from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Distinct, Explode, Flow, InWindows, RunningAggregate, Source, Where
from streamgauge.engines.spark import options, validate
from streamgauge.engines.spark.options import CAPABILITIES as SPARK
from streamgauge.engines.spark.parallelism import SETTING, slot_problems
from streamgauge.engines.spark.session.reports import BATCH_STEPS
from streamgauge.engines.spark.watermark_and_interval import seconds
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
    *(setting for setting in options.SETTINGS if setting.name in _ALIKE),
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
    location_settings=SPARK.location_settings,
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


def slots(flow: Flow) -> int:
    """The number of tasks, which all run at once: one per source and one behind each exchange."""
    sources = {node.name for node in graph.operators(flow) if isinstance(node, Source)}
    return len(sources) + sum(isinstance(node, RunningAggregate | Distinct) for node in graph.operators(flow))


def master_for(flow: Flow, processors: int) -> str:
    """A local Spark with enough slots for all tasks."""
    return f"local[{max(processors, slots(flow))}]"


def request_problems(request: StartRequest) -> Iterator[Problem]:
    """What real-time mode would refuse or fail on at its start."""
    every, instances = request.options.get("trigger", "auto"), request.options.get(SETTING, INSTANCES)
    silent = _silent(request.flow) if request.flow is not None else ""
    # Positions are inferred from results.
    one = "must be 1 in real-time mode, because only with one task per operator do results show how far it has read"
    yield from validate.option_problems(request, CAPABILITIES)
    yield from broken(
        Rule(
            every == "auto" or seconds(every) >= TRIGGER_LEAST_S, "option trigger",
            f"must be auto, or at least {TRIGGER_LEAST_S:g} seconds in real-time mode, in seconds or minutes",
            every, '--option trigger="1 minute"',
        ),
        Rule(request.partitions <= 1, "partitions", one, request.partitions, validate.ONE_PARTITION),
        Rule(instances == INSTANCES, f"option {SETTING}", one, instances, "leave it out"),
        # Rows without a result count as read only after a checkpoint, so the queue would fill.
        Rule(
            not silent or seconds(every) <= SILENT_MOST_S, "option trigger",
            f"must be at most {SILENT_MOST_S:g} seconds where rows may leave no result ({silent})",
            every, '--option trigger="5 seconds", or leave it out',
        ),
    )  # fmt: skip
    if request.flow is not None:
        yield from _of_nodes(request.flow)
        slots_needed = "a slot for each task, because all run at once in real-time mode"
        yield from slot_problems(request, slots(request.flow), slots_needed)


def _silent(flow: Flow) -> str:
    """The first operator that may drop rows; empty without one."""
    return next((node.name for node in graph.operators(flow) if isinstance(node, Where | Explode | Distinct)), "")


def _of_nodes(flow: Flow) -> Iterator[Problem]:
    """What would come out as other rows than the engine states.

    - Several rows of one event would give indistinguishable updates of one key and time.
    - First rows of windows are an aggregate, and real-time mode would emit its intermediate values.
    """
    for node in graph.operators(flow):
        before = graph.walk(node.input) if isinstance(node, RunningAggregate) else ()
        rules = [
            f"makes an update of every row, and {each.name} makes several indistinguishable ones of one event"
            for each in before
            if isinstance(each, Explode)
        ]
        if isinstance(node, Distinct) and node.window is not None:
            rules.append(f"emits no results at a window's end, and {node.name} gives the first rows of windows")
        for rule in rules:
            yield Problem("engine", rule, CAPABILITIES.name, f"--engine {CAPABILITIES.fallback_engine}")
