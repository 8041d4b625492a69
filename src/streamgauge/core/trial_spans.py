"""The planned spans of a trial: warm-up, measured span, tail."""

from __future__ import annotations

from dataclasses import dataclass


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
        return TrialSpans(self.start_us, self.measured_from_us, self.measured_to_us, max(self.end_us, end_us))

    def later(self, by_us: int) -> TrialSpans:
        """The spans with a warm-up longer by `by_us`."""
        return TrialSpans(
            self.start_us, *(time + by_us for time in (self.measured_from_us, self.measured_to_us, self.end_us))
        )

    def longer(self, by_us: int) -> TrialSpans:
        return TrialSpans(self.start_us, self.measured_from_us, self.measured_to_us + by_us, self.end_us + by_us)
