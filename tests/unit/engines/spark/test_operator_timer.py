"""Timing operators alone, as far as no Spark runs: where instances are, which method is used, the class by itself."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.schema import EVENT_TIME, Schema
from streamgauge.dataflow.builder import hop, source, table, union
from streamgauge.dataflow.nodes import Node, Source
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.engines.operator_profiler import IsolatedOperator, Slice
from streamgauge.engines.spark.operator_profiler import CLASS_ONLY, DIFFERENCE, method_of
from streamgauge.engines.spark.operator_timer import PythonTimer, SparkTimer, Timing
from streamgauge.engines.spark.parallelism import parallelism_options

NUMBERS = source("numbers", Schema.from_types(key="int", value="int"))
SEEN: list[tuple[int, int, int]] = []
"""(rows before, rows of the batch, watermark) of each call of `Counting`."""


class Counting(Processor):
    """Knows how many rows it has had."""

    def __init__(self) -> None:
        self._rows = 0

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        SEEN.append((self._rows, batch.num_rows, watermark_us))
        self._rows += batch.num_rows
        return pa.RecordBatch.from_arrays([batch.column("value"), pa.array(np.arange(batch.num_rows))], ["value", ROW])

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def counting(keys: str | tuple[str, ...]) -> Node:
    return NUMBERS.process(Counting, keys=keys, gives=Schema.from_types(value="int"), name="counting").node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Slices 0 and 2 of `numbers`; the one between has no rows."""
    for number, times in ((0, [1, 2, 2]), (2, [7, 9])):
        place = tmp_path / f"__slice={number}"
        place.mkdir()
        ones = pa.array([1] * len(times), pa.int32())
        pq.write_table(pa.table({"key": ones, "value": ones, EVENT_TIME: times}), place / "data_0.parquet")
    return tmp_path


def test_a_class_keeps_what_it_knows_from_slice_to_slice(folder: Path) -> None:
    """Rows so far, and the watermark of each slice; only the class is between the two looks at the clock."""
    SEEN.clear()
    clock = itertools.count(step=3)
    operator = IsolatedOperator("counting", counting("key"), {"numbers": str(folder)}, "__slice")
    alone = PythonTimer(operator, lambda: float(next(clock)))
    samples = [alone.sample(number) for number in range(3)]
    assert samples[1] is None
    assert [(sample.rows, sample.seconds, sample.reading_seconds) for sample in samples if sample] == [
        (3, 3.0, 0.0), (2, 3.0, 0.0),
    ]  # fmt: skip
    assert SEEN == [(0, 3, 2), (3, 2, 9)]


def test_only_a_keyed_class_is_run_by_itself() -> None:
    """A stateless one goes the way that its rows go on Spark."""
    assert {keys: method_of(counting(keys)) for keys in ("key", ())} == {"key": CLASS_ONLY, (): DIFFERENCE}


def test_one_that_fails_is_reported_once_and_ends_nothing() -> None:
    """Its reason instead of a sample; the others go on without it."""

    class Failing:
        def sample(self, number: int) -> None:
            raise ValueError("two\nlines")

    class Fine:
        def sample(self, number: int) -> None:
            return None

    timing: Any = Timing.__new__(Timing)
    timing._timed = {"failing": Failing(), "fine": Fine()}
    assert timing.slice(0) == {"failing": "lines", "fine": None}
    assert timing.slice(1) == {"fine": None}


def test_instances_are_chosen_after_exchanges_alone() -> None:
    """Everything by key or window; nothing that is fused with what it reads."""
    other = source("others", Schema.from_types(key="int"))
    names = table("names", {"key": [1], "title": ["x"]}, Schema.from_types(key="int", title="string"))
    keys = NUMBERS.select(key="key")
    windows = NUMBERS.window(hop(2, 1), keys="key").aggregate(n="count(*)")
    acting = [
        windows.node, windows.top(1, by="n").node, NUMBERS.running(keys="key", n="count(*)").node,
        NUMBERS.distinct(keys="key").node, keys.join(other, window=hop(2, 1), on="key").node,
        keys.interval_join(other, on="key", latest=1).node, counting("key"),
    ]  # fmt: skip
    fused = [
        NUMBERS.node, keys.node, NUMBERS.where("value > 1").node, NUMBERS.lookup(names, on="key").node,
        NUMBERS.explode(each="array(key, value)").node, union(keys, other).node, counting(()),
    ]  # fmt: skip
    assert [parallelism_options(node).acts for node in acting] == [True] * len(acting)
    assert [parallelism_options(node).acts for node in fused] == [False] * len(fused)


class Frame:
    """A slice in memory of so many rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.let_go = False

    def count(self) -> int:
        return self._rows

    def unpersist(self, blocking: bool) -> None:
        self.let_go = blocking


class Taking(SparkTimer):
    """Runs that take what is said, by a clock that stands still meanwhile; over frames of so many rows."""

    TOOK: ClassVar[dict[str, float]] = {"reading": 2.0, "operator": 7.0, "no reading": 0.25, "no operator": 1.0}

    def __init__(self, rows: int, fails: bool = False) -> None:
        operator = IsolatedOperator("some", NUMBERS.where("value > 1", name="some").node, {}, "__slice")
        super().__init__(None, operator, {}, 1, lambda: self.now)
        self.now, self.order, self.frame, self._fails = 0.0, list[str](), Frame(rows), fails

    def _cached_slice(self, source: Source, number: int) -> Any:
        return self.frame

    def _without_rows(self) -> dict[str, Any]:
        return {}

    def _runs(self, frames: dict[str, Any], prefix: str) -> dict[str, Any]:
        assert bool(frames) is (prefix == "")  # with rows, and without
        return {name: self._run(name) for name in (f"{prefix}reading", f"{prefix}operator")}

    def _run(self, name: str) -> Any:
        def count() -> None:
            if self._fails:
                raise ValueError("it broke")
            self.order.append(name)
            self.now += self.TOOK[name]

        return SimpleNamespace(count=count)


def test_the_time_of_the_operator_is_without_reading_and_fixed_costs() -> None:
    """7 s with it and 2 s without; over no rows 1 s and 0.25 s."""
    taking = Taking(rows=5)
    assert taking.sample(0) == Slice(5, 7.0, 2.0, 0.75)
    assert taking.sample(1) == Slice(5, 7.0, 2.0, 0.75)
    assert taking.frame.let_go


def test_the_order_changes_from_slice_to_slice() -> None:
    """What comes second finds the processor's caches as the first left them."""
    taking = Taking(rows=5)
    for number in range(3):
        taking.sample(number)
    forth = ["reading", "operator", "no reading", "no operator"]
    assert taking.order == [*reversed(forth), *forth, *reversed(forth)]


def test_a_slice_is_let_go_where_its_run_fails() -> None:
    """Or the rows of all slices to come would find the memory full."""
    taking = Taking(rows=5, fails=True)
    with pytest.raises(ValueError, match="it broke"):
        taking.sample(0)
    assert taking.frame.let_go


def test_the_watermark_is_that_of_the_input_that_has_come_farthest(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of two inputs with rows up to 2 and up to 5, all have come by 5; one without rows says nothing."""
    others = source("others", Schema.from_types(key="int", value="int"))
    there = tmp_path_factory.mktemp("others") / "__slice=0"
    there.mkdir()
    ones = pa.array([1, 1], pa.int32())
    pq.write_table(pa.table({"key": ones, "value": ones, EVENT_TIME: [4, 5]}), there / "data_0.parquet")
    node = NUMBERS.process(Counting, others, keys="key", gives=Schema.from_types(value="int"), name="counting").node
    folders = {"numbers": str(folder), "others": str(there.parent)}
    alone = PythonTimer(IsolatedOperator("counting", node, folders, "__slice"), lambda: 0.0)
    reached: list[int] = []

    def advance(sides: Any, watermark_us: int) -> tuple[()]:
        reached.append(watermark_us)
        return ()

    alone._instance = SimpleNamespace(advance=advance)  # type: ignore[assignment]
    rows = [sample.rows if (sample := alone.sample(number)) else None for number in range(3)]
    assert rows == [5, None, 2]
    assert reached == [5, 9]
