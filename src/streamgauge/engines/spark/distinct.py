"""The earliest row of each key on Spark, by order of events and not of arrival.

`dropDuplicates` keeps whichever row of a batch comes first after the shuffle. So the rows of a key meet first, the
earliest of the batch is kept, and what `dropDuplicates` then sees of a key is one row a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.panes import MARK
from streamgauge.flow.nodes import Distinct

FIRST, PLACE = "_first", "_place"
Batches = Iterator[pa.RecordBatch]


def first_of_all(frame: DataFrame, node: Distinct, time: str) -> DataFrame:
    """Each key's first row, as soon as it comes; a mark on `time` is kept."""
    metadata = frame.schema[time].metadata
    earliest = frame.repartition(*node.keys).mapInArrow(_earliest(node.keys, (time, *node.ties)), frame.schema)
    if metadata:
        earliest = earliest.withColumn(time, F.col(time).alias(time, metadata=MARK))
    return earliest.dropDuplicates(list(node.keys))


def first_of_each_window(marked: DataFrame, node: Distinct, time: str, window: Column) -> DataFrame:
    """Each key's first row of each window, when the window closes: the input's columns, and the window."""
    others = [name for name in marked.columns if name not in (time, *node.keys, *node.ties)]
    ties = [name for name in node.ties if name not in node.keys]
    first = F.min(F.struct(time, *ties, *others)).alias(FIRST)
    found = marked.groupBy(window, *node.keys).agg(first)
    columns = [name for name in marked.columns if name != time]
    picked = [F.col(name if name in node.keys else f"{FIRST}.{name}").alias(name) for name in columns]
    return found.select(*picked, *[name for name in found.columns if name not in (FIRST, *node.keys)])


def _earliest(keys: tuple[str, ...], order: tuple[str, ...]) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    def keep(batches: Iterable[pa.RecordBatch]) -> Batches:
        import numpy as np

        kept: list[Any] = [batch for batch in batches if batch.num_rows]
        if not kept:
            return
        rows = pa.Table.from_batches(kept)
        rows = rows.sort_by([(name, "ascending", "at_start") for name in order])
        numbered = rows.select(list(keys)).append_column(PLACE, pa.array(np.arange(rows.num_rows)))
        firsts = numbered.group_by(list(keys), use_threads=False).aggregate([(PLACE, "min")])
        yield from rows.take(firsts[f"{PLACE}_min"]).to_batches()

    return keep
