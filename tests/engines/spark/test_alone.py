"""Timing operators alone, as far as no Spark runs: where instances are, which method is used, the class by itself."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.engines.spark.alone import CLASS_ALONE, DIFFERENCE, InPython, OperatorAlone, Timing
from streamgauge.engines.spark.instances import applies
from streamgauge.events import EVENT_TIME, Schema
from streamgauge.flow.nodes import Node
from streamgauge.flow.process import ROW, Processor
from streamgauge.flow.stream import hop, source, table, union

NUMBERS = source("numbers", Schema.of(key="int", value="int"))
SEEN: list[tuple[int, int, int]] = []
"""(rows before, rows of the batch, watermark) of each call of `Counting`."""


class Counting(Processor):
    """Knows how many rows it has had."""

    def __init__(self) -> None:
        self._rows = 0

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        SEEN.append((self._rows, batch.num_rows, watermark_us))
        self._rows += batch.num_rows
        rows = pa.array(np.arange(batch.num_rows))
        return pa.RecordBatch.from_arrays([batch.column("value"), rows], ["value", ROW])

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def counting(keys: str | tuple[str, ...]) -> Node:
    return NUMBERS.process(Counting, keys=keys, gives=Schema.of(value="int"), name="counting").node


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
    operator = OperatorAlone("counting", counting("key"), {"numbers": str(folder)}, "__slice")
    alone = InPython(operator, lambda: float(next(clock)))
    samples = [alone.sample(number) for number in range(3)]
    assert samples[1] is None
    assert [(sample.rows, sample.seconds, sample.reading_seconds) for sample in samples if sample] == [
        (3, 3.0, 0.0), (2, 3.0, 0.0),
    ]  # fmt: skip
    assert SEEN == [(0, 3, 2), (3, 2, 9)]


def test_only_a_keyed_class_is_run_by_itself() -> None:
    """A stateless one goes the way that its rows go on Spark."""
    methods = {keys: OperatorAlone("counting", counting(keys), {}, "__slice").method for keys in ("key", ())}
    assert methods == {"key": CLASS_ALONE, (): DIFFERENCE}


def test_one_that_fails_is_told_once_and_ends_nothing() -> None:
    """Its reason instead of a sample; the others go on without it."""

    class Failing:
        def sample(self, number: int) -> None:
            raise ValueError("two\nlines")

    class Fine:
        def sample(self, number: int) -> None:
            return None

    timing = Timing.__new__(Timing)
    timing._timed = {"failing": Failing(), "fine": Fine()}  # type: ignore[dict-item]
    assert timing.slice(0) == {"failing": "lines", "fine": None}
    assert timing.slice(1) == {"fine": None}


def test_instances_are_chosen_after_exchanges_alone() -> None:
    """Everything by key or window; nothing that is fused with what it reads."""
    other = source("others", Schema.of(key="int"))
    names = table("names", {"key": [1], "title": ["x"]}, Schema.of(key="int", title="string"))
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
    assert [applies(node).acts for node in acting] == [True] * len(acting)
    assert [applies(node).acts for node in fused] == [False] * len(fused)
