"""By what lowerings have the rows of operators counted, and what Spark's plan counts by itself.

Spark explodes an array by a separate node (`Generate`), which counts its rows. The count is right unless Spark moves a
later condition before the node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import DataFrame

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


class RowCounter:
    """Counts nothing. `row_counts.RowCounters` counts the rows that leave operators."""

    def behind(self, operator: str, frame: DataFrame, rows: str = "") -> DataFrame:
        """The frame with a counter. `rows` names a column with the number of rows, if not the rows of the frame.

        An operator for which `column` was called is not counted again.
        """
        return frame

    def column(self, operator: str) -> str:
        """The name of a column that marks an operator's rows in the plan; empty if not needed."""
        return ""

    def alike(self, operator: str, before: str) -> None:
        """States that an operator gives one row for each row of the operator `before`."""


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
