"""Operator chaining of keyed processes: results pass as blocks, split by the keys of the next process.

Otherwise blocks would be unpacked to rows, assigned to buckets, and packed again in Python. Does not load Spark.
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
"""One row per block; the sum of `_rows` is the number of results."""
KEYS = ("int", "bigint", "string")
"""Key types for which Python can compute buckets."""


@dataclass(frozen=True)
class ChainSpec:
    """The input of the next process: its columns, keys and number of buckets."""

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
    """The chain specification for a process whose input is in `chained_operators`."""
    return ChainSpec(tuple(column_layouts(node).sides[0].names), node.keys, buckets)


def chained_operators(inputs: Sequence[Node]) -> frozenset[Node]:
    """The processes whose results only one other process reads. `inputs` are the inputs of a query's sinks.

    Classes that state times themselves are excluded, because their results are not in order of time.
    """
    nodes = list(dict.fromkeys(each for input_ in inputs for each in graph.walk(input_)))
    taken = Counter([*inputs, *(before for node in nodes for before in graph.inputs(node))])
    before = (_given_in_blocks(node) for node in nodes)
    return frozenset(node for node in before if node is not None and taken[node] == 1)


def _given_in_blocks(node: Node) -> Process | None:
    """The input of a process, if it is a process that can split its results by the keys of `node`."""
    if not isinstance(node, Process) or not node.keys or len(node.inputs) > 1:
        return None
    before, kinds = node.inputs[0], schema.columns(node.inputs[0])
    if not isinstance(before, Process) or not before.keys or before.identity:
        return None
    return before if all(kinds[key] in KEYS for key in node.keys) else None
