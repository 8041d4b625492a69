"""Statistics of tumbling windows against plain Python."""

import statistics
from collections import defaultdict

import pytest

from tests.unit.workloads.scalability.helpers_topologies import measured, results

S = 1_000_000


@pytest.mark.parametrize("seed", range(3))
def test_statistics_of_each_window(seed: int) -> None:
    """Of each sensor and window with a measurement, and of no other."""
    measurements = measured(seed, 7, 300, 20 * S)
    expected = defaultdict(list)
    for sensor, watts, time in measurements:
        expected[sensor, time // (3 * S) * 3 * S].append(watts)
    rows = {
        (row["sensor_id"], row["window_start"]): row
        for row in results("scalability_tumbling", measurements, range="3s")
    }
    assert rows.keys() == expected.keys()
    for (sensor, start), values in expected.items():
        statistics_ = {
            "window_end": start + 3 * S, "measurements": len(values), "total": sum(values), "lowest": min(values),
            "highest": max(values), "mean": pytest.approx(statistics.fmean(values)),
            "variance": pytest.approx(statistics.pvariance(values), abs=1e-6),
        }  # fmt: skip
        assert {name: rows[sensor, start][name] for name in statistics_} == statistics_
