"""Rows that wait for the watermark: their order, their completeness, and what comes too late."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.spark.lowering.arrow_blocks import TIME
from streamgauge.engines.spark.lowering.held_rows import HeldRows

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
    assert len(held) == 2
    assert times(held.release([rows(8)], 9)[0]) == [7, 8]
    assert times(held.release([rows()], END)[0]) == [9]
    assert len(held) == 0


def test_a_row_behind_what_was_released_is_dropped_and_counted() -> None:
    """As Spark drops late rows; otherwise it would come out of order."""
    held = HeldRows([SCHEMA])
    held.release([rows(5, 9)], 7)
    assert times(held.release([rows(6, 7, 8)], 9)[0]) == [7, 8]
    assert held.late == 1
    held.release([rows(10)], 9)
    assert held.late == 0, "of each batch its own, because a repeated batch would count twice"


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
    text = pa.table({"text": ["a", None], TIME: [8, 3]}, OTHER)
    held.release([rows(7, 9, key=4), text], 5)
    again = HeldRows([SCHEMA, OTHER])
    again.restore(held.to_bytes())
    one, other = again.release([rows(4), OTHER.empty_table()], END)
    assert one.to_pylist() == rows(7, 9, key=4).to_pylist()
    assert other.to_pylist() == [{"text": "a", TIME: 8}]
    assert again.late == 1


def test_an_empty_snapshot_is_read_again() -> None:
    """Before any row came."""
    again = HeldRows([SCHEMA])
    again.restore(HeldRows([SCHEMA]).to_bytes())
    assert len(again) == 0
    assert times(again.release([rows(3)], 4)[0]) == [3]
