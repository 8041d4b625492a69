"""metrics/latency/hlog_text.py: the log of latencies."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.latency.event_latency import LatencyRule, SinkLatencies, sink_latencies
from streamgauge.metrics.latency.hlog_text import hlog_text
from tests.unit.helpers_trials import kinds_in


def windowed(rule: LatencyRule, spans: TrialSpans, emission_us: list[int]) -> SinkLatencies:
    """Two results whose window ends 4 s after the start of the span, their events in its first and third second."""
    first, end = spans.measured_from_us, spans.measured_from_us + 4 * US
    times = {
        "event_time": [first, first + 2 * US], "ingest_time": [first + 1, first + 2 * US + 1],
        "emission_time": [first + after for after in emission_us], "window_end": [end, end],
    }  # fmt: skip
    rows = pa.record_batch({name: pa.array(values, pa.int64()) for name, values in times.items()})
    return sink_latencies([rows], rule, (spans.measured_from_us, spans.measured_to_us))


def test_the_log_has_every_kind_of_latency_that_is_reported(make: Any) -> None:
    """By the second where that is known, else one interval of the span; of several sinks each has its own."""
    spans = make.story().record().spans
    second = spans.measured_from_us // US
    late = windowed(LatencyRule("window"), spans, [5 * US, 5 * US])
    by_second = [(second, 1), (second + 2, 1)]
    whole = [(second, 2)]
    log = hlog_text({"one": late}, spans)
    assert kinds_in(log) == {"event_time": by_second, "processing_time": by_second, "closing_delay": by_second}
    handed_over = LatencyRule("window", handed_over=lambda times: times + 1)
    other = hlog_text({"one": windowed(handed_over, spans, [5 * US, 5 * US])}, spans)
    assert kinds_in(other)["uncorrected"] == whole
    (line,) = [line for line in other.splitlines() if line.startswith("Tag=uncorrected")]
    assert [float(each) for each in line.split(",")[1:3]] == [second, 10.0]
    both = hlog_text({"one": late, "two": late}, spans)
    assert set(kinds_in(both)) == {f"{kind}/{sink}" for kind in kinds_in(log) for sink in ("one", "two")}


def test_the_log_has_no_kind_without_figures(make: Any) -> None:
    """Matches that come before their window is complete have no closing delay, but a time of their own."""
    spans = make.story().record().spans
    early = windowed(LatencyRule("join", lambda end: end - 1), spans, [3 * US, 5 * US])
    assert kinds_in(hlog_text({"one": early}, spans)) == {"match_time": [(spans.measured_from_us // US, 2)]}
