"""Lowers flow nodes to Spark DataFrame operations, one function per node.

Every relation has an engine time column `_time` beside the BIGINT lineage columns. It is dropped at the sink.
"""

from collections.abc import Callable
from functools import reduce, singledispatchmethod
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.errors import EngineError
from streamgauge.core.schema import EVENT_TIME, WINDOW_END, WINDOW_START
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    IntervalJoin,
    InWindows,
    Lookup,
    Node,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.columns import column, columns
from streamgauge.engines.spark.lowering.operators import (
    by_panes,
    first_of_all,
    first_of_each_window,
    interval_join,
    is_marked,
    top_n,
    tumbling_by_panes,
    window_of,
)
from streamgauge.engines.spark.lowering.queries import Query, last_shared, operator_of, steps_to
from streamgauge.engines.spark.lowering.row_counter import RowCounter, natively_counted
from streamgauge.engines.spark.lowering.shared_scan import fuse_aggregates, project_branches
from streamgauge.engines.spark.lowering.windows import NO_DELAY, lowering_of, sliding

TIME = "_time"
WINDOW = "_window"


class Lowering:
    """Lowers one query of a flow.

    Args:
        read: gives the streaming DataFrame of a source node (fields and lineage).
        read_packed: gives a source as packed blocks instead of rows; None if the reader cannot.
        choices: operator name to lowering name, from `--option lowering.<operator>=NAME`.
        buckets: how many parts packed lowerings cut their keys into.
        delay: the watermark delay, in Spark's format.
        counter: counts the rows that leave operators.
        in_order: whether rows arrive in event order and one task per operator gets all of them.
        uneven: whether batches read partitions or streams up to different event times.
    """

    def __init__(
        self,
        read: Callable[[Source], DataFrame],
        read_packed: Callable[[Source, Packing], DataFrame] | None,
        choices: dict[str, str],
        buckets: int,
        delay: str = NO_DELAY,
        counter: RowCounter | None = None,
        in_order: bool = False,
        uneven: bool = False,
    ) -> None:
        self._read, self._read_packed, self._choices, self._buckets = read, read_packed, choices, buckets
        self._delay, self._counter, self._in_order = delay, counter or RowCounter(), in_order
        self._uneven = uneven
        self._counted_by_spark: frozenset[Node] = frozenset()

    def output(self, query: Query) -> DataFrame:
        """The output of a query: the columns of its sink, or one nullable struct column per sink."""
        inputs = [sink.input for sink in query.sinks]
        self._counted_by_spark = natively_counted(inputs)
        if len(inputs) == 1:
            return self.lower(inputs[0]).drop(TIME)
        aggregates = [each for each in inputs if isinstance(each, RunningAggregate)]
        if len(aggregates) == len(inputs) and len(set(aggregates)) > 1:
            shared = last_shared(aggregates)
            return fuse_aggregates(self.lower(shared), shared, aggregates, self._counter)
        operator = operator_of(inputs[0])
        branches = [(steps_to(each, operator), schema.columns(each)) for each in inputs]
        return project_branches(self.lower(operator), branches)

    def lower(self, node: Node) -> DataFrame:
        """The rows that leave an operator."""
        frame = self._lowered(node)
        if isinstance(node, Select):
            self._counter.alike(node.name, node.input.name)
            return frame
        return self._counter.behind(node.name, frame)

    @singledispatchmethod
    def _lowered(self, node: Any) -> DataFrame:
        raise EngineError(f"spark has no lowering for the node {type(node).__name__}")

    @_lowered.register
    def _(self, node: Source) -> DataFrame:
        frame = self._read(node)
        return frame.withColumn(TIME, F.timestamp_micros(EVENT_TIME)) if EVENT_TIME in frame.columns else frame

    @_lowered.register
    def _(self, node: Select) -> DataFrame:
        frame = self.lower(node.input)
        time = [F.col(TIME)] if TIME in frame.columns else []
        return frame.select(*[F.expr(text).alias(name) for name, text in node.columns], *time)

    @_lowered.register
    def _(self, node: Where) -> DataFrame:
        return self.lower(node.input).where(node.predicate)

    @_lowered.register
    def _(self, node: WindowAggregate) -> DataFrame:
        return self._windows(node).select(*columns(schema.columns(node)), TIME)

    @_lowered.register
    def _(self, node: RunningAggregate) -> DataFrame:
        return self._so_far(node, node.input) if isinstance(node.input, InWindows) else self._values(node)

    def _windows(self, node: WindowAggregate) -> DataFrame:
        """The columns of the windows that have closed, and `_time`."""
        way = lowering_of(node, self._choices)
        if way == "sliding":
            return self._processed(_sliding(node), held=self._delay != NO_DELAY)
        if way == "panes" and node.window.panes == 1:
            return tumbling_by_panes(self._marked(node.input), node, TIME)
        if way == "panes":
            return with_borders(by_panes(self._marked(node.input), node, TIME, WINDOW))
        return with_borders(aggregated(self._marked(node.input), node, window_of(node.window, TIME).alias(WINDOW)))

    def _values(self, node: RunningAggregate) -> DataFrame:
        """Keys and aggregates over all events so far."""
        return aggregated(self.lower(node.input), node)

    def _so_far(self, node: RunningAggregate, each: InWindows) -> DataFrame:
        """Current values of open windows by Spark's `window`, so that Spark drops the state of closed ones."""
        keys = columns(key for key in node.keys if key not in (WINDOW_START, WINDOW_END))
        grouped = self._marked(each.input).groupBy(window_of(each.windows, TIME).alias(WINDOW), *keys)
        return grouped.agg(*[F.expr(text).alias(name) for name, text in node.aggregates]).select(
            *keys, *_borders(), *columns(name for name, _ in node.aggregates)
        )

    @_lowered.register
    def _(self, node: WindowJoin) -> DataFrame:
        if lowering_of(node, self._choices) == "packed":
            from streamgauge.engines.spark.lowering.packed_join import packed_join

            assert self._read_packed is not None
            return packed_join(node, self.lower, self._read_packed, self._buckets)
        left, right = (self._windowed(side, node.window) for side in (node.left, node.right))
        joined = left.join(right, [WINDOW, *node.keys], "inner")
        retained_columns = columns(name for name in joined.columns if name not in (WINDOW, TIME))
        return joined.select(*retained_columns, *_borders(), *_window_time())

    @_lowered.register
    def _(self, node: Explode) -> DataFrame:
        frame, array = self.lower(node.input), F.expr(node.array)
        marked = self._counter.column(node.name) if node in self._counted_by_spark else ""
        if node.ordinal is None:
            made = marked or node.column
            return frame.select("*", F.explode(array).alias(made)).withColumnRenamed(made, node.column)
        index = marked or node.ordinal
        rows = frame.select("*", F.posexplode(array).alias(index, node.column))
        return rows.withColumn(index, column(index).cast("bigint")).withColumnRenamed(index, node.ordinal)

    @_lowered.register
    def _(self, node: Lookup) -> DataFrame:
        frame = self.lower(node.input)
        table = frame.sparkSession.createDataFrame(node.table.to_arrow())
        joined = frame.join(F.broadcast(table), list(node.keys), node.how)
        return joined.select(*columns(dict.fromkeys([*frame.columns, *table.columns])))

    @_lowered.register
    def _(self, node: Union) -> DataFrame:
        return reduce(DataFrame.unionByName, [self.lower(input_) for input_ in node.inputs])

    @_lowered.register
    def _(self, node: SessionAggregate) -> DataFrame:
        session = F.session_window(TIME, f"{node.session.gap_us} microseconds").alias(WINDOW)
        added = aggregated(self._marked(node.input), node, session)
        names = columns(name for name, _ in node.aggregates)
        return added.select(*columns(node.keys), *_borders(), *names, *_window_time())

    @_lowered.register
    def _(self, node: Distinct) -> DataFrame:
        if node.window is None:
            return first_of_all(self.lower(node.input), node, TIME, self._in_order)
        first = first_of_each_window(self._marked(node.input), node, TIME, window_of(node.window, TIME).alias(WINDOW))
        return first.select("*", *_borders(), *_window_time()).drop(WINDOW)

    @_lowered.register
    def _(self, node: IntervalJoin) -> DataFrame:
        return interval_join(self._marked(node.left), self._marked(node.right), node, TIME)

    @_lowered.register
    def _(self, node: TopN) -> DataFrame:
        return top_n(self._marked(node.input), node, TIME)

    @_lowered.register
    def _processed(self, node: Process, held: bool = False) -> DataFrame:
        """`held`: whether rows wait for the watermark, even if batches are cut at one event time."""
        from streamgauge.engines.spark.lowering.process_operator import process

        read_packed, delay = (None, self._delay) if held or self._uneven else (self._read_packed, None)
        return process(node, self.lower, read_packed, self._buckets, delay)

    def _windowed(self, node: Node, window: Window) -> DataFrame:
        return self._marked(node).withColumn(WINDOW, window_of(window, TIME)).drop(TIME)

    def _marked(self, node: Node) -> DataFrame:
        """The input with a watermark. It is set here, not at the source, because it cannot be set twice."""
        frame = self.lower(node)
        return frame if is_marked(frame, TIME) else frame.withWatermark(TIME, self._delay)


def aggregated(frame: DataFrame, node: WindowAggregate | RunningAggregate | SessionAggregate, *more: Any) -> DataFrame:
    """The aggregates of a node by its keys, and by more columns."""
    return frame.groupBy(*more, *columns(node.keys)).agg(*[F.expr(text).alias(name) for name, text in node.aggregates])


def with_borders(windows: DataFrame) -> DataFrame:
    """Windows with `window_start` and `window_end`, and `_time`, the last microsecond."""
    return windows.select("*", *_borders(), *_window_time())


def _sliding(node: WindowAggregate) -> Process:
    process = sliding(node)
    if process is None:
        raise EngineError(
            f"lowering.{node.name}=sliding reduces counts, sums, minima and maxima of single columns, and {node.name} "
            f"has others: use --option lowering.{node.name}=window"
        )
    return process


def _borders() -> list[Any]:
    return [F.col(f"{WINDOW}.start").alias(WINDOW_START), F.col(f"{WINDOW}.end").alias(WINDOW_END)]


def _window_time() -> list[Any]:
    return [F.window_time(F.col(WINDOW)).alias(TIME)]


def kinds() -> tuple[type, ...]:
    """The node kinds that have a lowering."""
    return tuple(kind for kind in vars(Lowering)["_lowered"].dispatcher.registry if kind is not object)
