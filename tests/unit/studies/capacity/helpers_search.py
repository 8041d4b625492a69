"""Made-up systems for the tests of the search, which answer by rule."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Settings, TrialOutcome, search
from streamgauge.studies.capacity.search_state import TrialRequest

CEILING = 50e6
PLENTY = Settings(ceiling_per_s=CEILING, trials_max=200)

capacities = st.floats(0, 7.6).map(lambda exponent: 10**exponent)
"""1/s to 40 M/s, as likely at each magnitude."""


class Sut:
    """A made-up system that sustains `capacity_per_s`; it records the trials that the search requests."""

    def __init__(self, capacity_per_s: float, flatters: float = 1.4, failed_flatters: float | None = None) -> None:
        self.capacity_per_s, self.flatters = capacity_per_s, flatters
        self.failed_flatters = flatters if failed_flatters is None else failed_flatters
        self.requests: list[TrialRequest] = []

    def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        self.requests.append(TrialRequest(rate, purpose, fresh))
        verdict = self.verdict(rate, len(self.requests))
        flatters = self.flatters if purpose == "overload" else self.failed_flatters
        drained = (
            None
            if verdict in ("sustained", "invalid") and purpose != "overload"
            else min(rate, flatters * self.capacity_per_s)
        )
        return TrialOutcome(rate, verdict, drained, purpose=purpose, seconds=45.0)

    def verdict(self, rate: float, number: int) -> VerdictValue:
        return "sustained" if rate <= self.capacity_per_s else "not_sustained"

    @property
    def purposes(self) -> list[str]:
        return [request.purpose for request in self.requests]


class Scripted(Sut):
    """As `Sut`, but `changed(rate, number)` may give another verdict."""

    def __init__(self, capacity_per_s: float, changed: Callable[[float, int, str], VerdictValue | None]) -> None:
        super().__init__(capacity_per_s)
        self.changed = changed

    def verdict(self, rate: float, number: int) -> VerdictValue:
        return self.changed(rate, number, self.requests[-1].purpose) or super().verdict(rate, number)


def search_with_outcomes(sut: Sut) -> tuple[SearchResult, list[TrialOutcome]]:
    """A search's result, and the outcome of each of its trials."""
    outcomes: list[TrialOutcome] = []

    def trial(*request: Any) -> TrialOutcome:
        outcomes.append(sut(*request))
        return outcomes[-1]

    return search(trial, PLENTY), outcomes
