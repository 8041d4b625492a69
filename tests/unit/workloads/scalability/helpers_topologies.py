"""Measurements worked through a topology by the reference, as plain rows."""

import random
from typing import Any

import pyarrow as pa

from tests.unit.workloads.helpers_cuts import answered, flow_of, table

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
    times = [time for *_, time in measurements]
    rows = table(measurements, times, sensor_id="int32", watts="int32", measured_us="int64")
    answer = answered(flow_of(name, **parameters), {"measurements": rows})
    types = [field.with_type(pa.int64()) if field.name in WINDOWS else field for field in answer.schema]
    return answer.cast(pa.schema(types)).to_pylist()
