"""A bucket of a keyed process without Spark: its rows come in uneven batches, and its state goes through bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Process
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.lowering import arrow_blocks
from streamgauge.engines.spark.lowering.arrow_blocks import BLOCK, TIME
from streamgauge.engines.spark.lowering.process_operator import LATE, Bucket
from streamgauge.workloads.dspbench.sensors.spike_detection import MovingAverage, truth

READINGS = source("sensors", Schema.from_types(device="int", value="double"))
AVERAGES = READINGS.process(
    MovingAverage, keys="device", gives=Schema.from_types(device="int", avg="double", value="double"),
    parameters={"window": 5}, truth=truth(5), name="average",
)  # fmt: skip
DELAY = 50


class Handle:
    """Spark's handle of one key: a value of bytes, and timers."""

    def __init__(self) -> None:
        self.value: tuple[bytes, ...] | None = None
        self.timers: list[int] = []

    def getValueState(self, _: str, schema: str) -> Handle:
        assert schema.count("binary") == 2
        return self

    def get(self) -> tuple[bytes, ...] | None:
        return self.value

    def update(self, value: tuple[bytes, ...]) -> None:
        self.value = value

    def listTimers(self) -> list[int]:
        return self.timers

    def deleteTimer(self, timer: int) -> None:
        self.timers = [each for each in self.timers if each != timer]

    def registerTimer(self, timer: int) -> None:
        self.timers.append(timer)


class Watermark:
    def __init__(self, us: int) -> None:
        self._us = us

    def getCurrentWatermarkInMs(self) -> int:
        return self._us // 1000


def node_of() -> Process:
    node = with_lineage(AVERAGES.sink("averages")).sink.input
    assert isinstance(node, Process)
    return node


def rows_of(times_ms: np.ndarray, wanted: pa.Schema) -> pa.Table:
    columns: dict[str, Any] = {
        "device": pa.array(times_ms % 3, pa.int32()), "value": pa.array(times_ms * 0.5),
        "event_time": times_ms * 1000, "event_id": times_ms, "ingest_time": times_ms * 1000, TIME: times_ms * 1000,
    }  # fmt: skip
    return pa.table({name: columns[name] for name in wanted.names}).cast(wanted)


@pytest.mark.parametrize("skew_ms", [0, 20, DELAY])
def test_a_bucket_holds_rows_until_the_watermark_and_gives_them_in_order(skew_ms: int) -> None:
    """Two partitions, of which one is read less far: results are those of all rows in order, each once."""
    node = node_of()
    wanted = column_layouts(node).sides[0]
    handle, seen, results = Handle(), 0, list[pa.Table]()
    partitions = [np.arange(0, 1000, 2), np.arange(1, 1000, 2)]
    before = [0, 0]
    for batch, end in enumerate([*range(100, 1001, 100), 1100, 1200, 1300]):
        ends = [end, max(end - skew_ms, 0) if end < 1100 else end]
        fresh = np.concatenate([
            each[(each >= low) & (each < high)] for each, low, high in zip(partitions, before, ends, strict=True)
        ])  # fmt: skip
        bucket = Bucket(node, None, held=True)  # a new worker for each batch
        bucket.init(handle)
        watermark = Watermark(1000 * max(0, seen - DELAY) if end < 1200 else 10**9)
        if len(fresh):
            frame = pd.DataFrame({"side": [0], "block": [arrow_blocks.block(rows_of(fresh, wanted))]})
            given = bucket.handleInputRows(0, iter([frame]), watermark)
        else:
            assert handle.timers, "rows that wait need a timer"
            given = bucket.handleExpiredTimer(0, watermark, None)
        results += [pa.ipc.open_stream(block).read_all() for frame in given for block in frame[BLOCK]]
        before, seen = ends, max([seen, *fresh])
        assert batch or not results, "nothing is before the first watermark"
    instance = OperatorRuntime(node)
    (expected,) = instance.advance([rows_of(np.arange(1000), wanted)], 10**9)
    assert pa.concat_tables(results).combine_chunks().equals(expected.combine_chunks())


def test_late_rows_are_counted_and_not_passed_on() -> None:
    """A row without a block has their number, for this batch alone; other rows state none."""
    wanted = column_layouts(node_of()).sides[0]
    handle, late = Handle(), list[list[int]]()
    for times, watermark_us in (([100, 200], 150_000), ([10, 120, 300], 250_000), ([400], 350_000)):
        bucket = Bucket(node_of(), None, held=True)
        bucket.init(handle)
        rows = rows_of(np.array(times), wanted)
        frame = pd.DataFrame({"side": [0], "block": [arrow_blocks.block(rows)]})
        given = list(bucket.handleInputRows(0, iter([frame]), Watermark(watermark_us)))
        assert all((part[BLOCK].isna() == (part[LATE] > 0)).all() for part in given)
        late.append([number for part in given for number in part[LATE] if number])
    assert late == [[], [2], []]
