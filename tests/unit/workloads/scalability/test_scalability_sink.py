"""Every measurement comes out changed, as a record or as a line."""

from typing import Any

import pytest

from tests.unit.workloads.scalability.helpers_topologies import measured, results

MEASURED = measured(1, 20, 100, 10_000_000)


@pytest.mark.parametrize(("sink", "columns"), [
    ("topic", lambda sensor, watts, time: (sensor, 1000 * watts, time)),
    ("log", lambda sensor, watts, time: (f"sensor {sensor} at {time}: {watts} W",)),
])  # fmt: skip
def test_every_record_once(sink: str, columns: Any) -> None:
    """In any order; as a log would show it too."""
    names = ("line",) if sink == "log" else ("sensor_id", "milliwatts", "measured_us")
    rows = results("scalability_sink", MEASURED, sink=sink)
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(columns(*each) for each in MEASURED)
