"""What batches of DStreams leave for later ones, in Spark's memory: rows and parts of open windows, running values.

Every frame is cut off from how it was made (a local checkpoint): nothing is read twice, and plans do not grow from
batch to batch. Whoever loses an executor loses what it kept, as with any DStream that has no checkpoint.
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
    """A batch of a stream, by its number. All events before `to_us` are in it or in earlier ones, and the batch before
    had come to `from_us`; none in it is as late as `latest_us`. Event times, microseconds.
    """

    number: int
    from_us: int
    to_us: int
    latest_us: int


@dataclass(frozen=True)
class Closing:
    """The windows that close in a batch, by their ends, from first to last; `open_us`: where the first window that
    stays open begins. Where none closes, the last end lies before the first.
    """

    first_us: int
    last_us: int
    open_us: int

    @property
    def any(self) -> bool:
        return self.first_us <= self.last_us


def closing(window: Window, batch: Batch) -> Closing:
    """Windows end at multiples of their slide after their range, counted from the epoch."""

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
        """Keep a batch's part, all of which lies before `latest_us`; gives what is kept of it."""
        self._parts[operator].append((latest_us, frame.localCheckpoint()))
        return self._parts[operator][-1][1]

    def all(self, operator: str) -> DataFrame:
        """All parts that are kept, as one."""
        return reduce(DataFrame.unionByName, [part for _, part in self._parts[operator]])

    def forget(self, operator: str, before_us: int) -> None:
        """Parts that lie before are needed no more once this batch is done."""
        self._old += [part for latest_us, part in self._parts[operator] if latest_us <= before_us]
        self._parts[operator] = [each for each in self._parts[operator] if each[0] > before_us]

    def values(self, operator: str) -> DataFrame | None:
        """What was kept last; None before that."""
        return self._values.get(operator)

    def replace(self, operator: str, frame: DataFrame) -> DataFrame:
        """Keep these values, and the ones before them only until this batch is done."""
        if operator in self._values:
            self._old.append(self._values[operator])
        self._values[operator] = frame.localCheckpoint()
        return self._values[operator]

    def release(self) -> None:
        """A batch is done: free what is needed no more."""
        for frame in self._old:
            rows = _rows_of(frame)
            # The rows' own `unpersist` warns every time that they cannot be made again, as is meant.
            rows.context().unpersistRDD(rows.id(), False)
        self._old = []


def _rows_of(frame: DataFrame) -> Any:
    """The rows that a local checkpoint has put into memory; the frame itself has no word for them."""
    return frame._jdf.queryExecution().logical().rdd()
