"""Where an operator has instances of its own on Spark, and which setting says how many; loads no Spark.

Spark fuses operators into stages, and a stage has as many tasks as what it reads has partitions. So instances are only
chosen where rows are exchanged before an operator, and there is one number for all exchanges of a session.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamgauge.flow.nodes import (
    Distinct,
    IntervalJoin,
    Lookup,
    Node,
    Process,
    RunningAggregate,
    SessionAggregate,
    Source,
    TopN,
    WindowAggregate,
    WindowJoin,
)

SETTING = "spark.sql.shuffle.partitions"
_EXCHANGED = (WindowAggregate, RunningAggregate, SessionAggregate, WindowJoin, IntervalJoin, Distinct, TopN)


@dataclass(frozen=True)
class Applies:
    """Whether a number of instances can be set for an operator, and why, or why not."""

    acts: bool
    reason: str


def applies(node: Node) -> Applies:
    """Whether `SETTING` decides how many instances an operator has."""
    if isinstance(node, _EXCHANGED):
        return Applies(True, "its rows are exchanged by key before it")
    if isinstance(node, Process) and node.keys:
        return Applies(True, "its rows are exchanged by key before it; no more instances work than there are buckets")
    if isinstance(node, Source):
        return Applies(False, "a source has a task for each generator (--generators)")
    if isinstance(node, Lookup):
        return Applies(False, "its table is sent to every task, so it is fused with what it reads")
    return Applies(False, "fused with what it reads: it has that one's tasks")
