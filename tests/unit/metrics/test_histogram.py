"""metrics/histogram.py: slot for slot what the hdrhistogram package would have counted."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.artifacts import hlog
from streamgauge.metrics.histogram import SLOTS, Histogram, SecondHistograms, counts_of, log_lines

TOP_US = 2**32 - 1
EDGES = sorted({max(0, 2**k + d) for k in range(32) for d in (-2, -1, 0, 1, 2)} | {3_600_000_000, TOP_US - 1, TOP_US})


def hdr_of(values: list[int]) -> HdrHistogram:
    """The package's own histogram, one call a value."""
    hdr = HdrHistogram(1, 3_600_000_000, 3)
    for value in values:
        assert hdr.record_value(value)
    return hdr


def histogram_of(values: list[int]) -> Histogram:
    histogram = Histogram()
    histogram.add(np.array(values, dtype=np.int64))
    return histogram


@given(st.lists(st.integers(0, 31).flatmap(lambda k: st.integers(0, 2**k)), max_size=200))
@example(EDGES)
def test_counts_equal_those_of_record_value(values: list[int]) -> None:
    """Any values, of any magnitude, and around each power of two, at zero and at the top: slot for slot the counts of
    the package.
    """
    assert counts_of(values).tolist() == list(hdr_of(values).counts)


@given(st.lists(st.integers(0, TOP_US), min_size=1, max_size=100), st.floats(0, 1))
def test_figures_equal_those_of_the_package(values: list[int], q: float) -> None:
    """Percentiles, minimum, maximum and mean are what any reader of the log will compute."""
    ours, hdr = histogram_of(values), hdr_of(values)
    assert ours.percentile(q) == hdr.get_value_at_percentile(100 * q)
    assert (ours.min, ours.max) == (hdr.get_min_value(), hdr.get_max_value())
    assert ours.mean == pytest.approx(hdr.get_mean_value())


def test_blocks_do_not_show() -> None:
    """More values than a block holds, some of them zero or negative, are counted as in one piece."""
    values = np.random.default_rng(1).lognormal(10, 3, 200_000).astype(np.int64) % TOP_US
    values[[5, 70_000, 199_999]] = [0, -1, -(2**60)]
    expected = np.zeros(SLOTS, dtype=np.int64)
    for part in np.array_split(values, 7):
        expected += counts_of(part)
    histogram = Histogram()
    histogram.add(values)
    assert np.array_equal(histogram.counts, expected)
    assert (histogram.count, histogram.n_negative) == (199_998, 2)


@pytest.mark.parametrize(("values", "figures"), [
    ([-1, -5_000_000, 0, 7], (2, 2, 0, 7)),  # negative ones are an error apart: in no slot, percentile or minimum
    ([7, 2 * 3_600_000_000, 2**62], (0, 3, 7, TOP_US)),  # two hours are not dropped: they are at least 71 minutes
    ([], (0, 0, None, None)),
])  # fmt: skip
def test_values_beyond_the_range(values: list[int], figures: tuple[int | None, ...]) -> None:
    """No value, no percentile: None, not zero."""
    histogram = histogram_of(values)
    assert (histogram.n_negative, histogram.count, histogram.min, histogram.max) == figures
    assert values or (histogram.percentile(0.5), histogram.mean) == (None, None)


def other_precision() -> str:
    other = HdrHistogram(1, 3_600_000_000, 2)
    other.record_value(5)
    return other.encode().decode()


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: hlog.Interval("", 0.0, other_precision()).counts(), "slots"),  # other slots, so other latencies
    (lambda: log_lines({}, "event,time"), "tag"),  # a comma ends a field of the log
])  # fmt: skip
def test_what_is_no_histogram_is_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


@given(st.lists(st.integers(0, TOP_US), max_size=50))
def test_the_encoding_reads_back_equal(values: list[int]) -> None:
    """What the package encodes, both we and the package read as the same counts."""
    text = hlog.encoder(histogram_of(values).counts).encode().decode()
    assert Histogram(hlog.Interval("", 0.0, text).counts()) == histogram_of(values)
    assert HdrHistogram.decode(text).get_total_count() == len(values)


def test_the_log_is_read_by_the_packages_reader(tmp_path: Path) -> None:
    """Start, length, tag and counts of every line come back, several tags in one file."""
    start = 1_700_000_000
    event = {start + 1: histogram_of([5, 5000, 5_000_000]), start: histogram_of([7])}
    path = tmp_path / "latency.hlog"
    whole = hlog.write({(start + 0.5, start + 20): histogram_of([11]).counts}, "closing_delay")
    path.write_text(log_lines(event, "event_time") + log_lines({start: histogram_of([9])}, "processing_time") + whole)
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000, 3))
    lines = []
    while (hdr := reader.get_next_interval_histogram()) is not None:
        lines.append((hdr.get_tag(), hdr.get_start_time_stamp(), hdr.get_end_time_stamp(), list(hdr.counts)))
    reader.close()
    assert [line[:3] for line in lines] == [
        ("event_time", start * 1000, (start + 1) * 1000),
        ("event_time", (start + 1) * 1000, (start + 2) * 1000),
        ("processing_time", start * 1000, (start + 1) * 1000),
        ("closing_delay", (start + 0.5) * 1000, (start + 20) * 1000),
    ]
    assert lines[1][3] == list(hdr_of([5, 5000, 5_000_000]).counts)


@given(st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(-10, 5_000_000)), min_size=1, max_size=60))
def test_seconds_are_separate_in_any_order(rows: list[tuple[int, int]]) -> None:
    """Each second's histogram holds its own rows, however they arrive; the total holds all and the negatives."""
    table = SecondHistograms()
    for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        table.add(
            np.array([row[0] for row in part], dtype=np.int64), np.array([row[1] for row in part], dtype=np.int64)
        )
    expected: dict[int, list[int]] = {}
    for event_time, latency in rows:
        expected.setdefault(event_time // 1_000_000, []).append(latency)
    assert table.histograms() == {
        second: histogram_of([latency for latency in expected[second] if latency >= 0]) for second in sorted(expected)
    }
    assert table.total == histogram_of([row[1] for row in rows])
