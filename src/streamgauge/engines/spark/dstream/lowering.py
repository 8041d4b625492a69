"""Lowers the operators of one DStream batch: row-by-row operators as usual, stateful ones with stored state.

There is no watermark. A batch states up to which event time all events have arrived. Windows that end in this batch's
range are complete, and are computed from this and earlier batches' parts.

The state is in Spark's memory: rows or partial aggregates of open windows, and running values. Every frame of it is a
local checkpoint, so nothing is read twice and plans do not grow. A lost executor loses its state, as with any DStream
without a checkpoint.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.dataflow.nodes import Node, RunningAggregate, Source, Window, WindowAggregate
from streamgauge.engines.spark.lowering.columns import column, columns
from streamgauge.engines.spark.lowering.dataframe import (
    TIME,
    WINDOW,
    Lowering,
    aggregated,
    with_borders,
)
from streamgauge.engines.spark.lowering.operators import merged_aggregates, panes_of, window_of, windows_of
from streamgauge.engines.spark.lowering.windows import lowering_of
from streamgauge.engines.spark.session.session import SHUFFLE_PARTITIONS

TOUCHED = "_touched"


@dataclass(frozen=True)
class Batch:
    """A numbered batch of a stream. Event times in microseconds:

    - `from_us`: all earlier events were in previous batches.
    - `to_us`: all earlier events are in this or previous batches.
    - `latest_us`: all events of this batch are earlier.
    """

    number: int
    from_us: int
    to_us: int
    latest_us: int


@dataclass(frozen=True)
class Closing:
    """The windows that close in a batch, by their first and last end. If none closes, the last end is before the
    first. `open_us`: the start of the first window that stays open.
    """

    first_us: int
    last_us: int
    open_us: int

    @property
    def any(self) -> bool:
        return self.first_us <= self.last_us


def closing(window: Window, batch: Batch) -> Closing:
    """The windows that close in a batch. Windows end at the epoch plus range plus a multiple of the slide."""

    def last_until(when_us: int) -> int:
        return (when_us - window.range_us) // window.slide_us * window.slide_us + window.range_us

    last_us = last_until(batch.to_us)
    return Closing(last_until(batch.from_us) + window.slide_us, last_us, last_us + window.slide_us - window.range_us)


class StateStore:
    """The frames of one stream's operators, by name."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[int, DataFrame]]] = defaultdict(list)
        self._values: dict[str, DataFrame] = {}
        self._old: list[DataFrame] = []

    def add(self, operator: str, frame: DataFrame, latest_us: int) -> DataFrame:
        """Stores a batch's part, whose events are before `latest_us`. Returns the stored frame."""
        self._parts[operator].append((latest_us, frame.localCheckpoint()))
        return self._parts[operator][-1][1]

    def all(self, operator: str) -> DataFrame:
        """The union of all stored parts."""
        return reduce(DataFrame.unionByName, [part for _, part in self._parts[operator]])

    def forget(self, operator: str, before_us: int) -> None:
        """Marks parts before this time for release after this batch."""
        self._old += [part for latest_us, part in self._parts[operator] if latest_us <= before_us]
        self._parts[operator] = [each for each in self._parts[operator] if each[0] > before_us]

    def values(self, operator: str) -> DataFrame | None:
        """The stored values, or None."""
        return self._values.get(operator)

    def replace(self, operator: str, frame: DataFrame) -> DataFrame:
        """Stores these values. The previous ones are released after this batch."""
        if operator in self._values:
            self._old.append(self._values[operator])
        self._values[operator] = frame.localCheckpoint()
        return self._values[operator]

    def release(self) -> None:
        """Frees unneeded frames after a batch."""
        for frame in self._old:
            rows = frame._jdf.queryExecution().logical().rdd()  # of a local checkpoint, which the frame does not expose
            # `unpersist` of a checkpointed RDD would log a warning each time.
            rows.context().unpersistRDD(rows.id(), False)
        self._old = []


class BatchLowering(Lowering):
    """Lowers a query of a flow for one batch.

    Args:
        read: gives the rows of a source in this batch.
        choices: operator name to lowering name, as for `Lowering`.
        state: the state of earlier batches.
        batch: this batch.
    """

    def __init__(
        self, read: Callable[[Source], DataFrame], choices: dict[str, str], state: StateStore, batch: Batch
    ) -> None:
        super().__init__(read, None, choices, buckets=1)
        self._state, self._batch = state, batch

    def _marked(self, node: Node) -> DataFrame:
        """Batches have no watermark."""
        return self.lower(node)

    def _windows(self, node: WindowAggregate) -> DataFrame:
        by_panes = lowering_of(node, self._choices, structured=False) == "panes"
        rows = self.lower(node.input)
        part = panes_of(rows, node, TIME) if by_panes else rows
        pending, ends = self._with_state(node.name, part, node.window)
        if by_panes:
            return with_borders(_closed(windows_of(pending, node, TIME, WINDOW), ends))
        closed = _closed(pending.withColumn(WINDOW, window_of(node.window, TIME)), ends)
        return with_borders(aggregated(closed, node, WINDOW))

    def _windowed(self, node: Node, window: Window) -> DataFrame:
        pending, ends = self._with_state(node.name, self.lower(node), window)
        return _closed(pending.withColumn(WINDOW, window_of(window, TIME)), ends).drop(TIME)

    def _values(self, node: RunningAggregate) -> DataFrame:
        """The values of keys with rows in this batch. Other keys keep their stored values."""
        part = aggregated(self.lower(node.input), node).withColumn(TOUCHED, F.lit(True))
        before = self._state.values(node.name)
        # Merged even without earlier state, so that all batches have the same schema and nullability.
        both = part if before is None else part.unionByName(before.withColumn(TOUCHED, F.lit(False)))
        whole = both.groupBy(*columns(node.keys)).agg(*merged_aggregates(node), F.max(TOUCHED).alias(TOUCHED))
        # Cast, because a sum of sums may be wider.
        typed = [column(field.name).cast(field.dataType).alias(field.name) for field in part.schema]
        return self._state.replace(node.name, whole.select(*typed)).where(TOUCHED).drop(TOUCHED)

    def _with_state(self, operator: str, part: DataFrame, window: Window) -> tuple[DataFrame, Closing]:
        """The rows of the closing windows; if none closes, this batch's part, for its columns."""
        ends = closing(window, self._batch)
        pending = self._state.add(operator, part, self._batch.latest_us)
        if ends.any:
            # Every part has one task per partition, and a window may have many parts.
            tasks = part.sparkSession.conf.get(SHUFFLE_PARTITIONS)
            assert tasks is not None
            pending = self._state.all(operator).coalesce(int(tasks))
        self._state.forget(operator, ends.open_us)
        return pending, ends


def _closed(rows: DataFrame, ends: Closing) -> DataFrame:
    """The rows of the windows that close."""
    if not ends.any:
        return rows.where(F.lit(False))
    first, last = (F.timestamp_micros(F.lit(end_us)) for end_us in (ends.first_us, ends.last_us))
    return rows.where(F.col(f"{WINDOW}.end").between(first, last))
