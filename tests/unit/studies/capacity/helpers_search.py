"""Made-up systems for the tests of the search, which answer by rule."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, Settings, TrialCall, TrialOutcome, search
from streamgauge.studies.capacity.search_state import TrialRequest

CEILING = 50e6
PLENTY = Settings(ceiling_per_s=CEILING, trials_max=200, near_limit=NEAR_LIMIT)

capacities = st.floats(0, 7.6).map(lambda exponent: 10**exponent)
"""1/s to 40 M/s, as likely at each magnitude."""


class Sut:
    """A made-up system that sustains `capacity_per_s`; it records the trials that the search requests.

    `verdicts` are those of the first trials of a purpose, None where the rate says it; `changed(rate, number, purpose)`
    may give another one too, and `fields(outcome, number)` other fields of an outcome.
    """

    def __init__(
        self,
        capacity_per_s: float,
        flatters: float = 1.4,
        failed_flatters: float | None = None,
        changed: Callable[[float, int, str], VerdictValue | None] = lambda *_: None,
        fields: Callable[[TrialOutcome, int], dict[str, Any]] = lambda *_: {},
        **verdicts: Sequence[VerdictValue | None],
    ) -> None:
        self.capacity_per_s, self.flatters, self.changed, self.fields = capacity_per_s, flatters, changed, fields
        self.failed_flatters = flatters if failed_flatters is None else failed_flatters
        self.verdicts = {purpose: iter(verdicts[purpose]) for purpose in verdicts}
        self.requests: list[TrialRequest] = []

    def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        self.requests.append(TrialRequest(rate, purpose, fresh))
        number = len(self.requests)
        verdict = next(self.verdicts.get(purpose, iter(())), None) or self.changed(rate, number, purpose)
        verdict = verdict or ("sustained" if rate <= self.capacity_per_s else "not_sustained")
        flatters = self.flatters if purpose == "overload" else self.failed_flatters
        drains = purpose == "overload" or verdict not in ("sustained", "invalid")
        drained = min(rate, flatters * self.capacity_per_s) if drains else None
        outcome = TrialOutcome(rate, verdict, drained, purpose=purpose, seconds=45.0)
        return dataclasses.replace(outcome, **self.fields(outcome, number))

    @property
    def rates(self) -> list[float]:
        return [request.rate_per_s for request in self.requests]

    @property
    def purposes(self) -> list[str]:
        return [request.purpose for request in self.requests]

    @property
    def fresh(self) -> list[bool]:
        return [request.fresh for request in self.requests]


def searched(trial: TrialCall, **settings: Any) -> Any:
    """The result of a search that may use many trials; `Any`, because most of its fields may be None."""
    return search(trial, dataclasses.replace(PLENTY, **settings))


def requested_after(*outcomes: TrialOutcome, **settings: Any) -> Any:
    """What a search requests after these outcomes, whose rates and purposes are those of its requests."""
    machine = Search(dataclasses.replace(PLENTY, **settings))
    for outcome in outcomes:
        request: Any = machine.request
        machine.tell(dataclasses.replace(outcome, rate_per_s=request.rate_per_s, purpose=request.purpose))
    return machine.request


def search_with_outcomes(sut: Sut) -> tuple[SearchResult, list[TrialOutcome]]:
    """A search's result, and the outcome of each of its trials."""
    outcomes: list[TrialOutcome] = []

    def trial(*request: Any) -> TrialOutcome:
        outcomes.append(sut(*request))
        return outcomes[-1]

    return search(trial, PLENTY), outcomes
