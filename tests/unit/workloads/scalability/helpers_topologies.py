"""Measurements worked through a topology by the reference, as plain rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

Measurement = tuple[int, int, int]
"""(sensor, watts, time in microseconds)."""
RATE = 1000.0
WINDOWS = ("window_start", "window_end")


def measured(seed: int, sensors: int, count: int, span_us: int) -> list[Measurement]:
    """Random measurements, ascending in time, with pauses and with several at one time."""
    drawn = random.Random(seed)
    times = sorted(
        drawn.choice((drawn.randrange(span_us), drawn.randrange(50) * (span_us // 50))) for _ in range(count)
    )
    return [(drawn.randrange(sensors), drawn.randrange(1000), time) for time in times]


def results(name: str, measurements: list[Measurement], **parameters: Any) -> list[dict[str, Any]]:
    """The reference's results, with window borders in microseconds."""
    sensors, watts, times = zip(*measurements, strict=True) if measurements else ((), (), ())
    rows = pa.table({
        "sensor_id": pa.array(sensors, pa.int32()), "watts": pa.array(watts, pa.int32()),
        "measured_us": pa.array(times, pa.int64()), "event_time": pa.array(times, pa.int64()),
        "event_id": pa.array(range(len(times)), pa.int64()),
    })  # fmt: skip
    workload = registry.get(name)
    flow = with_lineage(workload.build(workload.read(parameters), RATE).flow, ingest_time=False)
    with duckdb_session() as connection:
        found = Oracle().answer(flow, {"measurements": rows}, connection).to_arrow_table()
    for place, column in enumerate(found.column_names):
        if column in WINDOWS:
            found = found.set_column(place, column, found.column(column).cast(pa.int64()))
    return [dict(row) for row in found.to_pylist()]
