"""studies/capacity/strategy.py: searches whose overload trial predicts the limit confirm where the bracket is made."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, TrialOutcome, search
from streamgauge.studies.capacity.search_state import FAR_ABOVE
from streamgauge.studies.capacity.strategy import (
    BUSY_FULL,
    BUSY_OVER,
    FIXED_SHARE,
    KEPT_ROWS_BUSY,
    rate_at,
)
from tests.unit.studies.capacity.helpers_search import PLENTY, Scripted, capacities


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
    assert "confirmed on a fresh engine and at 90 %" in result.sentence


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

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = sut(rate, purpose, fresh)
        return dataclasses.replace(outcome, engine_start=sum(request.fresh for request in sut.requests))

    result = search(trial, PLENTY)
    assert sut.purposes == ["overload", "bracket", "bracket", "at 90 %"]
    assert "on an engine started after the overload trial, after a trial at 1.04 M" in result.sentence
    assert "that did not hold and at 90 %" in result.sentence


def test_an_answer_that_is_refuted_at_ninety_percent_is_tried_lower_on_the_same_engine() -> None:
    said: list[VerdictValue] = ["not_sustained"]
    sut = at(1e6, 1.04, lambda rate, number, purpose: said.pop() if said and purpose == "at 90 %" else None)
    result = search(sut, PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "confirm", "at 90 %"]
    assert not any(request.fresh for request in sut.requests[2:])
    assert result.confirmed
    assert result.high == sut.requests[-3].rate_per_s


def test_a_rate_that_held_is_confirmed_even_if_the_next_one_is_invalid_twice() -> None:
    """Nothing disturbed the engine before it held."""
    sut = at(1e6, 1.0, lambda rate, number, purpose: "invalid" if number >= 3 else None)
    result = search(sut, PLENTY)
    assert (result.confirmed, result.high) == (True, None)
    assert "ended early: invalid twice" in result.sentence


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
