"""The search for the highest sustained rate as a state machine: it gives a request and takes its outcome.

The strategy is in `studies.capacity.strategy`, the state in `studies.capacity.search_state`. This module has the rest:
the ends of a search and resuming it. The same outcomes always lead to the same next trial, so a killed
search is resumed by replaying its outcomes. An interruption ends the search, and so do two invalid trials in a row (the
driver failed); the highest rate that held is then a lower bound. Wrong answers in a trial that otherwise kept up end it
without a rate. The result says what ended the search, and whether its rate was confirmed.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from streamgauge.core.errors import require
from streamgauge.results.codes import SearchEnd
from streamgauge.results.search import SearchResult
from streamgauge.results.text.search import search_sentence
from streamgauge.results.verdict import Remark
from streamgauge.studies.capacity.constants import SLACK
from streamgauge.studies.capacity.search_state import (
    Purpose,
    SearchEnded,
    Settings,
    State,
    TrialOutcome,
    TrialRequest,
    summary,
)
from streamgauge.studies.capacity.strategy import believed, steps

__all__ = ["Search", "Settings", "TrialCall", "TrialOutcome", "TrialRequest", "search"]

TrialCall = Callable[[float, Purpose, bool], TrialOutcome]
"""trial(rate_per_s, purpose, fresh)."""


class Search:
    """A search as a state machine: `request` is the next trial (None: the search is over), `tell` takes its outcome.

    `recorded`: outcomes of a killed search, in order. InputError if they belong to other settings.

    >>> search = Search(Settings(ceiling_per_s=1000.0, start_per_s=100.0, quick=True))
    >>> while search.request is not None:
    ...     held = search.request.rate_per_s <= 150
    ...     search.tell(TrialOutcome(search.request.rate_per_s, "sustained" if held else "not_sustained"))
    >>> search.result().low <= 150 < search.result().high
    True
    """

    def __init__(self, settings: Settings, recorded: Iterable[TrialOutcome] = ()) -> None:
        self._state = State(settings)
        self._asking = steps(self._state)
        self.request: TrialRequest | None = None
        self._advance(lambda: next(self._asking))
        for outcome in recorded:
            self.tell(outcome)

    def tell(self, outcome: TrialOutcome) -> None:
        """Takes the outcome of the requested trial. InputError if it has another rate or purpose."""
        request = self.request
        require(request, "search.resume", "holds more trials than this search makes", outcome, "start a new search")
        assert request is not None
        _require_same(request, outcome)
        state = self._state
        outcome = believed(state, replace(outcome, rate_per_s=request.rate_per_s))
        state.trials.append((request, outcome))
        if outcome.wrong_answers:
            # A lower rate would only hide the fault, because a trial then has too few results to show it.
            state.held, state.confirmed_per_s = set(), None
            facts = {"rate": outcome.rate_per_s, "faults": outcome.wrong_answers}
            self.end(Remark(SearchEnd.WRONG_ANSWERS, facts))
        else:
            self._advance(lambda: self._asking.send(outcome))
        if self.request is not None and len(state.trials) >= state.settings.trials_max:
            self.end(Remark(SearchEnd.TRIALS_USED_UP, {"n": state.settings.trials_max}))

    def end(self, end: Remark) -> None:
        """Ends the search early; the result says why."""
        self._asking.close()
        self._state.ended, self.request = end, None

    def result(self) -> SearchResult:
        """The answer so far."""
        state = self._state
        trials = tuple(summary(number, *trial) for number, trial in enumerate(state.trials, start=1))
        settings, low = state.settings, state.low
        found = SearchResult(
            sustained_per_s=state.low,
            low=state.low,
            high=state.high,
            high_verdict=state.high_verdict,
            refused_per_s=state.refused_per_s,
            relative_width=state.width if state.high_is_proven else None,
            confirmed=state.confirmed_per_s is not None,
            at_90_percent=state.at_90_percent,
            trials=trials,
            seconds=sum(trial.seconds for trial in trials),
            ended_by=None if state.ended is None else SearchEnd[state.ended.code.name],
        )
        sentence = search_sentence(
            found, state.ended, quick=settings.quick, narrow_to=settings.tolerance if state.is_narrow else None,
            at_ceiling=low is not None and low >= settings.ceiling_per_s * (1 - SLACK),
        )  # fmt: skip
        return found.model_copy(update={"sentence": sentence})

    def _advance(self, step: Callable[[], TrialRequest]) -> None:
        try:
            self.request = step()
        except StopIteration:
            self.request = None
        except SearchEnded as reason:
            self.end(reason.end)


def search(trial: TrialCall, settings: Settings, recorded: Iterable[TrialOutcome] = ()) -> SearchResult:
    """The highest sustained rate. Calls `trial` for every request that `recorded` does not answer."""
    machine = Search(settings, recorded)
    while (request := machine.request) is not None:
        machine.tell(trial(request.rate_per_s, request.purpose, request.fresh))
    return machine.result()


def _require_same(request: TrialRequest, outcome: TrialOutcome) -> None:
    same_rate = math.isclose(request.rate_per_s, outcome.rate_per_s, rel_tol=1e-6)
    # Other settings are refused before the replay, so the strategy must differ.
    require(
        same_rate and outcome.purpose in ("", request.purpose), "search.resume",
        f"must be by this version of streamgauge, which tries {request.purpose} at {request.rate_per_s:.6g}/s here",
        f"{outcome.purpose or 'a trial'} at {outcome.rate_per_s:.6g}/s",
        "another version of streamgauge made it: start a new search, without --resume",
    )  # fmt: skip
