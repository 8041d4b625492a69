"""Operators whose rows Spark's plan already counts, so that they need no probe. Does not load Spark.

Spark explodes an array by a separate node (`Generate`), which counts its rows. The count is right unless Spark moves a
later condition before the node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import (
    Explode,
    InWindows,
    Node,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    WindowAggregate,
)

_BARRIERS = (Process, RunningAggregate, SessionAggregate, WindowAggregate)
"""They take every row, and what counts theirs lets no condition through."""


def natively_counted(inputs: Sequence[Node]) -> frozenset[Node]:
    """The operators whose rows Spark's nodes count. `inputs` are the inputs of a query's sinks.

    Empty if several sinks share the query, because their conditions are combined behind the shared operator.
    """
    if len(inputs) != 1:
        return frozenset()
    readers: dict[Node, list[Node]] = defaultdict(list)
    for node in graph.walk(*inputs):
        for input_ in graph.inputs(node):
            readers[input_].append(node)

    def is_unfiltered(node: Node) -> bool:
        return all(
            isinstance(each, _BARRIERS) or (isinstance(each, InWindows | Select) and is_unfiltered(each))
            for each in readers[node]
        )

    return frozenset(node for node in list(readers) + list(inputs) if isinstance(node, Explode) and is_unfiltered(node))
