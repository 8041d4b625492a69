"""How Spark times an isolated operator. Does not load Spark."""

from __future__ import annotations

from streamgauge.dataflow.nodes import Node, Process

CLASS_ONLY, DIFFERENCE = "class_alone", "difference"
METHODS = {
    DIFFERENCE: "Spark in batch with one task: the time with the operator over a slice in memory, minus the time of "
    "only reading that slice, minus the same difference for an empty slice. Plans are made beforehand, results are "
    "discarded, and stateful operators begin each slice without state",
    CLASS_ONLY: "the keyed process's class alone, in Python, over the slices in order. It keeps its state. Spark's "
    "exchange, blocks and state store are not included, and nothing is subtracted",
}


def method_of(node: Node) -> str:
    """The method for an operator: a keyed process would lose its state in batch."""
    return CLASS_ONLY if isinstance(node, Process) and node.keys else DIFFERENCE
