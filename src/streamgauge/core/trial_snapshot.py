"""The state of a running trial, as progress shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrialSnapshot:
    """The current figures of a trial; None if unknown.

    The latency is the median of the latest batch, because a few batches do not carry higher percentiles.
    """

    phase: str
    elapsed_s: float
    planned_s: float
    offered_per_s: float | None = None
    ingested_per_s: float | None = None
    backlog_events: int | None = None
    event_time_p50_us: float | None = None
    note: str = ""
