"""Which operators Spark's own plan counts the rows of, so that nothing need be put behind them; loads no Spark.

An array is exploded by a node of its own (`Generate`), which counts the rows that it makes. That is the operator's
count as long as no condition behind it is moved before it: then it would be given fewer rows than the operator takes.
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

_HOLD = (Process, RunningAggregate, SessionAggregate, WindowAggregate)
"""They take every row, and what counts theirs lets no condition through."""


def natively_counted(inputs: Sequence[Node]) -> frozenset[Node]:
    """The operators of one query, given what its sinks take, whose rows Spark's own nodes count.

    Where several sinks share a query, conditions of all of them are put together behind what they share: then none is.
    """
    if len(inputs) != 1:
        return frozenset()
    behind: dict[Node, list[Node]] = defaultdict(list)
    for node in graph.walk(*inputs):
        for input_ in graph.inputs(node):
            behind[input_].append(node)

    def is_left_alone(node: Node) -> bool:
        return all(
            isinstance(each, _HOLD) or (isinstance(each, InWindows | Select) and is_left_alone(each))
            for each in behind[node]
        )

    return frozenset(node for node in list(behind) + list(inputs) if isinstance(node, Explode) and is_left_alone(node))
