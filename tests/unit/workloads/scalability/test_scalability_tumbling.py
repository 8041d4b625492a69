"""Statistics of tumbling windows against plain Python."""

from __future__ import annotations

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
    found = {
        (row["sensor_id"], row["window_start"]): row
        for row in results("scalability_tumbling", measurements, range="3s")
    }
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        row = found[key]
        assert row["window_end"] - row["window_start"] == 3 * S
        assert (row["measurements"], row["total"]) == (len(values), sum(values))
        assert (row["lowest"], row["highest"]) == (min(values), max(values))
        assert row["mean"] == pytest.approx(statistics.fmean(values))
        assert row["variance"] == pytest.approx(statistics.pvariance(values), abs=1e-6)
