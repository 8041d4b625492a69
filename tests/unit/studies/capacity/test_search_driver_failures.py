"""studies/capacity/search.py: trials that are invalid, and drivers that fail, say nothing of the engine."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.codes import SearchEnd
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, TrialOutcome, search
from streamgauge.studies.capacity.search_state import TrialRequest
from tests.unit.studies.capacity.helpers_search import CEILING, PLENTY, Sut, capacities, search_with_outcomes, searched


def test_a_driver_that_fails_twice_ends_the_search_and_keeps_what_held() -> None:
    """The highest rate that held stays as a lower bound, unconfirmed where that fails too, with the first reason."""
    sut = Sut(
        1e6,
        1.2 * NEAR_LIMIT.drain_factor,
        1.2,
        changed=lambda rate, number, purpose: "invalid" if number >= 5 else None,
    )
    result = searched(sut)
    low = max(rate for rate in sut.rates[1:4] if rate <= 1e6)
    assert (len(sut.requests), result.low, result.confirmed) == (10, low, False)
    assert result.ended_by == SearchEnd.INVALID_TWICE


@given(capacity=capacities, disturbed=st.sets(st.integers(2, 12)), cut=st.integers(0, 24))
def test_a_trial_that_was_disturbed_is_made_once_more(capacity: float, disturbed: set[int], cut: int) -> None:
    """The search asks the very same again, keeps both in its table, and finds what it would have found; killed at any
    moment, it goes on with what it would have requested next.
    """
    calm = Sut(capacity)
    calm_answer = searched(calm)
    # The overload trial and the guess that it gave are not repeated.
    expected = [request for n, request in enumerate(calm.requests) for _ in range(2 if n in disturbed else 1)]
    spoilt = [place for place in range(1, len(expected)) if expected[place - 1] == expected[place]]
    sut = Sut(capacity, changed=lambda rate, number, purpose: "invalid" if number in spoilt else None)
    answer, outcomes = search_with_outcomes(sut)
    assert sut.requests == expected
    assert [trial.number for trial in answer.trials if trial.verdict == "invalid"] == spoilt
    assert (answer.low, answer.high, answer.confirmed) == (calm_answer.low, calm_answer.high, True)
    rest = Sut(capacity, changed=lambda rate, number, purpose: "invalid" if number + cut in spoilt else None)
    assert search(rest, PLENTY, recorded=outcomes[:cut]) == answer
    assert rest.requests == expected[cut:]


@given(capacity=capacities, flatters=st.floats(0.8, 2))
def test_the_guess_of_an_overload_trial_that_was_disturbed_is_lowered_by_a_width(
    capacity: float, flatters: float
) -> None:
    """One trial that proves nothing costs no second one at the same rate, and does not change what is found."""
    sut = Sut(capacity, flatters, 1.4, changed=lambda rate, number, purpose: "invalid" if number == 2 else None)
    result = searched(sut)
    _, guess, following, *_ = sut.rates
    assert following == pytest.approx(max(guess / (1 + PLENTY.tolerance), PLENTY.floor_per_s))
    assert result.confirmed
    assert result.low <= capacity < result.low * (1 + PLENTY.tolerance) ** 2


@pytest.mark.parametrize(
    ("drained", "following"), [(1.05e6, 1e6), (2e6, 1.5e6 / 1.05), (1e5, 0.75e6), (None, 1.5e6 / 1.05)]
)
def test_what_an_engine_drained_beside_a_failed_driver_is_the_next_guess(
    drained: float | None, following: float
) -> None:
    """Within half of the guess, because such a trial proves nothing."""
    invalid = {"verdict": "invalid", "drained_per_s": drained}
    sut = Sut(1e6, 1.5 * NEAR_LIMIT.drain_factor, 1.4, fields=lambda _, number: invalid if number == 2 else {})
    assert searched(sut).confirmed
    assert sut.rates[1:3] == pytest.approx([1.5e6, following])


@given(capacity=st.floats(1e3, 1e6), start=st.floats(0.05, 0.5), starved=st.floats(1.3, 8))
def test_a_driver_that_starves_far_above_what_held_is_offered_less(
    capacity: float, start: float, starved: float
) -> None:
    """On shared cores a hopeless rate leaves the driver no processor: that is no end, and no proof either."""
    sut = Sut(capacity, changed=lambda rate, number, purpose: "invalid" if rate > starved * capacity else None)
    result = searched(sut, start_per_s=start * capacity)
    assert (result.confirmed, result.high_verdict) == (True, "not_sustained")
    assert result.low <= capacity < result.low * (1 + PLENTY.tolerance) ** 2


def test_a_driver_that_starves_just_above_what_held_ends_the_search() -> None:
    """There is no rate left to try: what held is confirmed as a lower bound, and the reason is reported."""
    sut = Sut(1e6, changed=lambda rate, number, purpose: "invalid" if rate > 1e6 else None)
    result = searched(sut, start_per_s=5e5)
    assert (result.confirmed, result.high, result.ended_by) == (True, None, SearchEnd.INVALID_TWICE)
    assert 1e6 / (1 + PLENTY.tolerance) ** 2 < result.low <= 1e6
    starved = [rate for rate in sut.rates if rate > 1e6]
    assert starved == sorted(starved, reverse=True), "nothing above what starved is tried again"


@pytest.mark.parametrize("purpose", ["bracket", "confirm"])
def test_an_engine_near_its_limit_that_starves_the_driver_is_not_repeated(purpose: str) -> None:
    """It was so twice at 12.5 M/s with full batches, and twice in a confirmation, which then ended the search."""

    def fields(outcome: TrialOutcome, number: int) -> dict[str, Any]:
        held = outcome.holds and not (purpose == outcome.purpose == "confirm" and sut.purposes.count("confirm") == 1)
        return {"busy_share": 0.9} if held else {"verdict": "invalid", "starved": True, "busy_share": 0.98}

    sut = Sut(1e6, fields=fields)
    result = searched(sut, start_per_s=0.95e6)
    assert len(set(zip(sut.rates, sut.purposes, strict=True))) == len(sut.requests)
    assert (result.confirmed, result.high_verdict, result.relative_width) == (True, "invalid", None)
    assert 0.9e6 < result.low <= 1e6
    assert result.ended_by is None


@pytest.mark.parametrize(
    ("starved", "drained_share", "busy_share", "trials_max"),
    [(True, None, 0.95, 8), (True, 0.9, None, 11), (False, None, None, 8)],
)
def test_a_driver_that_fails_at_any_rate_has_a_fault(
    starved: bool, drained_share: float | None, busy_share: float | None, trials_max: int
) -> None:
    """Batches that are full at any rate show no limit. Without them four rates are tried twice, or a few lower ones."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        drained = drained_share and drained_share * rate
        return TrialOutcome(rate, "invalid", drained, purpose=purpose, starved=starved, busy_share=busy_share)

    result = searched(trial, start_per_s=1e5)
    assert (result.low, result.confirmed, result.ended_by) == (None, False, SearchEnd.INVALID_TWICE)
    assert len(result.trials) <= trials_max


def test_a_trial_that_starved_the_driver_by_chance_is_repeated() -> None:
    """Batches follow each other at any rate, and the limit is far away."""
    starved = {"verdict": "invalid", "starved": True}
    sut = Sut(1e5, failed_flatters=1.0, fields=lambda _, n: {"busy_share": 0.95} | (starved if n == 2 else {}))
    result = searched(sut, start_per_s=100, quick=True)
    assert sut.requests[1] == sut.requests[2]
    assert result.low == pytest.approx(1e5, rel=0.06)


@pytest.mark.parametrize(
    ("verdicts", "fresh", "last", "message"),
    [
        (["undecided"], [True, False, False], "sustained", "that was undecided and at 90 %"),
        (["invalid"] * 2, [True, True, False], "invalid", "but the trial at 90 % was invalid"),
    ],
)
def test_what_is_not_decided_at_ninety_percent_is_tried_once_more(
    verdicts: list[VerdictValue], fresh: list[bool], last: VerdictValue, message: str
) -> None:
    """And the second trial counts. If both are invalid, nothing speaks against the rate."""
    sut = Sut(1e6, **{"at 90 %": verdicts})
    result = searched(sut)
    assert (sut.purposes[-3:], sut.fresh[-3:]) == (["at 90 %", "at 90 %", "confirm"], fresh)
    assert (result.at_90_percent.number, result.at_90_percent.verdict) == (len(sut.requests) - 1, last)
    assert result.confirmed
    assert message in result.sentence


def test_two_trials_that_held_do_not_replace_the_one_at_ninety_percent() -> None:
    """The rate below held in the bracket and in the confirmation; 90 % of it was not tried yet."""
    sut = Sut(1e6, **{"at 90 %": ["invalid", "invalid"], "confirm": ["not_sustained"]})
    result = searched(sut, start_per_s=0.97e6, tolerance=0.02)
    assert sut.purposes[-5:] == ["at 90 %", "at 90 %", "confirm", "confirm", "at 90 %"]
    assert (result.low, result.confirmed) == (0.97e6, True)
    assert "and at 90 %" in result.sentence


@pytest.mark.parametrize("start_per_s", [3e6, None])
def test_a_first_guess_that_starves_the_driver_is_made_smaller(start_per_s: float | None) -> None:
    """The drain rate flatters, so of all rates the guess starves most often; half of it is tried before giving up. An
    overload trial may be invalid and still give a guess.
    """
    sut = Sut(1e6, changed=lambda rate, number, purpose: "invalid" if rate > 1.3e6 else None)
    result = searched(sut, start_per_s=start_per_s)
    assert result.confirmed
    assert result.low == pytest.approx(1e6, rel=0.11)


def test_a_driver_that_fails_in_the_overload_trial_proves_nothing_of_the_engine() -> None:
    """Made once more where nothing was drained; twice, the search ends with the driver's reason, and shows invalid."""
    outcomes = [TrialOutcome(CEILING, "invalid", 0.0, why=f"generator {n} ended") for n in range(2)]
    assert Search(PLENTY, outcomes[:1]).request == TrialRequest(CEILING, "overload", fresh=True)
    result = Search(PLENTY, outcomes).result()
    assert [trial.verdict for trial in result.trials] == ["invalid", "invalid"]
    assert result.ended_by == SearchEnd.INVALID_TWICE
    assert "generator 1 ended" in result.sentence


def test_a_rate_that_starves_the_driver_far_above_what_held_is_not_repeated() -> None:
    """Each repetition takes a minute, and the driver would fail again. Near what held it is repeated."""
    sut = Sut(5e6, changed=lambda rate, *_: "invalid" if rate > 5e6 else None)
    searched(sut, start_per_s=1e6, tolerance=0.1, quick=True)
    invalid = [rate for rate in sut.rates if rate > 5e6]
    nearest, *far = sorted(set(invalid))
    assert [invalid.count(rate) for rate in far] == [1] * len(far) != []
    assert invalid.count(nearest) == 2
