"""The state of DStream batches in Spark's memory: rows or partial aggregates of open windows, running values.

Every frame is a local checkpoint, so nothing is read twice and plans do not grow. A lost executor loses its state, as
with any DStream without a checkpoint.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from streamgauge.dataflow.nodes import Window


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
            rows = _rows_of(frame)
            # `unpersist` of a checkpointed RDD would log a warning each time.
            rows.context().unpersistRDD(rows.id(), False)
        self._old = []


def _rows_of(frame: DataFrame) -> Any:
    """The RDD of a local checkpoint, which the frame does not expose."""
    return frame._jdf.queryExecution().logical().rdd()
