"""Series as what is drawn: binned, smoothed, with phases as bands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts import tables
from streamgauge.report.charts import over_time

US = 1_000_000


def table(**columns: object) -> pa.Table:
    n = len(next(iter(columns.values())))
    base = {"time_us": 5_000_000 + US * np.arange(n), "phase": ["measured"] * n}
    return tables.conform(pa.table(base | columns))


def test_no_seconds_no_timeline() -> None:
    """An empty series is nothing to draw."""
    assert over_time.from_series(tables.SCHEMA.empty_table()) is None


def test_short_runs_are_not_binned(make_series: Callable[[], pa.Table]) -> None:
    """Up to the greatest number of points, every second is a point, counted from the run's start."""
    line = over_time.from_series(make_series())
    assert line is not None
    assert (line.bin_s, line.second[0], line.second[-1], line.end_s) == (1, 0.0, 91.0, 92.0)


def test_long_runs_are_binned_by_mean_and_maximum() -> None:
    """A point of many seconds shows the mean rate and the greatest latency, and knows what is not known."""
    n = 2 * over_time.POINTS_MAX
    late = pa.array(np.arange(n, dtype=float), mask=np.arange(n) >= n - 2)
    line = over_time.from_series(table(offered=np.arange(n), event_time_us_p99=late))
    assert line is not None
    assert (line.bin_s, len(line.second)) == (2, over_time.POINTS_MAX)
    assert line.columns["offered"][:2].tolist() == [0.5, 2.5]
    assert line.columns["event_time_us_p99"][:2].tolist() == [1.0, 3.0]
    assert np.isnan(line.columns["event_time_us_p99"][-1])


def test_bands_are_the_phases(make_series: Callable[[], pa.Table]) -> None:
    """Each run of equal phases is a band; they touch and cover the whole time."""
    line = over_time.from_series(make_series())
    assert line is not None
    assert [(band.label, band.start_s, band.end_s) for band in line.bands] == [
        ("warm-up", 0, 20),
        ("measured", 20, 80),
        ("tail", 80, 92),
    ]


def test_smoothing_keeps_the_rate_of_a_saw_tooth() -> None:
    """Deliveries of 0 and twice the rate have the rate as their mean."""
    line = over_time.from_series(table(handed_out=np.tile([0, 200], 20)))
    assert line is not None
    assert line.columns["handed_out_mean"][10:].tolist() == [100.0] * 30


def test_unknown_values_break_or_skip() -> None:
    """A null is a gap in a line of rates, and no point at all in a line of sparse latencies."""
    line = over_time.from_series(table(backlog_events=pa.array([1, None, 3])))
    assert line is not None
    assert [row["v"] for row in line.rows("backlog_events")] == [1.0, None, 3.0]
    assert [row["v"] for row in line.rows("backlog_events", gaps=False)] == [1.0, 3.0]
    assert not line.known("lag_events")
    assert line.top("lag_events") == 0.0
    assert line.top("lag_events", "backlog_events") == pytest.approx(3.0)


def test_the_most_of_several_partitions_is_known() -> None:
    """Of one partition there is no other; a run of before has no lists."""
    line = over_time.from_series(table(lag_by_partition=[[1, 5, 2], None, [7], []]))
    assert line is not None
    assert np.isnan(line.columns["lag_most"]).tolist() == [False, True, True, True]
    assert line.columns["lag_most"][0] == 5.0
