"""The top n rows of each window on Spark: a second aggregate collects a closed window's rows and sorts them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.core.units import backquote
from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.nodes import TopN
from streamgauge.engines.spark.columns import column, columns

ROWS, ROW, POSITION, ORDER = "_rows", "_row", "_place", "_order"


def top_n(marked: DataFrame, node: TopN, time: str) -> DataFrame:
    """Ranked rows of a frame with a watermark on `time`, which lies at the windows' ends."""
    ties = schema.tie_order(node)
    numbered = marked.withColumn(ORDER, _descending_key(node)).where(F.col(ORDER).isNotNull())
    rows = F.collect_list(F.struct(ORDER, *columns(ties))).alias(ROWS)
    latest = [F.max(column(name)).alias(name) for name in node.latest]
    windows = numbered.groupBy(time, *columns(node.groups)).agg(rows, *latest)
    best = F.slice(F.sort_array(ROWS), 1, node.n)
    ranked = windows.select(time, *columns([*node.groups, *node.latest]), F.posexplode(best).alias(POSITION, ROW))
    tied = [F.col(f"{ROW}.{backquote(name)}").alias(name) for name in ties]
    rank = (F.col(POSITION) + 1).alias(schema.RANK)
    return ranked.select(*columns(node.groups), rank, *tied, *columns(node.latest), time)


def _descending_key(node: TopN) -> Column:
    """A sort key that descends with `by`; null if `by` is null or NaN."""
    by = F.expr(node.by)
    if expressions.check(node.by, schema.columns(node.input), node.name) == "double":
        return F.when(~F.isnan(by), -by)
    return -by.cast("decimal(20,0)")
