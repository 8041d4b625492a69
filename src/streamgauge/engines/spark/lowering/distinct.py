"""The earliest row of each key on Spark, by event time instead of arrival.

`dropDuplicates` keeps the first row of a key after the exchange, so rows are sorted between the two. Spark's check
refuses every sort of a stream and is switched off for such flows (`UNCHECKED_OPERATIONS`). Sorting within the
partitions of a batch has no state and is safe.

Real-time mode has no batches to sort. There, one task per operator gets all rows in event order.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.core.units import backquote
from streamgauge.dataflow.nodes import Distinct
from streamgauge.engines.spark.columns import column, columns

FIRST = "_first"


def first_of_all(frame: DataFrame, node: Distinct, time: str, sorted_already: bool = False) -> DataFrame:
    """Each key's first row, emitted at once; keeps the watermark on `time`.

    `sorted_already`: rows arrive by time and `ties` in a single task.
    """
    if not sorted_already:
        frame = frame.repartition(*columns(node.keys)).sortWithinPartitions(time, *columns(node.ties))
    return frame.dropDuplicates(list(node.keys))


def first_of_each_window(marked: DataFrame, node: Distinct, time: str, window: Column) -> DataFrame:
    """Each key's first row per window, when the window closes: the input's columns and the window."""
    other_columns = [name for name in marked.columns if name not in (time, *node.keys, *node.ties)]
    ties = [name for name in node.ties if name not in node.keys]
    first = F.min(F.struct(time, *columns([*ties, *other_columns]))).alias(FIRST)
    grouped = marked.groupBy(window, *columns(node.keys)).agg(first)
    of_first = [name for name in marked.columns if name not in (time, *node.keys)]
    picked = {name: F.col(f"{FIRST}.{backquote(name)}").alias(name) for name in of_first}
    selected = [picked.get(name, column(name)) for name in marked.columns if name != time]
    return grouped.select(*selected, *columns(name for name in grouped.columns if name not in (FIRST, *node.keys)))
