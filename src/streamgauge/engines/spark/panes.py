"""The window aggregate by panes: each event is aggregated once, not once for every window it lies in.

Spark's `window` makes a row for every window and groups by a struct, which its fast hash map does not take. Here
events are grouped by the end of their pane, a plain timestamp, and a second aggregate joins closed panes to windows.
Both are native; only aggregates that can be joined from parts (sum, count, min, max) can be done so.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.errors import EngineError
from streamgauge.flow import expressions, schema
from streamgauge.flow.nodes import WindowAggregate

MARK = {"spark.watermarkDelayMs": 0}
"""What Spark keeps in a column's metadata to know it as marked; a computed column loses it and gets it back."""
_JOINED: dict[str, Callable[[str], Column]] = {"sum": F.sum, "min": F.min, "max": F.max}


def by_panes(marked: DataFrame, node: WindowAggregate, time: str, window: str) -> DataFrame:
    """Keys, `window` and the aggregates of a marked frame; `time` is its engine time column."""
    joins = _joins(node)
    stuck = [name for name, how in joins.items() if how not in _JOINED]
    if stuck:
        raise EngineError(
            f"lowering.{node.name}=panes joins aggregates from parts, and {', '.join(stuck)} has none: "
            f"take --option lowering.{node.name}=window"
        )
    pane_us = gcd(node.window.range_us, node.window.slide_us)
    micros = F.unix_micros(time)
    end = F.timestamp_micros(micros - F.pmod(micros, F.lit(pane_us)) + F.lit(pane_us))
    keys = [F.col(key) for key in node.keys]
    panes = (
        marked.withColumn(time, end.alias(time, metadata=MARK))
        .groupBy(time, *keys)
        .agg(*[F.expr(text).alias(name) for name, text in node.aggregates])
    )
    # The last microsecond of a pane lies in exactly the windows that its events lie in.
    inside = F.timestamp_micros(F.unix_micros(time) - F.lit(1)).alias(time, metadata=MARK)
    slid = F.window(time, f"{node.window.range_us} microseconds", f"{node.window.slide_us} microseconds")
    joined = [_JOINED[how](name).alias(name) for name, how in joins.items()]
    return panes.withColumn(time, inside).groupBy(slid.alias(window), *keys).agg(*joined)


def can_be_joined(node: WindowAggregate) -> bool:
    """Whether every aggregate of a node can be joined from its panes."""
    return all(how in _JOINED for how in _joins(node).values())


def _joins(node: WindowAggregate) -> dict[str, Any]:
    """Aggregate name to the function that joins its parts."""
    there = schema.columns(node.input)
    return {name: expressions.checked(text, there, node.name).combine for name, text in node.aggregates}
