"""Percentile curves: the same values as HdrHistogram's own, and no further than the evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.artifacts import hlog
from streamgauge.report.charts import latency_curve
from streamgauge.results.latency import Latency
from tests.unit.metrics.test_histogram import hdr_of
from tests.unit.report.conftest import made_up_hlog

Values = st.lists(st.integers(min_value=1, max_value=3_000_000_000), min_size=1, max_size=60)


def counts_of(values: list[int]) -> hlog.Counts:
    return hlog.Interval("", 0.0, hdr_of(values).encode().decode()).counts()


@given(Values)
def test_points_agree_with_the_library(values: list[int]) -> None:
    """A point above the lowest is what the library itself gives for that percentile."""
    histogram = hdr_of(values)
    latency = Latency(p99=1.0, count=len(values), effective_count=len(values))
    for point in latency_curve.points(latency, counts_of(values))[1::20]:
        assert point.latency_us == histogram.get_value_at_percentile(point.percentile)


@given(Values)
def test_curve_rises(values: list[int]) -> None:
    """A higher percentile is never an earlier result."""
    points = latency_curve.points(Latency(p99_9=1.0, effective_count=10**6), counts_of(values))
    assert points == sorted(points, key=lambda point: (point.percentile, point.latency_us))
    assert [p.latency_us for p in points] == sorted(p.latency_us for p in points)


@pytest.mark.parametrize(
    ("latency", "last"),
    [
        (Latency(p50=1.0, effective_count=12), 50.0),
        (Latency(p50=1.0, p99=2.0, effective_count=300), 99.0),
        (Latency(p99_9=1.0, effective_count=5000), 99.9),
        (Latency(p99_9=1.0, effective_count=1_000_000), 99.999),
    ],
)
def test_curve_ends_with_the_evidence(latency: Latency, last: float) -> None:
    """The last point is the last percentile that the independent results carry."""
    assert latency_curve.points(latency, counts_of([5]))[-1].percentile == pytest.approx(last)


def test_nothing_carried_nothing_drawn() -> None:
    """Where no percentile is printed there is no curve."""
    assert latency_curve.points(Latency(count=3, effective_count=1), counts_of([5])) == []


def test_without_histogram_the_printed_percentiles_remain() -> None:
    """A result alone still gives a coarse curve."""
    points = latency_curve.points(Latency(p50=1.0, p99=3.0), None)
    assert [(point.percentile, point.latency_us) for point in points] == [(50.0, 1.0), (99.0, 3.0)]


def test_log_adds_up_intervals_by_tag() -> None:
    """Intervals of a kind are added up, and comments are passed over; of several sinks, one is requested by name."""
    log = made_up_hlog()
    both = latency_curve.histograms(log + log)
    kinds = ("event_time", "processing_time", "closing_delay")
    assert {tag: one.sum() for tag, one in both.items()} == dict.fromkeys(kinds, 30_000)
    of_other = latency_curve.histograms(log + log.replace("Tag=event_time,", "Tag=event_time/other,"), "other")
    assert {tag: one.sum() for tag, one in of_other.items()} == {"event_time": 15_000}


def test_untagged_lines_are_event_time() -> None:
    """A log without tags is about the one latency that matters."""
    line = f"0.000,1.000,5.000,{hdr_of([7, 7]).encode().decode()}"
    assert latency_curve.histograms(line)["event_time"].sum() == 2
