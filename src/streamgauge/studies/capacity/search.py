"""The search for the highest sustained rate as a state machine: it gives a request and takes its outcome.

The strategy is in `studies.capacity.strategy`, the state in `studies.capacity.search_state`. This module has the rest:
the ends of a search, resuming it, and its sentences. The same outcomes always lead to the same next trial, so a killed
search is resumed by replaying its outcomes. An interruption ends the search, and so do two invalid trials in a row (the
driver failed); the highest rate that held is then a lower bound. Wrong answers in a trial that otherwise kept up end it
without a rate. The result says what ended the search, and whether its rate was confirmed.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from streamgauge.core.errors import require
from streamgauge.core.formatting import format_rate
from streamgauge.results import labels
from streamgauge.results.codes import SearchEnd
from streamgauge.results.search import SearchResult, TrialSummary
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

__all__ = ["Search", "Settings", "TrialCall", "TrialOutcome", "TrialRequest", "replay", "search"]

TrialCall = Callable[[float, Purpose, bool], TrialOutcome]
"""trial(rate_per_s, purpose, fresh)."""


class Search:
    """A search as a state machine: `request` is the next trial (None: the search is over), `tell` takes its outcome.

    >>> search = Search(Settings(ceiling_per_s=1000.0, start_per_s=100.0, quick=True))
    >>> while search.request is not None:
    ...     held = search.request.rate_per_s <= 150
    ...     search.tell(TrialOutcome(search.request.rate_per_s, "sustained" if held else "not_sustained"))
    >>> search.result().low <= 150 < search.result().high
    True
    """

    def __init__(self, settings: Settings) -> None:
        self._state = State(settings)
        self._asking = steps(self._state)
        self.request: TrialRequest | None = None
        self._advance(lambda: next(self._asking))

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
            state.forget_held()
            rate = format_rate(outcome.rate_per_s)
            reason = f"the answers are wrong at {rate}, although the system keeps up: {outcome.wrong_answers}"
            return self.end(SearchEnd.WRONG_ANSWERS, reason)
        if outcome.verdict == "interrupted":
            return self.end(SearchEnd.INTERRUPTED, f"interrupted: {outcome.why or 'no reason was given'}")
        self._advance(lambda: self._asking.send(outcome))
        if self.request is not None and len(state.trials) >= state.settings.trials_max:
            self.end(SearchEnd.TRIALS_USED_UP, f"all {state.settings.trials_max} allowed trials are used")
        return None

    def end(self, by: SearchEnd, reason: str) -> None:
        """Ends the search; the result says why."""
        self._asking.close()
        self._state.ended_by, self._state.ended, self.request = by, reason, None

    def result(self) -> SearchResult:
        """The answer so far."""
        state = self._state
        trials = tuple(summary(number, *trial) for number, trial in enumerate(state.trials, start=1))
        return SearchResult(
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
            ended_by=state.ended_by,
            sentence="; ".join(_sentences(state, trials)),
        )

    def _advance(self, step: Callable[[], TrialRequest]) -> None:
        try:
            self.request = step()
        except StopIteration:
            self.request = None
        except SearchEnded as reason:
            self.end(reason.by, str(reason))


def search(trial: TrialCall, settings: Settings, recorded: Iterable[TrialOutcome] = ()) -> SearchResult:
    """The highest sustained rate. Calls `trial` for every request that `recorded` does not answer.

    `recorded`: outcomes of a killed search, in order. InputError if they belong to other settings.
    """
    machine = replay(settings, recorded)
    while (request := machine.request) is not None:
        machine.tell(trial(request.rate_per_s, request.purpose, request.fresh))
    return machine.result()


def replay(settings: Settings, recorded: Iterable[TrialOutcome]) -> Search:
    """The search after `recorded`, ready to continue; an interrupted last trial is requested again."""
    machine = Search(settings)
    outcomes = list(recorded)
    while outcomes and outcomes[-1].verdict == "interrupted":
        outcomes.pop()
    for outcome in outcomes:
        machine.tell(outcome)
    return machine


def _require_same(request: TrialRequest, outcome: TrialOutcome) -> None:
    same_rate = math.isclose(request.rate_per_s, outcome.rate_per_s, rel_tol=1e-6)
    # Other settings are refused before the replay, so the strategy must differ.
    require(
        same_rate and outcome.purpose in ("", request.purpose), "search.resume",
        f"must be by this version of streamgauge, which tries {request.purpose} at {request.rate_per_s:.6g}/s here",
        f"{outcome.purpose or 'a trial'} at {outcome.rate_per_s:.6g}/s",
        "another version of streamgauge made it: start a new search, without --resume",
    )  # fmt: skip


def _sentences(state: State, trials: Sequence[TrialSummary]) -> list[str]:
    settings = state.settings
    said = ["no rate was found that holds" if state.low is None else f"{format_rate(state.low)} holds"]
    if state.high is not None:
        said.append(f"{format_rate(state.high)} {_NOT_HELD.get(str(state.high_verdict), 'does not')}")
    elif state.low is not None and state.low >= settings.ceiling_per_s * (1 - SLACK):
        said.append("the generator can offer no more, so the engine may sustain more")
    if state.high_is_proven and state.low is not None and not state.ended and not state.is_narrow:
        said.append(f"the bracket is {state.width:.0%} wide")
    if state.confirmed_per_s is not None:
        said.append(labels.confirmed(trials, state.confirmed_per_s, state.at_90_percent))
    elif state.low is not None:
        said.append("not confirmed (quick)" if settings.quick and not state.ended else "not confirmed")
    if state.ended:
        said.append(f"ended early: {state.ended}")
    elif state.is_narrow:
        said.append(f"the search ended because the two rates lie within {100 * settings.tolerance:.3g} %")
    return said


_NOT_HELD = {
    "undecided": "was undecided, which is not proof that it fails",
    "invalid": "was invalid, because the engine left the driver too little CPU, which is not proof that it fails",
}
