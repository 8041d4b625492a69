"""Where a keyed process's results go that another keyed process takes as they are: as blocks, cut by its keys.

Between two such classes results would leave Python as blocks, become rows, be told their buckets, and be packed again
in Python. So the first one cuts them by the keys of the second, and between lies a shuffle of blocks. Loads no Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import Node, Process
from streamgauge.engines.operator_runtime import column_layouts
from streamgauge.engines.spark.lowering import arrow_blocks
from streamgauge.engines.spark.lowering.arrow_blocks import BLOCK, BUCKET, ONE_PANE_US, ROWS, TIME

CHAINED = f"{BUCKET} int, {TIME} bigint, {BLOCK} binary, {ROWS} bigint"
"""One row a block; `_rows` add up to how many results the process gave."""
KEYS = ("int", "bigint", "string")
"""Types of keys whose buckets Python tells."""


@dataclass(frozen=True)
class ChainSpec:
    """What the next process takes of results: its columns, and buckets of its keys."""

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    buckets: int

    def blocks(self, results: pa.Table) -> pd.DataFrame:
        """Results, at least one, as rows of `CHAINED`."""
        bucket = arrow_blocks.bucket_of([results.column(key) for key in self.keys], self.buckets)
        times = results.column(TIME).to_numpy()
        parts = list(arrow_blocks.cut(results.select(self.columns), times, bucket, self.buckets, ONE_PANE_US))
        found = pd.DataFrame(parts, columns=[BUCKET, TIME, BLOCK])
        found[ROWS] = [len(results), *[0] * (len(parts) - 1)]
        return found


def chain_into(node: Process, buckets: int) -> ChainSpec:
    """How results come to a process that `chained_operators` says takes them so."""
    return ChainSpec(tuple(column_layouts(node).sides[0].names), node.keys, buckets)


def chained_operators(inputs: Sequence[Node]) -> frozenset[Node]:
    """The processes of one query, given what its sinks take, whose results one other process takes, and nobody else.

    Classes that state times themselves are not among them: their results may be older than others' in a block.
    """
    nodes = list(dict.fromkeys(each for input_ in inputs for each in graph.walk(input_)))
    taken = Counter([*inputs, *(before for node in nodes for before in graph.inputs(node))])
    before = (_given_in_blocks(node) for node in nodes)
    return frozenset(node for node in before if node is not None and taken[node] == 1)


def _given_in_blocks(node: Node) -> Process | None:
    """What a process takes, where that is a process that can cut its results by the first one's keys."""
    if not isinstance(node, Process) or not node.keys or len(node.inputs) > 1:
        return None
    before, kinds = node.inputs[0], schema.columns(node.inputs[0])
    if not isinstance(before, Process) or not before.keys or before.identity:
        return None
    return before if all(kinds[key] in KEYS for key in node.keys) else None
