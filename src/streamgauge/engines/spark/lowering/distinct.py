"""The earliest row of each key on Spark, by order of events and not of arrival.

`dropDuplicates` keeps whichever row of a key comes first after the exchange. So rows are put in order between the
exchange and it, where Spark allows no sort of a stream by its own check, which is switched off for such flows
(`UNCHECKED`): a sort of a part of a batch has no state and changes no answer.

Real-time mode has no batch that could be sorted. There all rows come through one task after the other, in the order in
which they are read, and whichever comes first is the earliest.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.core.units import backquote
from streamgauge.dataflow.nodes import Distinct
from streamgauge.engines.spark.columns import column, columns

FIRST = "_first"


def first_of_all(frame: DataFrame, node: Distinct, time: str, sorted_already: bool = False) -> DataFrame:
    """Each key's first row, as soon as it comes; a mark on `time` is kept. `sorted_already`: rows come by their time
    and `ties`, and one task takes all of them.
    """
    if not sorted_already:
        frame = frame.repartition(*columns(node.keys)).sortWithinPartitions(time, *columns(node.ties))
    return frame.dropDuplicates(list(node.keys))


def first_of_each_window(marked: DataFrame, node: Distinct, time: str, window: Column) -> DataFrame:
    """Each key's first row of each window, when the window closes: the input's columns, and the window."""
    others = [name for name in marked.columns if name not in (time, *node.keys, *node.ties)]
    ties = [name for name in node.ties if name not in node.keys]
    first = F.min(F.struct(time, *columns([*ties, *others]))).alias(FIRST)
    found = marked.groupBy(window, *columns(node.keys)).agg(first)
    of_first = [name for name in marked.columns if name not in (time, *node.keys)]
    picked = {name: F.col(f"{FIRST}.{backquote(name)}").alias(name) for name in of_first}
    own = [picked.get(name, column(name)) for name in marked.columns if name != time]
    return found.select(*own, *columns(name for name in found.columns if name not in (FIRST, *node.keys)))
