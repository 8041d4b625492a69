"""Spark's real-time mode: what it can do, and what is refused before it is started; loads no Spark.

The same flows and the same lowering, but one query that never waits for a batch: its tasks all run at once, each row
goes through all of them as it comes, and every row that changes a value gives an update.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from streamgauge.engines.seam import Capabilities, Setting, Wanted
from streamgauge.engines.spark import asked
from streamgauge.engines.spark.instances import SETTING
from streamgauge.engines.spark.interval import seconds
from streamgauge.engines.spark.settings import SETTINGS as MICRO_BATCH
from streamgauge.errors import InputError, Problem
from streamgauge.flow import graph
from streamgauge.flow.nodes import Flow, RunningAggregate, Source
from streamgauge.system.machine import cpus

INSTANCES = "1"
"""Of `SETTING`, unless an option says so: each one more is a task more that always runs."""
TRIGGER_LEAST_S = 5.0
"""Spark's own least (spark.sql.streaming.realTimeMode.minBatchDuration)."""
CHUNK_US = 5_000
"""Events wait for half a chunk in the mean, which is to be little beside ten milliseconds. Shorter ones cost: of 2 ms
the generator took 66 % of a core to produce 20 k events/s, of 5 ms 38 %.
"""
_ALIKE = ("driver_memory", "jit")

SETTINGS = (
    Setting(
        "trigger",
        "1 minute",
        "how often it keeps how far it is, at least 5 seconds; rows are held up then, and at no other time",
    ),
    *(setting for setting in MICRO_BATCH if setting.name in _ALIKE),
)

WHY_NOT = {
    "WindowAggregate": "its windows give their values so far, as updates, which nothing can follow",
    "SessionAggregate": "real-time mode has no session windows",
    "WindowJoin": "real-time mode joins no two streams",
    "IntervalJoin": "real-time mode joins no two streams",
    "Distinct": "the earliest of each key is found in Python here, and real-time mode runs no Python",
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
    nodes=("Source", "Select", "Where", "Explode", "InWindows", "RunningAggregate"),
    sink_modes=("append", "update"),
    transports=("kafka",),
    runs_streams=True,
    computes_truth=False,
    needs_java=True,
    settings=SETTINGS,
    why_not=WHY_NOT,
    instead="spark",
    chunk_us=CHUNK_US,
    early=True,
)


def slots(flow: Flow, options: Mapping[str, str]) -> int:
    """How many tasks run at once, all of a query's: one for each source, and those behind each exchange."""
    sources = {node.name for node in graph.operators(flow) if isinstance(node, Source)}
    exchanges = sum(isinstance(node, RunningAggregate) for node in graph.operators(flow))
    return len(sources) + exchanges * int(options.get(SETTING, INSTANCES))


def master_for(flow: Flow, options: Mapping[str, str], processors: int) -> str:
    """A local Spark on so many processors, in which all tasks can run at once."""
    return f"local[{max(processors, slots(flow, options))}]"


def check(wanted: Wanted) -> None:
    """Refuse what real-time mode would refuse, or would wait for without end; InputError with every problem."""
    problems = list(asked.problems(wanted, SETTINGS, {"trigger": _check_trigger}))
    if wanted.partitions > 1:
        rule = "must be 1 in real-time mode: a value so far would be that of no event time"
        problems.append(Problem("load.generators", rule, wanted.partitions, "--generators 1"))
    if problems:
        raise InputError(problems)
    if wanted.flow is not None and (few := list(_few_slots(wanted.flow, wanted.options, wanted.master))):
        raise InputError(few)


def _few_slots(flow: Flow, options: Mapping[str, str], master: str | None) -> Iterator[Problem]:
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master or "local[*]")
    if master is None or found is None:
        return
    there = {None: 1, "*": os.cpu_count() or len(cpus())}.get(found.group(1)) or int(found.group(1))
    if there < (needed := slots(flow, options)):
        rule = f"must have a slot for each task, as all run at once in real-time mode: {needed} here"
        yield Problem("master", rule, master, f"--master local[{needed}], or leave --master out")


def _check_trigger(value: str) -> Problem | None:
    if seconds(value) >= TRIGGER_LEAST_S:
        return None
    rule = f"must be at least {TRIGGER_LEAST_S:g} seconds in real-time mode, in seconds or minutes"
    return Problem("option trigger", rule, value, '--option trigger="1 minute"')
