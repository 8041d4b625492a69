"""Latency figures."""

from __future__ import annotations

from streamgauge.results.base import Answer

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Name to the share of the results that are at most that late; the only list of them."""
STATISTICS = ("min", "mean", *PERCENTILES, "max")


class Latency(Answer):
    """One latency over the measured span, microseconds. A percentile that `effective_count` cannot carry is null.

    `lower_bounds` counts expected results still missing at the deadline; they are in here as "at least this late", so
    wherever it is above 0 every figure is a lower bound itself.
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


class Latencies(Answer):
    """Every kind of latency of one sink; null where the kind does not apply (the reason is in `notes`).

    `uncorrected_us` counts from the real hand-over to the queue instead of the plan: event time without the schedule
    delay of the driver. `match_time_us` is the row-wise maximum of a join's two events.
    `until_counted_us` is of updates alone, whose other latencies are of the newest event in each: from every event to
    the results of the batch that took it in. Where nobody knows that, its figures are null and its `note` says why.
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
        found: Latency | None = getattr(self, f"{kind}_us")
        return found


LATENCY_KINDS = tuple(name.removesuffix("_us") for name in Latencies.model_fields if name.endswith("_us"))
"""`event_time` and the others, in the order in which they are shown."""
