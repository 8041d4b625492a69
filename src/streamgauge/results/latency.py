"""Latency figures."""

from __future__ import annotations

from streamgauge.results.result_part import ResultPart

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Share of the results below a percentile, by its name. The only list of percentiles."""
STATISTICS = ("min", "mean", *PERCENTILES, "max")


class Latency(ResultPart):
    """One latency over the measured span, in microseconds. A percentile is null if `effective_count` is too small.

    `lower_bounds` counts expected results that were missing at the deadline. They count as "at least this late", so
    every figure is a lower bound if it is above 0.
    """

    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None
    count: int = 0
    effective_count: int = 0
    lower_bounds: int = 0
    note: str = ""


class Latencies(ResultPart):
    """Every kind of latency of one sink; null if the kind does not apply (`notes` has the reason).

    `uncorrected_us` counts from the event's real entry into the queue: event time without the schedule delay.
    `match_time_us` is the row-wise maximum of a join's two events. `until_counted_us` exists for updates, whose other
    latencies concern the newest event of each update: it counts from every event to the results of its batch. If that
    is unknown, its figures are null and its `note` has the reason.
    """

    event_time_us: Latency | None = None
    until_counted_us: Latency | None = None
    processing_time_us: Latency | None = None
    closing_delay_us: Latency | None = None
    match_time_us: Latency | None = None
    uncorrected_us: Latency | None = None
    notes: tuple[str, ...] = ()

    def of(self, kind: str) -> Latency | None:
        """One of `LATENCY_KINDS`."""
        latency: Latency | None = getattr(self, f"{kind}_us")
        return latency


LATENCY_KINDS = tuple(name.removesuffix("_us") for name in Latencies.model_fields if name.endswith("_us"))
"""`event_time` and the other kinds, in the order of reports."""
