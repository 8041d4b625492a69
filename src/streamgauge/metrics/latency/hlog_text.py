"""The text of `latency.hlog`: the latencies of a trial's sinks as a HdrHistogram log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.latency.event_latency import SinkLatencies
from streamgauge.metrics.latency.histogram import log_line, log_lines


def hlog_text(sinks: Mapping[str, SinkLatencies], spans: TrialSpans) -> str:
    """One histogram a second if seconds are known, else one of the whole measured span. `sinks`: latencies by sink
    name.
    """
    several = len(sinks) > 1
    return "".join(
        line for name, latencies in sinks.items() for line in _of_sink(latencies, f"/{name}" if several else "", spans)
    )


def _of_sink(latencies: SinkLatencies, tag: str, spans: TrialSpans) -> Iterator[str]:
    of = latencies.seconds
    by_second = {
        "event_time": of.event_time, "processing_time": of.processing_time, "closing_delay": of.closing_delay,
    }  # fmt: skip
    for kind, seconds in by_second.items():
        yield log_lines(seconds, f"{kind}{tag}")
    for kind, histogram in latencies.histograms.items():
        reported = latencies.latencies.by_kind(kind)
        if kind not in by_second and reported is not None and reported.max is not None:
            yield log_line(histogram, f"{kind}{tag}", spans.measured_from_us / US, spans.measured_to_us / US)
