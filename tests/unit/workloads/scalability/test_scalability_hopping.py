"""Statistics of hopping windows by sensor and weekday against plain Python, with few and with many windows."""

from collections import defaultdict

import pytest

from tests.unit.helpers_refusals import assert_refused
from tests.unit.workloads.helpers_cuts import flow_of
from tests.unit.workloads.scalability.helpers_topologies import measured, results

S = 1_000_000


@pytest.mark.parametrize(
    ("range_us", "period_us"),
    [(5 * S, S), (5 * S, 5 * S), (7 * S, 3 * S), (6 * S, 20_000), (2 * S, 1_000), (3 * S, 7_000)],
)
def test_statistics_of_each_window(range_us: int, period_us: int) -> None:
    """Of each window that holds a measurement: also where thousands of windows hold each of them."""
    measurements = measured(range_us, 3, 60, 20 * S)
    expected = defaultdict(list)
    for sensor, watts, time in measurements:
        start = time // period_us * period_us
        while start > time - range_us:
            expected[sensor, time // S % 7, start].append(watts)
            start -= period_us
    window = {"range": f"{range_us / S}s", "period": f"{period_us / S}s"}
    rows = results("scalability_hopping", measurements, **window)
    assert len(rows) == len(expected)
    assert {
        (row["sensor_id"], row["weekday"], row["window_start"]): (
            row["measurements"], row["total"], row["lowest"], row["highest"],
        )
        for row in rows
    } == {key: (len(watts), sum(watts), min(watts), max(watts)) for key, watts in expected.items()}  # fmt: skip
    assert {row["window_end"] - row["window_start"] for row in rows} == {range_us}


def test_a_period_above_the_range_is_refused() -> None:
    """By its own name: events between windows would be in none."""
    assert_refused("set period: must be at most the range", flow_of, "scalability_hopping", range="1s", period="2s")
