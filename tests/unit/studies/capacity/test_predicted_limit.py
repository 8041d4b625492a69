"""studies/capacity/strategy.py: searches whose overload trial predicts the limit confirm where the bracket is made."""

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.codes import SearchEnd
from streamgauge.results.labels import share_of
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.constants import FAR_ABOVE
from streamgauge.studies.capacity.search import TrialOutcome
from streamgauge.studies.capacity.search_state import State, TrialRequest
from tests.unit.studies.capacity.helpers_search import (
    PLENTY,
    Sut,
    capacities,
    requested_after,
    searched,
)


class Predicted(Sut):
    """Its overload trial predicts `predicted` times what it sustains; batches of others show their busy share."""

    def __init__(self, capacity_per_s: float, predicted: float, busy: bool = True, **more: Any) -> None:
        super().__init__(capacity_per_s, **more)
        self.predicted, self.busy = predicted, busy

    def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = super().__call__(rate, purpose, fresh)
        if purpose == "overload":
            return dataclasses.replace(outcome, limit_per_s=self.predicted * self.capacity_per_s)
        share = NEAR_LIMIT.fixed + (NEAR_LIMIT.over - NEAR_LIMIT.fixed) * rate / self.capacity_per_s
        return dataclasses.replace(outcome, busy_share=share if self.busy else None)


def with_starts(sut: Sut) -> Sut:
    """Outcomes name the start of the engine on which each ran."""
    sut.fields = lambda *_: {"engine_start": sum(sut.fresh)}
    return sut


@pytest.mark.parametrize(
    ("keeps_rows", "share"), [(False, 1.0), (True, NEAR_LIMIT.rate_at(NEAR_LIMIT.keeping_rows, 1.0, NEAR_LIMIT.full))]
)
@pytest.mark.parametrize("quick", [False, True])
def test_a_predicted_limit_gives_the_first_guess(keeps_rows: bool, share: float, quick: bool) -> None:
    """Whatever was drained: where batches leave enough time over to decide."""
    overload = TrialOutcome(0, "not_sustained", drained_per_s=4e5, limit_per_s=1e6)
    request = requested_after(overload, keeps_rows=keeps_rows, quick=quick)
    assert (request.rate_per_s, request.fresh) == (pytest.approx(1e6 * share), not quick)


def test_a_good_prediction_needs_four_trials() -> None:
    """The guess serves as the trial at 90 %, and the rate that held on the fresh engine is not tried again."""
    sut = Predicted(1e6, 0.95)
    result = searched(sut)
    assert sut.purposes == ["overload", "bracket", "bracket", "bracket"]
    assert sut.fresh == [True, True, False, False]
    assert (result.confirmed, result.high_verdict, result.at_90_percent.number) == (True, "not_sustained", 2)
    share = share_of(result.at_90_percent.offered_per_s, result.low)
    assert f"confirmed on an engine started after the overload trial and at {share}" in result.sentence


@given(capacity=capacities.filter(lambda rate: rate > 2), predicted=st.floats(0.5, 2), busy=st.booleans())
@example(capacity=1e6, predicted=1.5, busy=True)
def test_a_predicted_limit_that_errs_changes_nothing(capacity: float, predicted: float, busy: bool) -> None:
    """The answer is one that a linear scan finds; its engine was never offered far more before it held. If the bracket
    was, the rate is confirmed on an engine started for that.
    """
    sut = Predicted(capacity, predicted, busy)
    result = searched(sut)
    assert result.confirmed
    assert result.low <= capacity < result.low * (1 + PLENTY.tolerance) ** 2
    last = len(sut.rates) - 1 - sut.rates[::-1].index(result.low)
    start = max(number for number in range(last + 1) if sut.fresh[number])
    assert start > 0
    assert max(sut.rates[start : last + 1]) <= FAR_ABOVE * result.low


def test_an_answer_whose_ninety_percent_fail_is_tried_lower_on_the_same_engine() -> None:
    sut = with_starts(Predicted(1e6, 1.04, **{"at 90 %": ["not_sustained"]}))
    result = searched(sut)
    assert (sut.purposes[-3:], any(sut.fresh[2:])) == (["at 90 %", "confirm", "at 90 %"], False)
    assert (result.confirmed, result.high) == (True, sut.rates[-3])
    assert "on an engine started after the overload trial, after a trial at" in result.sentence


@pytest.mark.parametrize("verdict", ["undecided", "invalid"])
def test_an_answer_whose_ninety_percent_decide_nothing_must_hold_twice(verdict: VerdictValue) -> None:
    """Nothing was reported against the rate; but one trial alone confirms none."""
    sut = Predicted(1e6, 1.04, **{"at 90 %": [verdict] * 9})
    result = searched(sut)
    assert (sut.purposes[-3:], result.confirmed) == (["at 90 %", "at 90 %", "confirm"], True)
    assert f"{verdict} at 90 %" in result.sentence or f"the trial at 90 % was {verdict}" in result.sentence


@pytest.mark.parametrize("verdict", ["undecided", "invalid"])
@pytest.mark.parametrize("predicts", [True, False])
def test_after_a_step_down_too_one_trial_confirms_nothing(verdict: VerdictValue, predicts: bool) -> None:
    """90 % fail first; later ones decide nothing."""
    verdicts: Any = {"at 90 %": ["not_sustained", *[verdict] * 9]}
    sut = Predicted(1e6, 1.04, **verdicts) if predicts else Sut(1e6, **verdicts)
    result = searched(sut)
    assert sut.purposes[-5:] == ["at 90 %", "confirm", "at 90 %", "at 90 %", "confirm"]
    assert sut.rates[-4] == sut.rates[-1] == result.low
    assert result.confirmed


def test_a_rate_that_differs_by_rounding_is_the_same_rate() -> None:
    """Else a result says that 1.47 M/s holds, and that 1.47 M/s does not."""
    state = State(PLENTY)
    state.trials.append((TrialRequest(1e6, "bisect", False), TrialOutcome(1e6, "sustained")))
    assert state.tried_before(1e6 * (1 + 1e-15)) == 1e6
    assert state.tried_before(1.0001e6) == 1.0001e6


def test_a_rate_that_held_is_confirmed_even_if_the_next_one_is_invalid_twice() -> None:
    """90 % of it held too."""
    result = searched(Predicted(1e6, 0.95, bracket=[None, None, "invalid", "invalid"]))
    assert (result.confirmed, result.high, result.ended_by) == (True, None, SearchEnd.INVALID_TWICE)


def test_no_confirmation_follows_far_more() -> None:
    """90 % fail where the limit fell: the next rate lies 1.4 times below what the engine was offered."""
    sut = Predicted(1e6, 1.24, failed_flatters=1.05, **{"at 90 %": ["not_sustained"]})
    searched(sut)
    refuted = sut.purposes.index("at 90 %")
    assert (sut.purposes[refuted + 1], *sut.fresh[refuted : refuted + 2]) == ("confirm", False, True)
    assert sut.rates[1] > FAR_ABOVE * sut.rates[refuted + 1]


@pytest.mark.parametrize("sut", [Predicted(1e6, 1.0), Sut(1.5e6)])
def test_flows_with_unbounded_state_get_a_fresh_engine_each_time(sut: Sut) -> None:
    """No trial may begin with the state of another."""
    assert searched(sut, fresh_always=True).confirmed
    assert all(sut.fresh)
    assert ("confirm" in sut.purposes) is not isinstance(sut, Predicted)
