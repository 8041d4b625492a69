"""Which aggregates can be merged from partials of panes, batches or stored state. Does not load Spark."""

from __future__ import annotations

from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import RunningAggregate, WindowAggregate

MERGE_FUNCTIONS = ("sum", "min", "max")
"""The functions that merge partials."""


def merge_functions(node: WindowAggregate | RunningAggregate) -> dict[str, str | None]:
    """Aggregate name to the function that merges its partials; None without one."""
    available = schema.columns(node.input)
    return {name: check.checked(text, available, node.name).combine for name, text in node.aggregates}


def non_mergeable(node: WindowAggregate | RunningAggregate) -> list[str]:
    """The aggregates of a node that cannot be merged from partials."""
    return [name for name, how in merge_functions(node).items() if how not in MERGE_FUNCTIONS]


def is_mergeable(node: WindowAggregate | RunningAggregate) -> bool:
    """Whether every aggregate of a node can be merged from partials."""
    return not non_mergeable(node)
