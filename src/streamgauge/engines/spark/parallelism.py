"""Which operators have a configurable parallelism on Spark. Does not load Spark.

Spark fuses operators into stages, and a stage has one task per input partition. So parallelism can only be set for
operators that follow an exchange, and one setting applies to all exchanges of a session.
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
    Node,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    UserJobNode,
    Where,
    WindowAggregate,
    WindowJoin,
)

SETTING = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class ParallelismOptions:
    """Whether the parallelism of an operator can be set, and why."""

    acts: bool
    reason: str


NOT_VISIBLE = (
    "the plan of a user job is not analysed; the setting applies where its function exchanges rows, as in groupBy"
)


def unless_set(readers: int) -> int:
    """The default of `SETTING`: the number of input readers, at least two."""
    return max(2, readers)


def parallelism_options(node: Node) -> ParallelismOptions:
    """Whether `SETTING` determines the parallelism of an operator."""
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
        case UserJobNode():
            return ParallelismOptions(False, NOT_VISIBLE)
        case Select() | Where() | Explode() | InWindows() | Union() | Process():
            return ParallelismOptions(False, "fused with what it reads: it has that one's tasks")
        case _:
            assert_never(node)
