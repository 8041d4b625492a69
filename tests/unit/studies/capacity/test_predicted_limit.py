"""studies/capacity/strategy.py: searches whose overload trial predicts the limit confirm where the bracket is made."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.results import labels
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, TrialCall, TrialOutcome, search
from streamgauge.studies.capacity.search_state import FAR_ABOVE, State, TrialRequest, summary
from streamgauge.studies.capacity.strategy import (
    BUSY_FULL,
    BUSY_OVER,
    FIXED_SHARE,
    KEPT_ROWS_BUSY,
    rate_at,
)
from tests.unit.studies.capacity.helpers_search import PLENTY, Scripted, capacities, search_with_outcomes


class Predicted(Scripted):
    """Its overload trial predicts `predicted` times what it sustains."""

    predicted = 1.0
    busy = True

    def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = super().__call__(rate, purpose, fresh)
        if purpose == "overload":
            return dataclasses.replace(outcome, limit_per_s=self.predicted * self.capacity_per_s)
        share = FIXED_SHARE + (BUSY_OVER - FIXED_SHARE) * rate / self.capacity_per_s
        return dataclasses.replace(outcome, busy_share=share if self.busy else None)


def at(capacity_per_s: float, predicted: float, changed: Any = lambda rate, number, purpose: None) -> Predicted:
    """A system whose limit is predicted as `predicted` times what it sustains."""
    sut = Predicted(capacity_per_s, changed)
    sut.predicted = predicted
    return sut


def with_starts(sut: Predicted, first: int = 0) -> TrialCall:
    """The system's trials with the start of the engine on which each ran; up to trial `first`+1 all ran on one."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = sut(rate, purpose, fresh)
        start = sum(request.fresh for request in sut.requests)
        return dataclasses.replace(outcome, engine_start=max(1, start - first))

    return trial


@pytest.mark.parametrize(("keeps_rows", "share"), [(False, 1.0), (True, rate_at(KEPT_ROWS_BUSY, 1.0, BUSY_FULL))])
@pytest.mark.parametrize("quick", [False, True])
def test_a_predicted_limit_gives_the_first_guess(keeps_rows: bool, share: float, quick: bool) -> None:
    """Whatever was drained: where batches leave enough time over to decide."""
    machine = Search(dataclasses.replace(PLENTY, keeps_rows=keeps_rows, quick=quick))
    machine.tell(TrialOutcome(5e7, "not_sustained", drained_per_s=4e5, limit_per_s=1e6, purpose="overload"))
    assert machine.request is not None
    assert machine.request.rate_per_s == pytest.approx(1e6 * share)
    assert machine.request.fresh is not quick


def test_a_good_prediction_needs_four_trials() -> None:
    """The guess serves as the trial at 90 %, and the rate that held on the fresh engine is not tried again."""
    sut = at(1e6, 0.95)
    result = search(sut, PLENTY)
    assert sut.purposes == ["overload", "bracket", "bracket", "bracket"]
    assert [request.fresh for request in sut.requests] == [True, True, False, False]
    assert (result.confirmed, result.high_verdict) == (True, "not_sustained")
    assert result.at_90_percent is not None
    assert result.at_90_percent.number == 2
    assert "confirmed on an engine started after the overload trial and at 90 %" in result.sentence


@given(capacity=capacities.filter(lambda rate: rate > 2), predicted=st.floats(0.5, 2), busy=st.booleans())
def test_a_predicted_limit_that_errs_changes_nothing(capacity: float, predicted: float, busy: bool) -> None:
    """The answer is one that a linear scan finds; its engine was never offered far more before it held."""
    sut = at(capacity, predicted)
    sut.busy = busy
    result = search(sut, PLENTY)
    assert result.confirmed
    assert result.low is not None
    assert result.low <= capacity < result.low * (1 + PLENTY.tolerance) ** 2
    rates = [request.rate_per_s for request in sut.requests]
    last = len(rates) - 1 - rates[::-1].index(result.low)
    start = max(number for number in range(last + 1) if sut.requests[number].fresh)
    assert start > 0
    assert max(rates[start : last + 1]) <= FAR_ABOVE * result.low


def test_an_engine_that_was_offered_far_too_much_confirms_nothing() -> None:
    """A prediction that is half as high again: the rate is confirmed on an engine started for that."""
    sut = at(1e6, 1.5)
    result = search(sut, PLENTY)
    assert sut.purposes[-1] == "confirm"
    assert sum(request.fresh for request in sut.requests) == 3
    assert result.confirmed


def test_a_rate_that_held_after_a_failure_above_it_names_the_failure() -> None:
    """The engine was offered a little more before."""
    sut = at(1e6, 1.04)
    result = search(with_starts(sut), PLENTY)
    assert sut.purposes == ["overload", "bracket", "bracket", "at 90 %"]
    assert "on an engine started after the overload trial, after a trial at 1.04 M" in result.sentence
    assert "that did not hold and at 90 %" in result.sentence


def test_an_answer_whose_ninety_percent_fail_is_tried_lower_on_the_same_engine() -> None:
    message: list[VerdictValue] = ["not_sustained"]
    sut = at(1e6, 1.04, lambda rate, number, purpose: message.pop() if message and purpose == "at 90 %" else None)
    result = search(with_starts(sut), PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "confirm", "at 90 %"]
    assert not any(request.fresh for request in sut.requests[2:])
    assert (result.confirmed, result.high) == (True, sut.requests[-3].rate_per_s)
    assert "on an engine started after the overload trial, after a trial at" in result.sentence


@pytest.mark.parametrize("verdict", ["undecided", "invalid"])
def test_an_answer_whose_ninety_percent_decide_nothing_must_hold_twice(verdict: VerdictValue) -> None:
    """Nothing was reported against the rate; but one trial alone confirms none."""
    sut = at(1e6, 1.04, lambda rate, number, purpose: verdict if purpose == "at 90 %" else None)
    result = search(sut, PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "at 90 %", "confirm"]
    assert result.confirmed
    assert f"{verdict} at 90 %" in result.sentence or f"the trial at 90 % was {verdict}" in result.sentence


@pytest.mark.parametrize("verdict", ["undecided", "invalid"])
@pytest.mark.parametrize("predicts", [True, False])
def test_after_a_step_down_too_one_trial_confirms_nothing(verdict: VerdictValue, predicts: bool) -> None:
    """90 % fail first; later ones decide nothing."""
    message: list[VerdictValue] = ["not_sustained"]

    def changed(rate: float, number: int, purpose: str) -> VerdictValue | None:
        return (message.pop() if message else verdict) if purpose == "at 90 %" else None

    sut = at(1e6, 1.04, changed) if predicts else Scripted(1e6, changed)
    result = search(sut, PLENTY)
    assert sut.purposes[-5:] == ["at 90 %", "confirm", "at 90 %", "at 90 %", "confirm"]
    assert sut.requests[-4].rate_per_s == sut.requests[-1].rate_per_s == result.low
    assert result.confirmed


def test_an_engine_that_was_started_again_in_the_bisection_is_no_fresh_one() -> None:
    """After a resume, for instance: it was started for no confirmation."""
    trials = [
        TrialOutcome(rate, verdict, purpose=purpose, engine_start=start)
        for rate, verdict, purpose, start in ((8e5, "sustained", "bracket", 2), (9e5, "sustained", "bisect", 3))
    ]  # fmt: skip
    table = [summary(n, TrialRequest(one.rate_per_s, "bisect", False), one) for n, one in enumerate(trials, 1)]
    assert "started after the overload trial" in labels.confirmed(table, 9e5, table[0])


def test_a_rate_that_differs_by_rounding_is_the_same_rate() -> None:
    """Else a result says that 1.47 M/s holds, and that 1.47 M/s does not."""
    state = State(PLENTY)
    state.trials.append((TrialRequest(1e6, "bisect", False), TrialOutcome(1e6, "sustained")))
    assert state.tried_before(1e6 * (1 + 1e-15)) == 1e6
    assert state.tried_before(1.0001e6) == 1.0001e6


def test_a_rate_that_held_once_is_not_confirmed_when_trials_run_out() -> None:
    sut = at(1e6, 1.04)
    assert not search(sut, dataclasses.replace(PLENTY, trials_max=3)).confirmed
    assert sut.purposes[-1] == "bracket"


def test_a_rate_that_held_is_confirmed_even_if_the_next_one_is_invalid_twice() -> None:
    """90 % of it held too."""
    sut = at(1e6, 0.95, lambda rate, number, purpose: "invalid" if number in (4, 5) else None)
    result = search(sut, PLENTY)
    assert (result.confirmed, result.high) == (True, None)
    assert "ended early: invalid twice" in result.sentence


def test_no_confirmation_follows_far_more() -> None:
    """90 % fail where the limit fell: the next rate lies 1.4 times below what the engine was offered."""
    message: list[VerdictValue] = ["not_sustained"]
    sut = at(1e6, 1.24, lambda rate, number, purpose: message.pop() if message and purpose == "at 90 %" else None)
    sut.failed_flatters = 1.05
    search(sut, PLENTY)
    refuted = sut.purposes.index("at 90 %")
    assert (sut.requests[refuted].fresh, sut.requests[refuted + 1].purpose) == (False, "confirm")
    assert sut.requests[1].rate_per_s > FAR_ABOVE * sut.requests[refuted + 1].rate_per_s
    assert sut.requests[refuted + 1].fresh


def test_a_bracket_on_the_engine_of_the_overload_trial_confirms_nothing() -> None:
    """So it is in a search that an older version began."""
    sut = at(1e6, 0.95)
    result = search(with_starts(sut, first=1), PLENTY)
    assert sut.requests[sut.purposes.index("confirm")].fresh
    assert "confirmed on a fresh engine" in result.sentence


def test_a_killed_search_goes_on_with_what_it_would_have_requested() -> None:
    """From its outcomes, whose rates another machine may have rounded."""
    sut = at(1e6, 1.04)
    whole, outcomes = search_with_outcomes(sut)
    for cut in range(len(outcomes)):
        rounded = [dataclasses.replace(one, rate_per_s=one.rate_per_s * (1 + 1e-12)) for one in outcomes[:cut]]
        rest = at(1e6, 1.04)
        assert search(rest, PLENTY, recorded=rounded) == whole
        assert rest.requests == sut.requests[cut:]


def test_flows_with_unbounded_state_get_a_fresh_engine_each_time() -> None:
    sut = at(1e6, 1.0)
    assert search(sut, dataclasses.replace(PLENTY, fresh_always=True)).confirmed
    assert all(request.fresh for request in sut.requests)
    assert "confirm" not in sut.purposes


def test_the_table_says_what_the_search_believed() -> None:
    """A driver that is starved where batches are full at any rate: the trial is shown as one that was disturbed."""
    machine = Search(dataclasses.replace(PLENTY, start_per_s=1e6))
    machine.tell(TrialOutcome(1e6, "invalid", purpose="bracket", starved=True, busy_share=0.99))
    assert not machine.result().trials[0].starved
    assert machine.request is not None
    assert machine.request.rate_per_s == 1e6
