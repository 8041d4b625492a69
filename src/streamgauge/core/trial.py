"""A trial in short: its planned spans, its current figures, and the current step of a long task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class TrialSpans:
    """The planned spans of a trial in microseconds: warm-up [start, measured_from), measured span
    [measured_from, measured_to), tail [measured_to, end).
    """

    start_us: int
    measured_from_us: int
    measured_to_us: int
    end_us: int

    def ending(self, end_us: int) -> TrialSpans:
        return replace(self, end_us=max(self.end_us, end_us))

    def later(self, by_us: int) -> TrialSpans:
        """The spans with a warm-up longer by `by_us`."""
        return replace(self.longer(by_us), measured_from_us=self.measured_from_us + by_us)

    def longer(self, by_us: int) -> TrialSpans:
        """The spans with a measured span longer by `by_us`."""
        return replace(self, measured_to_us=self.measured_to_us + by_us, end_us=self.end_us + by_us)


@dataclass(frozen=True)
class TrialSnapshot:
    """The current figures of a trial; None if unknown.

    The latency is the median of the latest batch, because a few batches do not carry higher percentiles.
    `ends_early`: whether the trial is over before the planned seconds.
    """

    phase: str
    elapsed_s: float
    planned_s: float
    offered_per_s: float | None = None
    ingested_per_s: float | None = None
    backlog_events: int | None = None
    event_time_p50_us: float | None = None
    note: str = ""
    ends_early: bool = False


class ProgressText:
    """The current step as text, set by the worker or read from a process that works for it."""

    def __init__(self, text: str) -> None:
        self._read: Callable[[], str] = lambda: text

    def __call__(self) -> str:
        return self._read()

    def set(self, text: str) -> None:
        """Sets the current step."""
        self._read = lambda: text

    def follow(self, read: Callable[[], str], otherwise: str) -> None:
        """Shows the result of `read`, or `otherwise` while that is empty."""
        self._read = lambda: read() or otherwise
