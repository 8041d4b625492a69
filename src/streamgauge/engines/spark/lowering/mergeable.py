"""Which aggregates can be joined from parts: those of panes, of batches, of what was kept before; loads no Spark."""

from __future__ import annotations

from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import RunningAggregate, WindowAggregate

MERGE_FUNCTIONS = ("sum", "min", "max")
"""The functions that join parts."""


def merge_functions(node: WindowAggregate | RunningAggregate) -> dict[str, str | None]:
    """Aggregate name to the function that joins its parts; None where it has none."""
    there = schema.columns(node.input)
    return {name: check.checked(text, there, node.name).combine for name, text in node.aggregates}


def non_mergeable(node: WindowAggregate | RunningAggregate) -> list[str]:
    """The aggregates of a node that cannot be joined from parts."""
    return [name for name, how in merge_functions(node).items() if how not in MERGE_FUNCTIONS]


def is_mergeable(node: WindowAggregate | RunningAggregate) -> bool:
    """Whether every aggregate of a node can be joined from parts."""
    return not non_mergeable(node)
