"""studies/capacity/search.py: trials that are invalid, and drivers that fail, say nothing of the engine."""

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.results.codes import SearchEnd
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import TrialOutcome, replay, search
from streamgauge.studies.capacity.search_state import SearchEnded, TrialRequest
from streamgauge.studies.capacity.strategy import DRAIN_OVERESTIMATE_FACTOR, DriverStarvationBackoff
from tests.unit.studies.capacity.helpers_search import CEILING, PLENTY, Scripted, Sut, capacities, search_with_outcomes


@pytest.mark.parametrize(("verdict", "trials"), [("invalid", 10), ("interrupted", 5)])
def test_a_driver_that_fails_twice_ends_the_search_and_keeps_what_held(verdict: VerdictValue, trials: int) -> None:
    """The highest rate that held stays as a lower bound, unconfirmed where that fails too, with the first reason."""
    sut = Scripted(1e6, lambda rate, number, purpose: verdict if number >= 5 else None)
    sut.flatters, sut.failed_flatters = 1.2 * DRAIN_OVERESTIMATE_FACTOR, 1.2
    result = search(sut, PLENTY)
    held = [request.rate_per_s for request in sut.requests[1:4] if request.rate_per_s <= 1e6]
    assert len(sut.requests) == trials
    assert (result.low, result.confirmed) == (max(held), False)
    assert f"ended early: {verdict}" in result.sentence
    assert result.ended_by == {"invalid": SearchEnd.INVALID_TWICE, "interrupted": SearchEnd.INTERRUPTED}[verdict]


@given(capacity=capacities, disturbed=st.sets(st.integers(2, 12)), cut=st.integers(0, 24))
def test_a_trial_that_was_disturbed_is_made_once_more(capacity: float, disturbed: set[int], cut: int) -> None:
    """The search asks the very same again, keeps both in its table, and finds what it would have found; killed at any
    moment, it goes on with what it would have asked next.
    """
    calm = Sut(capacity)
    calm_answer = search(calm, PLENTY)
    # The overload trial and the guess that it gave are not repeated.
    expected = [request for n, request in enumerate(calm.requests) for _ in range(2 if n in disturbed else 1)]
    spoilt = [place for place in range(1, len(expected)) if expected[place - 1] == expected[place]]
    sut = Scripted(capacity, lambda rate, number, purpose: "invalid" if number in spoilt else None)
    answer, outcomes = search_with_outcomes(sut)
    assert sut.requests == expected
    assert [trial.number for trial in answer.trials if trial.verdict == "invalid"] == spoilt
    assert (answer.low, answer.high, answer.confirmed) == (calm_answer.low, calm_answer.high, True)
    rest = Scripted(capacity, lambda rate, number, purpose: "invalid" if number + cut in spoilt else None)
    assert search(rest, PLENTY, recorded=outcomes[:cut]) == answer
    assert rest.requests == expected[cut:]


@given(capacity=capacities, flatters=st.floats(0.8, 2))
def test_the_guess_of_an_overload_trial_that_was_disturbed_is_lowered_by_a_width(
    capacity: float, flatters: float
) -> None:
    """One trial that proves nothing costs no second one at the same rate, and does not change what is found."""
    sut = Scripted(capacity, lambda rate, number, purpose: "invalid" if number == 2 else None)
    sut.flatters = flatters
    result = search(sut, PLENTY)
    guess, following = sut.requests[1].rate_per_s, sut.requests[2].rate_per_s
    assert following == pytest.approx(max(guess / (1 + PLENTY.tolerance), PLENTY.floor_per_s))
    assert result.confirmed
    assert result.low is not None
    assert result.low <= capacity < result.low * (1 + PLENTY.tolerance) ** 2


@pytest.mark.parametrize(
    ("drained", "following"), [(1.05e6, 1e6), (2e6, 1.5e6 / 1.05), (1e5, 0.75e6), (None, 1.5e6 / 1.05)]
)
def test_what_an_engine_drained_beside_a_failed_driver_is_the_next_guess(
    drained: float | None, following: float
) -> None:
    """Within half of the guess, because such a trial proves nothing."""
    sut = Scripted(1e6, lambda rate, number, purpose: "invalid" if number == 2 else None)
    sut.flatters = 1.5 * DRAIN_OVERESTIMATE_FACTOR

    def trial(*request: Any) -> TrialOutcome:
        outcome = sut(*request)
        return dataclasses.replace(outcome, drained_per_s=drained) if len(sut.requests) == 2 else outcome

    result = search(trial, PLENTY)
    assert [request.rate_per_s for request in sut.requests[1:3]] == pytest.approx([1.5e6, following])
    assert result.confirmed


@given(capacity=st.floats(1e3, 1e6), start=st.floats(0.05, 0.5), starved=st.floats(1.3, 8))
def test_a_driver_that_starves_far_above_what_held_is_asked_for_less(
    capacity: float, start: float, starved: float
) -> None:
    """On shared cores a hopeless rate leaves the driver no processor: that is no end, and no proof either."""
    sut = Scripted(capacity, lambda rate, number, purpose: "invalid" if rate > starved * capacity else None)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=start * capacity))
    assert (result.confirmed, result.high_verdict) == (True, "not_sustained")
    assert result.low is not None
    assert result.low <= capacity < result.low * (1 + PLENTY.tolerance) ** 2


def test_a_driver_that_starves_just_above_what_held_ends_the_search() -> None:
    """There is no rate left to ask: what held is confirmed as a lower bound, and the reason is reported."""
    sut = Scripted(1e6, lambda rate, number, purpose: "invalid" if rate > 1e6 else None)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=5e5))
    assert (result.confirmed, result.high) == (True, None)
    assert result.low is not None
    assert 1e6 / (1 + PLENTY.tolerance) ** 2 < result.low <= 1e6
    assert "ended early: invalid twice" in result.sentence
    starved = [request.rate_per_s for request in sut.requests if request.rate_per_s > 1e6]
    assert starved == sorted(starved, reverse=True), "nothing above what starved is asked again"


@pytest.mark.parametrize("purpose", ["bracket", "confirm"])
def test_an_engine_near_its_limit_that_starves_the_driver_is_not_repeated(purpose: str) -> None:
    """It was so twice at 12.5 M/s with full batches, and twice in a confirmation, which then ended the search."""

    def trial(rate: float, why: str, fresh: bool) -> TrialOutcome:
        outcome = sut(rate, why, fresh)
        if outcome.holds and not (purpose == why == "confirm" and sut.purposes.count("confirm") == 1):
            return dataclasses.replace(outcome, busy_share=0.9)
        return dataclasses.replace(outcome, verdict="invalid", starved=True, busy_share=0.98)

    sut = Sut(1e6)
    result = search(trial, dataclasses.replace(PLENTY, start_per_s=0.95e6))
    assert len({(request.rate_per_s, request.purpose) for request in sut.requests}) == len(sut.requests)
    assert (result.confirmed, result.high_verdict, result.relative_width) == (True, "invalid", None)
    assert result.low is not None
    assert 0.9e6 < result.low <= 1e6
    assert "left the driver too little CPU, which is not proof" in result.sentence
    assert result.ended_by is None


@pytest.mark.parametrize("share", [0.95, None])
def test_a_driver_that_is_starved_at_any_rate_has_a_fault(share: float | None) -> None:
    """Batches that are full at any rate tell no limit. Without them a few lower rates are tried."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        drained = 0.9 * rate if share is None else None
        return TrialOutcome(rate, "invalid", drained, purpose=purpose, starved=True, busy_share=share)

    result = search(trial, dataclasses.replace(PLENTY, start_per_s=1e5))
    assert (result.low, result.confirmed, result.ended_by) == (None, False, SearchEnd.INVALID_TWICE)
    assert len(result.trials) <= 11
    assert "invalid twice" in result.sentence


def test_a_trial_that_starved_the_driver_by_chance_is_repeated() -> None:
    """Batches follow each other at any rate, and the limit is far away."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = dataclasses.replace(sut(rate, purpose, fresh), busy_share=0.95)
        disturbed = len(sut.requests) == 2
        return dataclasses.replace(outcome, verdict="invalid", starved=True) if disturbed else outcome

    sut = Sut(1e5, failed_flatters=1.0)
    result = search(trial, dataclasses.replace(PLENTY, start_per_s=100, quick=True))
    assert sut.requests[1] == sut.requests[2]
    assert result.low == pytest.approx(1e5, rel=0.06)


def test_no_rate_at_which_the_driver_failed_is_offered_again() -> None:
    """Steps lead half way to it, and end within a width of it."""
    backoff = DriverStarvationBackoff(1.05)
    assert backoff.higher_rate(100.0, 400.0) == 400.0
    assert backoff.lower_rate(200.0, 100.0, SearchEnded(SearchEnd.INVALID_TWICE)) == pytest.approx(math.sqrt(2e4))
    assert backoff.higher_rate(100.0, 150.0) == 150.0
    assert backoff.higher_rate(160.0, 200.0) == pytest.approx(math.sqrt(160 * 200))
    with pytest.raises(SearchEnded):
        backoff.higher_rate(195.0, 210.0)


def test_a_first_guess_that_starves_the_driver_is_made_smaller() -> None:
    """The drain rate flatters, so of all rates the guess starves most often; half of it is tried before giving up."""
    sut = Scripted(1e6, lambda rate, number, purpose: "invalid" if rate > 1.3e6 else None)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=3e6))
    assert result.confirmed
    assert result.low == pytest.approx(1e6, rel=0.11)


def test_a_driver_that_fails_at_any_rate_ends_the_search() -> None:
    """Not after sixteen trials: four rates, each asked twice."""
    sut = Scripted(1e6, lambda rate, number, purpose: "invalid")
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=3e6))
    assert (len(sut.requests), result.low, result.confirmed) == (8, None, False)
    assert "ended early: invalid twice" in result.sentence


def test_what_is_undecided_at_ninety_percent_is_asked_once_more() -> None:
    """And what the second trial says counts."""
    message: list[VerdictValue | None] = ["undecided", None]
    sut = Scripted(1e6, lambda rate, number, purpose: message.pop(0) if purpose == "at 90 %" else None)
    result = search(sut, PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "at 90 %", "confirm"]
    assert [request.fresh for request in sut.requests[-3:]] == [True, False, False]
    assert "that was undecided and at 90 %" in result.sentence
    assert result.at_90_percent is not None
    assert result.at_90_percent.number == len(sut.requests) - 1


def test_what_is_invalid_twice_at_ninety_percent_leaves_the_rate_confirmed() -> None:
    """Nothing was reported against it; and it is not called confirmed at 90 %."""
    sut = Scripted(1e6, lambda rate, number, purpose: "invalid" if purpose == "at 90 %" else None)
    result = search(sut, PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "at 90 %", "confirm"]
    assert result.confirmed
    assert result.at_90_percent is not None
    assert (result.at_90_percent.number, result.at_90_percent.verdict) == (len(sut.requests) - 1, "invalid")


def test_two_trials_that_held_do_not_replace_the_one_at_ninety_percent() -> None:
    """The rate below held in the bracket and in the confirmation; 90 % of it was not tried yet."""
    message: dict[str, list[VerdictValue]] = {"at 90 %": ["invalid", "invalid"], "confirm": ["not_sustained"]}
    sut = Scripted(1e6, lambda rate, number, purpose: message[purpose].pop() if message.get(purpose) else None)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=0.97e6, tolerance=0.02))
    assert sut.purposes[-5:] == ["at 90 %", "at 90 %", "confirm", "confirm", "at 90 %"]
    assert (result.low, result.confirmed) == (0.97e6, True)
    assert "and at 90 %" in result.sentence


def test_an_overload_trial_may_be_invalid_and_still_give_a_guess() -> None:
    """Under overload the driver starves on shared cores; the guess is tested anyway."""
    sut = Scripted(1e6, lambda rate, number, purpose: "invalid" if number == 1 else None)
    assert search(sut, PLENTY).confirmed


def test_a_driver_that_fails_in_the_overload_trial_says_nothing_of_the_engine() -> None:
    """Made once more where nothing was drained; twice, the search ends with the driver's reason, and shows invalid."""
    outcomes = [TrialOutcome(CEILING, "invalid", 0.0, why=f"generator {n} ended") for n in range(2)]
    once = replay(PLENTY, outcomes[:1])
    assert once.request == TrialRequest(CEILING, "overload", fresh=True)
    twice = replay(PLENTY, outcomes).result()
    assert [trial.verdict for trial in twice.trials] == ["invalid", "invalid"]
    assert "ended early: invalid twice" in twice.sentence
    assert "generator 1 ended" in twice.sentence
