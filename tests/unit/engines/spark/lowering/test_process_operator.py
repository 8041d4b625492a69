"""A bucket of a keyed process without Spark: its rows come in uneven batches, and its state goes through bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.static_table import serialized
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts
from streamgauge.engines.spark.lowering.arrow_blocks import BLOCK, TIME
from streamgauge.engines.spark.lowering.process_operator import LATE, Bucket, HeldRows
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
        bucket = Bucket(node, held=True)  # a new worker for each batch
        bucket.init(handle)
        watermark = Watermark(1000 * max(0, seen - DELAY) if end < 1200 else 10**9)
        if len(fresh):
            frame = pd.DataFrame({"side": [0], "block": [serialized(rows_of(fresh, wanted))]})
            given = bucket.handleInputRows(0, iter([frame]), watermark)
        else:
            assert handle.timers, "rows that wait need a timer"
            given = bucket.handleExpiredTimer(0, watermark, None)
        results += [pa.ipc.open_stream(block).read_all() for frame in given for block in frame[BLOCK]]
        before, seen = ends, max([seen, *fresh])
        assert batch or not results, "nothing is before the first watermark"
    (expected,) = OperatorRuntime(node).advance([rows_of(np.arange(1000), wanted)], 10**9)
    assert pa.concat_tables(results).combine_chunks().equals(expected.combine_chunks())


def test_late_rows_are_counted_and_not_passed_on() -> None:
    """A row without a block has their number, for this batch alone; other rows state none."""
    wanted = column_layouts(node_of()).sides[0]
    handle, late = Handle(), list[list[int]]()
    for times, watermark_us in (([100, 200], 150_000), ([10, 120, 300], 250_000), ([400], 350_000)):
        bucket = Bucket(node_of(), held=True)
        bucket.init(handle)
        frame = pd.DataFrame({"side": [0], "block": [serialized(rows_of(np.array(times), wanted))]})
        given = list(bucket.handleInputRows(0, iter([frame]), Watermark(watermark_us)))
        assert all((part[BLOCK].isna() == (part[LATE] > 0)).all() for part in given)
        late.append([number for part in given for number in part[LATE] if number])
    assert late == [[], [2], []]


SCHEMA = pa.schema([("key", pa.int32()), (TIME, pa.int64())])
OTHER = pa.schema([("text", pa.string()), (TIME, pa.int64())])
END = 10**9


def rows(*times: int, key: int = 0) -> pa.Table:
    return pa.table({"key": pa.array([key] * len(times), pa.int32()), TIME: pa.array(times, pa.int64())}, SCHEMA)


def times(table: pa.Table) -> list[int]:
    return sorted(table.column(TIME).to_pylist())


def test_a_row_waits_until_the_watermark_has_passed_it() -> None:
    """A row at the watermark itself may still have equals to come."""
    held = HeldRows([SCHEMA])
    assert times(held.release([rows(5, 7, 9)], 7)[0]) == [5]
    assert sum(map(len, held._rows)) == 2
    assert times(held.release([rows(8)], 9)[0]) == [7, 8]
    assert times(held.release([rows()], END)[0]) == [9]
    assert sum(map(len, held._rows)) == 0


def test_a_watermark_never_falls() -> None:
    """After a restart Spark may state an earlier one first; released rows are not released again."""
    held = HeldRows([SCHEMA])
    held.release([rows(5)], 8)
    assert times(held.release([rows(6)], 3)[0]) == []
    assert held.late == 1


@pytest.mark.parametrize("restarts", [False, True])
@given(data=st.data())
def test_with_delay_enough_all_rows_come_once_in_order(restarts: bool, data: st.DataObject) -> None:
    """Two partitions that are read up to 20 apart, and a delay of 20: batches come in order of time."""
    partitions = [sorted(data.draw(st.lists(st.integers(0, 200), max_size=30))) for _ in range(2)]
    cuts = sorted(data.draw(st.lists(st.integers(0, 200), min_size=1, max_size=8)))
    skews = data.draw(st.lists(st.integers(0, 20), min_size=len(cuts), max_size=len(cuts)))
    held, before, seen, released = HeldRows([SCHEMA]), [0, 0], 0, list[list[int]]()
    for cut, skew in [*zip(cuts, skews, strict=True), (300, 0), (301, 0), (302, 0)]:
        ends = [max(before[0], cut), max(before[1], cut - skew)]
        fresh = [
            time
            for each, low, high in zip(partitions, before, ends, strict=True)
            for time in each
            if low <= time < high
        ]
        watermark = seen - 20  # of the batches before, as in Spark
        if restarts:
            state = held.to_bytes()
            held = HeldRows([SCHEMA])
            held.restore(state)
        released.append(times(held.release([rows(*fresh)], watermark if cut < 302 else END)[0]))
        assert held.late == 0
        before, seen = ends, max([seen, *fresh])
    assert [time for batch in released for time in batch] == sorted(np.concatenate([[], *partitions]).tolist())


def test_a_snapshot_has_held_rows_of_every_input() -> None:
    """With their columns, and how far rows were released."""
    held = HeldRows([SCHEMA, OTHER])
    held.release([rows(7, 9, key=4), pa.table({"text": ["a", None], TIME: [8, 3]}, OTHER)], 5)
    again = HeldRows([SCHEMA, OTHER])
    again.restore(held.to_bytes())
    one, other = again.release([rows(4), OTHER.empty_table()], END)
    assert one.to_pylist() == rows(7, 9, key=4).to_pylist()
    assert other.to_pylist() == [{"text": "a", TIME: 8}]
    assert again.late == 1
