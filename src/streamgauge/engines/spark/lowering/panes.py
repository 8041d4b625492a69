"""The window aggregate by panes: each event is aggregated once instead of once per window.

Spark's `window` makes a row for every window and groups by a struct, which its fast hash map does not support. Here
events are grouped by the end of their pane, a plain timestamp, and a second aggregate merges closed panes to windows.
This works only for mergeable aggregates (sum, count, min, max), or if windows do not overlap.
"""

from __future__ import annotations

from math import gcd

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.core.errors import EngineError
from streamgauge.core.schema import WINDOW_END, WINDOW_START
from streamgauge.core.units import backquote
from streamgauge.dataflow.nodes import RunningAggregate, WindowAggregate
from streamgauge.engines.spark.columns import columns
from streamgauge.engines.spark.lowering.mergeable import merge_functions, non_mergeable

MARK = {"spark.watermarkDelayMs": 0}
"""Spark's metadata of a column with a watermark. A computed column loses it, so it is set again."""


def by_panes(marked: DataFrame, node: WindowAggregate, time: str, window: str) -> DataFrame:
    """Keys, `window` and the aggregates of a frame with a watermark on `time`. Raises EngineError."""
    if names := non_mergeable(node):
        raise EngineError(
            f"lowering.{node.name}=panes merges partial aggregates, which {', '.join(names)} does not have: "
            f"use --option lowering.{node.name}=window"
        )
    return windows_of(panes_of(marked, node, time), node, time, window)


def tumbling_by_panes(marked: DataFrame, node: WindowAggregate, time: str) -> DataFrame:
    """The columns of windows that do not overlap, and `time`: each is its only pane, so nothing is merged."""
    panes = panes_of(marked, node, time)
    end = F.col(time)
    borders = {
        WINDOW_START: F.timestamp_micros(F.unix_micros(end) - F.lit(node.window.range_us)),
        WINDOW_END: F.timestamp_micros(F.unix_micros(end)),
    }
    inside = F.timestamp_micros(F.unix_micros(end) - F.lit(1)).alias(time, metadata=MARK)
    aggregates = columns(name for name, _ in node.aggregates)
    return panes.select(*columns(node.keys), *(at.alias(name) for name, at in borders.items()), *aggregates, inside)


def panes_of(marked: DataFrame, node: WindowAggregate, time: str) -> DataFrame:
    """Keys and the aggregates of each pane; `time` becomes its end."""
    pane_us = gcd(node.window.range_us, node.window.slide_us)
    micros = F.unix_micros(time)
    end = F.timestamp_micros(micros - F.pmod(micros, F.lit(pane_us)) + F.lit(pane_us))
    return (
        marked.withColumn(time, end.alias(time, metadata=MARK))
        .groupBy(time, *columns(node.keys))
        .agg(*[F.expr(text).alias(name) for name, text in node.aggregates])
    )


def windows_of(panes: DataFrame, node: WindowAggregate, time: str, window: str) -> DataFrame:
    """Keys, `window` and the aggregates of windows, merged from panes. A pane may occur several times."""
    # The last microsecond of a pane lies in exactly the windows that contain its events.
    inside = F.timestamp_micros(F.unix_micros(time) - F.lit(1)).alias(time, metadata=MARK)
    slid = F.window(time, f"{node.window.range_us} microseconds", f"{node.window.slide_us} microseconds")
    return panes.withColumn(time, inside).groupBy(slid.alias(window), *columns(node.keys)).agg(*merged_aggregates(node))


def merged_aggregates(node: WindowAggregate | RunningAggregate) -> list[Column]:
    """Every aggregate of a node, merged from partials."""
    return [F.expr(f"{how}({backquote(name)})").alias(name) for name, how in merge_functions(node).items()]
