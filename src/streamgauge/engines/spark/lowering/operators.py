"""Operators that take several calls of Spark: windows by panes, the interval join, first rows of keys, and top n.

A function for each takes frames with a watermark (`marked`) and gives a frame with one on `time`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.core.clock import US
from streamgauge.core.errors import EngineError
from streamgauge.core.schema import WINDOW_END, WINDOW_START
from streamgauge.core.units import backquote
from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.nodes import Distinct, IntervalJoin, RunningAggregate, TopN, Window, WindowAggregate
from streamgauge.engines.spark.lowering.columns import column, columns
from streamgauge.engines.spark.lowering.windows import merge_functions, non_mergeable, pane_width_us

_DELAY = "spark.watermarkDelayMs"
MARK = {_DELAY: 0}
"""Spark's metadata of a column with a watermark. A computed column loses it, so it is set again."""
LEFT, RIGHT = "_left_time", "_right_time"
FIRST = "_first"
ROWS, ROW, POSITION, ORDER = "_rows", "_row", "_place", "_order"


def is_marked(frame: DataFrame, time: str) -> bool:
    """Whether a frame has a watermark on `time`, so that its rows come in its order."""
    return _DELAY in frame.schema[time].metadata


def window_of(window: Window, time: str) -> Column:
    """Spark's windows of a time column."""
    return F.window(time, f"{window.range_us} microseconds", f"{window.slide_us} microseconds")


def by_panes(marked: DataFrame, node: WindowAggregate, time: str, window: str) -> DataFrame:
    """Keys, `window` and the aggregates of a frame with a watermark on `time`. Raises EngineError.

    Spark's `window` makes a row for every window and groups by a struct, which its fast hash map does not support. Here
    events are grouped by the end of their pane, a plain timestamp, and a second aggregate merges closed panes.
    """
    if names := non_mergeable(node):
        raise EngineError(
            f"lowering.{node.name}=panes merges partial aggregates, which {', '.join(names)} does not have: "
            f"use --option lowering.{node.name}=window"
        )
    return windows_of(panes_of(marked, node, time), node, time, window)


def tumbling_by_panes(marked: DataFrame, node: WindowAggregate, time: str) -> DataFrame:
    """The columns of windows that do not overlap, and `time`: each is its only pane, so nothing is merged."""
    end_us = F.unix_micros(time)
    return panes_of(marked, node, time).select(
        *columns(node.keys),
        F.timestamp_micros(end_us - F.lit(node.window.range_us)).alias(WINDOW_START),
        F.timestamp_micros(end_us).alias(WINDOW_END),
        *columns(name for name, _ in node.aggregates),
        F.timestamp_micros(end_us - F.lit(1)).alias(time, metadata=MARK),
    )


def panes_of(marked: DataFrame, node: WindowAggregate, time: str) -> DataFrame:
    """Keys and the aggregates of each pane; `time` becomes its end."""
    pane_us = pane_width_us(node.window)
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
    slid = window_of(node.window, time).alias(window)
    return panes.withColumn(time, inside).groupBy(slid, *columns(node.keys)).agg(*merged_aggregates(node))


def merged_aggregates(node: WindowAggregate | RunningAggregate) -> list[Column]:
    """Every aggregate of a node, merged from partials."""
    return [F.expr(f"{how}({backquote(name)})").alias(name) for name, how in merge_functions(node).items()]


def interval_join(left: DataFrame, right: DataFrame, node: IntervalJoin, time: str) -> DataFrame:
    """Pairs of two frames with a watermark each, by a stream-stream join.

    `time` becomes the greater of both, with the watermark.
    """
    right_side = right.withColumnsRenamed({time: RIGHT} | {key: f"_right_{key}" for key in node.keys})
    same = F.expr(
        f"{RIGHT} >= {LEFT} + {_interval(node.earliest_us)} AND {RIGHT} <= {LEFT} + {_interval(node.latest_us)}"
    )
    for key in node.keys:
        same = (column(key) == column(f"_right_{key}")) & same
    joined = left.withColumnRenamed(time, LEFT).join(right_side, same, "inner")
    return joined.select(*columns(schema.columns(node)), F.greatest(LEFT, RIGHT).alias(time, metadata=MARK))


def _interval(us: int) -> str:
    whole, part = divmod(abs(us), US)
    return f"INTERVAL '{'-' if us < 0 else ''}{whole}.{part:06d}' SECOND"


def first_of_all(frame: DataFrame, node: Distinct, time: str, sorted_already: bool = False) -> DataFrame:
    """Each key's first row by event time, emitted at once; keeps the watermark on `time`.

    `dropDuplicates` keeps the first row of a key after the exchange, so rows are sorted between the two. Spark's check
    refuses every sort of a stream and is switched off for such flows (`UNCHECKED_OPERATIONS`). Sorting within the
    partitions of a batch has no state and is safe. `sorted_already`: rows arrive by time and `ties` in a single task,
    as in real-time mode, which has no batches to sort.
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
    selected = [
        column(name) if name in node.keys else F.col(f"{FIRST}.{backquote(name)}").alias(name)
        for name in marked.columns
        if name != time
    ]
    return grouped.select(*selected, *columns(name for name in grouped.columns if name not in (FIRST, *node.keys)))


def top_n(marked: DataFrame, node: TopN, time: str) -> DataFrame:
    """Ranked rows of a frame with a watermark on `time`, which lies at the windows' ends.

    A second aggregate collects the rows of a closed window and sorts them.
    """
    ties = schema.tie_order(node)
    numbered = marked.withColumn(ORDER, _descending_key(node)).where(F.col(ORDER).isNotNull())
    rows = F.collect_list(F.struct(ORDER, *columns(ties))).alias(ROWS)
    latest = [F.max(column(name)).alias(name) for name in node.latest]
    windows = numbered.groupBy(time, *columns(node.groups)).agg(rows, *latest)
    best = F.slice(F.sort_array(ROWS), 1, node.n)
    ranked = windows.select(time, *columns([*node.groups, *node.latest]), F.posexplode(best).alias(POSITION, ROW))
    tied = [F.col(f"{ROW}.{backquote(name)}").alias(name) for name in ties]
    return ranked.select(
        *columns(node.groups), (F.col(POSITION) + 1).alias(schema.RANK), *tied, *columns(node.latest), time
    )


def _descending_key(node: TopN) -> Column:
    """A sort key that descends with `by`; null if `by` is null or NaN."""
    by = F.expr(node.by)
    if expressions.check(node.by, schema.columns(node.input), node.name) == "double":
        return F.when(~F.isnan(by), -by)
    return -by.cast("decimal(20,0)")
