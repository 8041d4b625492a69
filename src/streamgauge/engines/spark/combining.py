"""Which aggregates can be joined from parts: those of panes, of batches, of what was kept before; loads no Spark."""

from __future__ import annotations

from streamgauge.flow import expressions, schema
from streamgauge.flow.nodes import RunningAggregate, WindowAggregate

JOINS = ("sum", "min", "max")
"""The functions that join parts."""


def joins(node: WindowAggregate | RunningAggregate) -> dict[str, str | None]:
    """Aggregate name to the function that joins its parts; None where it has none."""
    there = schema.columns(node.input)
    return {name: expressions.checked(text, there, node.name).combine for name, text in node.aggregates}


def stuck(node: WindowAggregate | RunningAggregate) -> list[str]:
    """The aggregates of a node that cannot be joined from parts."""
    return [name for name, how in joins(node).items() if how not in JOINS]


def can_be_joined(node: WindowAggregate | RunningAggregate) -> bool:
    """Whether every aggregate of a node can be joined from parts."""
    return not stuck(node)
