"""Latency figures."""

from streamgauge.results.codes import ResultPart

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Share of the results below a percentile, by its name. The only list of percentiles."""
STATISTICS = ("min", "mean", *PERCENTILES, "max")


class Latency(ResultPart):
    """One latency over the measured span, in microseconds. A percentile is null if `effective_count` is too small."""

    min: float | None = None
    """Minimum; null without results."""
    mean: float | None = None
    """Mean; null without results."""
    p50: float | None = None
    """Median; null with too few independent results, like every percentile."""
    p90: float | None = None
    """90th percentile."""
    p95: float | None = None
    """95th percentile."""
    p99: float | None = None
    """99th percentile."""
    p99_9: float | None = None
    """99.9th percentile."""
    max: float | None = None
    """Maximum; null without results."""
    count: int = 0
    """Number of results."""
    effective_count: int = 0
    """Number of independent observations among them."""
    lower_bounds: int = 0
    """Expected results that had not arrived at the deadline. Above 0, every figure is a lower bound (`≥` in the
    report)."""
    note: str = ""
    """What else to know about this kind."""


class Latencies(ResultPart):
    """Every kind of latency of one sink; null if the kind does not apply (`notes` has the reason)."""

    event_time_us: Latency | None = None
    """Emission - event time, by the plan; of an update, the event time of its newest event."""
    until_counted_us: Latency | None = None
    """Updates only: from each event's time until results that include it had arrived. `count` counts events. Null for
    other results, in real-time mode and for a stopped run."""
    processing_time_us: Latency | None = None
    """Emission - first delivery to the SUT."""
    closing_delay_us: Latency | None = None
    """Emission - window end; null without windows."""
    match_time_us: Latency | None = None
    """Joins only: emission - later of the two matched events."""
    uncorrected_us: Latency | None = None
    """Emission - the moment at which the driver made the event available, without the schedule delay."""
    notes: tuple[str, ...] = ()
    """Why a kind or a percentile is null, and how many results have no event time."""

    def by_kind(self, kind: str) -> Latency | None:
        """One of `LATENCY_KINDS`."""
        latency: Latency | None = getattr(self, f"{kind}_us")
        return latency


LATENCY_KINDS = tuple(name.removesuffix("_us") for name in Latencies.model_fields if name.endswith("_us"))
"""`event_time` and the other kinds, in the order of reports."""
