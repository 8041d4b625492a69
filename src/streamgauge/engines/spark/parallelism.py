"""Where an operator has instances of its own on Spark, and which setting says how many; loads no Spark.

Spark fuses operators into stages, and a stage has as many tasks as what it reads has partitions. So instances are only
chosen where rows are exchanged before an operator, and there is one number for all exchanges of a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    IntervalJoin,
    InWindows,
    Lookup,
    NativeJob,
    Node,
    Process,
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

SETTING = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class ParallelismOptions:
    """Whether a number of instances can be set for an operator, and why, or why not."""

    acts: bool
    reason: str


NOT_VISIBLE = (
    "an own job's plan is not looked into; more instances work where its function exchanges rows, as for groupBy"
)


def unless_set(readers: int) -> int:
    """How many of `SETTING` a run has unless an option says so: as many as read its input, two at least."""
    return max(2, readers)


def parallelism_options(node: Node) -> ParallelismOptions:
    """Whether `SETTING` decides how many instances an operator has."""
    match node:
        case WindowAggregate() | RunningAggregate() | SessionAggregate() | WindowJoin() | IntervalJoin():
            return ParallelismOptions(True, "its rows are exchanged by key before it")
        case Distinct() | TopN():
            return ParallelismOptions(True, "its rows are exchanged by key before it")
        case Process() if node.keys:
            reason = "its rows are exchanged by key before it; no more instances work than there are buckets"
            return ParallelismOptions(True, reason)
        case Source():
            return ParallelismOptions(False, "a source has a task for each generator (--generators)")
        case Lookup():
            return ParallelismOptions(False, "its table is sent to every task, so it is fused with what it reads")
        case NativeJob():
            return ParallelismOptions(False, NOT_VISIBLE)
        case Select() | Where() | Explode() | InWindows() | Union() | Process():
            return ParallelismOptions(False, "fused with what it reads: it has that one's tasks")
        case _:
            assert_never(node)
