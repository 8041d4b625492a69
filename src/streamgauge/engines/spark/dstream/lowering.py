"""The operators of one batch of a DStream: those that are row by row as ever, the others over what batches have kept.

Nothing here waits for a watermark of Spark's. A batch says up to which event time all events are there, so the windows
that end until then, and did not before, are whole: over the parts that they need, those of earlier batches included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.dataflow.nodes import Node, RunningAggregate, Source, Window, WindowAggregate
from streamgauge.engines.spark.columns import column, columns
from streamgauge.engines.spark.dstream.state import Batch, Closing, StateStore, closing
from streamgauge.engines.spark.lowering.dataframe import TIME, WINDOW, Lowering, aggregated, lowering_of, window_of
from streamgauge.engines.spark.lowering.panes import merged_aggregates, panes_of, windows_of
from streamgauge.engines.spark.parallelism import SETTING

TOUCHED = "_touched"


class BatchLowering(Lowering):
    """Lowers a query of a flow for one batch.

    Args:
        read: gives the rows of a source that are in this batch.
        choices: operator name to lowering name, as for `Lowering`.
        state: what the batches before have left, in their order.
        batch: this one.
    """

    def __init__(
        self, read: Callable[[Source], DataFrame], choices: dict[str, str], state: StateStore, batch: Batch
    ) -> None:
        super().__init__(read, _never, choices, buckets=1)
        self._state, self._batch = state, batch

    def _marked(self, node: Node) -> DataFrame:
        """Without a watermark: a batch has none."""
        return self.lower(node)

    def _windows(self, node: WindowAggregate) -> DataFrame:
        by_panes = lowering_of(node, self._choices) == "panes"
        rows = self.lower(node.input)
        part = panes_of(rows, node, TIME) if by_panes else rows
        pending, ends = self._with_state(node.name, part, node.window)
        if by_panes:
            return _closed(windows_of(pending, node, TIME, WINDOW), ends)
        return aggregated(_closed(pending.withColumn(WINDOW, window_of(node.window)), ends), node, WINDOW)

    def _windowed(self, node: Node, window: Window) -> DataFrame:
        pending, ends = self._with_state(node.name, self.lower(node), window)
        return _closed(pending.withColumn(WINDOW, window_of(window)), ends).drop(TIME)

    def _values(self, node: RunningAggregate) -> DataFrame:
        """Those of the keys that have rows in this batch; the others' are kept as they are."""
        part = aggregated(self.lower(node.input), node).withColumn(TOUCHED, F.lit(True))
        before = self._state.values(node.name)
        # Joined even where there is nothing to join: every batch has rows of one type then, nulls or not.
        both = part if before is None else part.unionByName(before.withColumn(TOUCHED, F.lit(False)))
        grouped = both.groupBy(*columns(node.keys))
        whole = grouped.agg(*merged_aggregates(node), F.max(TOUCHED).alias(TOUCHED))
        now = self._state.replace(node.name, whole.select(*_cast_to(part)))
        return now.where(TOUCHED).drop(TOUCHED)

    def _with_state(self, operator: str, part: DataFrame, window: Window) -> tuple[DataFrame, Closing]:
        """What the windows that close are made of; where none does, this batch's part, for its columns alone."""
        ends = closing(window, self._batch)
        pending = self._state.add(operator, part, self._batch.latest_us)
        if ends.any:
            # A part has a task for each of its partitions, and a window may have many parts.
            tasks = part.sparkSession.conf.get(SETTING)
            assert tasks is not None
            pending = self._state.all(operator).coalesce(int(tasks))
        self._state.forget(operator, ends.open_us)
        return pending, ends


def _closed(rows: DataFrame, ends: Closing) -> DataFrame:
    """Those of the windows that close."""
    if not ends.any:
        return rows.where(F.lit(False))
    first, last = (F.timestamp_micros(F.lit(end_us)) for end_us in (ends.first_us, ends.last_us))
    return rows.where(F.col(f"{WINDOW}.end").between(first, last))


def _cast_to(frame: DataFrame) -> list[Any]:
    """Columns with the types that they have there: a sum of sums may be wider than they are."""
    return [column(field.name).cast(field.dataType).alias(field.name) for field in frame.schema]


def _never(*_: Any) -> DataFrame:
    raise AssertionError("blocks are for operators that DStreams do not have here")
