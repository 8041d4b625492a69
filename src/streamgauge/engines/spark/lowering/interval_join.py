"""The interval join on Spark: a stream-stream join with a watermark on each side and a time condition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.clock import US
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import IntervalJoin
from streamgauge.engines.spark.columns import column, columns
from streamgauge.engines.spark.lowering.panes import MARK

LEFT, RIGHT = "_left_time", "_right_time"


def interval_join(left: DataFrame, right: DataFrame, node: IntervalJoin, time: str) -> DataFrame:
    """Pairs of two frames with watermarks; `time` becomes the greater of both, with the watermark."""
    left_side = left.withColumnRenamed(time, LEFT)
    right_side = right.withColumnsRenamed({time: RIGHT} | {key: f"_right_{key}" for key in node.keys})
    bounds = f"{RIGHT} >= {LEFT} + {_interval(node.earliest_us)} AND {RIGHT} <= {LEFT} + {_interval(node.latest_us)}"
    same = F.expr(bounds)
    for key in node.keys:
        same = (column(key) == column(f"_right_{key}")) & same
    joined = left_side.join(right_side, same, "inner")
    return joined.select(*columns(schema.columns(node)), F.greatest(LEFT, RIGHT).alias(time, metadata=MARK))


def _interval(us: int) -> str:
    whole, part = divmod(abs(us), US)
    return f"INTERVAL '{'-' if us < 0 else ''}{whole}.{part:06d}' SECOND"
