"""When a broker had events and their results: offsets of the trial's own plan, and results of the span alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import event_id_base
from streamgauge.harness.broker_log import SAMPLES_MAX, Offsets, append_times
from tests.unit.harness.test_offset_tracker import START, plan_from


class Carrier:
    """Has an event an offset's milliseconds after the start, and results that are given."""

    def __init__(self, rows: Mapping[str, pa.Table]) -> None:
        self._rows = rows
        self.chosen: Sequence[int] = ()

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        assert stream == "ads"
        assert list(offsets) == sorted(set(offsets))
        return [START + 1000 * offset + partition for offset in offsets]

    def results(self, since_us: int, choose: Callable[[int], Sequence[int]]) -> Mapping[str, pa.Table]:
        self.chosen = choose(1_000_000)
        return self._rows


def rows_of(*events: tuple[int, int, int]) -> dict[str, pa.Table]:
    """(partition, number, event time in seconds since the start) of each result; all were there after 9 s."""
    ids = [event_id_base(0, partition) + number for partition, number, _ in events]
    times = [START + seconds * US for *_, seconds in events]
    columns = {"event_id": ids, "event_time": times, "emission_time": [START + 9 * US] * len(events)}
    return {"out": pa.table(columns)}


def of(rows: Mapping[str, pa.Table]) -> tuple[Any, Carrier]:
    offsets, broker = Offsets(2), Carrier(rows)
    for first, begin_us in ((0, START - 10 * US), (500, START)):
        offsets.begin(plan_from(begin_us, partitions=2), [{"ads": first, "purchases": 0}] * 2)
    return append_times(broker, offsets, "ads", "out", START, START + 5 * US), broker


def test_an_event_is_looked_for_where_its_plan_has_put_it() -> None:
    """A warm test bed has had another plan before; two results may be of one event; what lies outside is left out."""
    found, broker = of(rows_of((0, 7, 1), (1, 3, 2), (0, 2, 0), (0, 7, 1), (0, 9, 5)))
    assert (found.event_us - START).tolist() == [507_000, 503_001, 502_000, 507_000]
    assert (found.result_us - START).tolist() == [9 * US] * 4
    assert found.rows.column_names == ["event_id", "event_time"]
    assert len(broker.chosen) == SAMPLES_MAX


def test_nothing_is_known_where_nothing_is_told() -> None:
    """Of another clock, and of a span without a result."""
    assert of({})[0] is None
    assert of(rows_of((0, 9, 5)))[0] is None
