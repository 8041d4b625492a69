"""Every measurement comes out changed, as a record or as a line."""

from __future__ import annotations

from tests.unit.workloads.scalability.helpers_topologies import measured, results

MEASURED = measured(1, 20, 100, 10_000_000)


def test_records_by_hand() -> None:
    """In thousandths of a watt, with the record's own time."""
    (row,) = results("scalability_sink", [(3, 12, 99)])
    assert row == {"sensor_id": 3, "measured_us": 99, "milliwatts": 12_000, "event_time": 99, "event_id": 0}


def test_every_record_once() -> None:
    """In any order."""
    found = sorted(
        (row["sensor_id"], row["milliwatts"], row["measured_us"]) for row in results("scalability_sink", MEASURED)
    )
    assert found == sorted((sensor, 1000 * watts, time) for sensor, watts, time in MEASURED)


def test_every_line_once() -> None:
    """As a log would show it."""
    found = sorted(row["line"] for row in results("scalability_sink", MEASURED, sink="log"))
    assert found == sorted(f"sensor {sensor} at {time}: {watts} W" for sensor, watts, time in MEASURED)
