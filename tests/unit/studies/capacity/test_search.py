"""studies/capacity/search.py and studies/capacity/strategy.py: finds what a linear scan finds, in few trials."""

import dataclasses
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.core.formatting import format_rate
from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.codes import SearchEnd
from streamgauge.results.labels import share_of
from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, TrialOutcome, search
from streamgauge.studies.capacity.search_state import State, TrialRequest
from tests.unit.studies.capacity.helpers_search import CEILING, PLENTY, Sut, capacities, search_with_outcomes, searched

AT_90 = "at 90 %"


@given(capacity=capacities, flatters=st.floats(0.3, 5), tolerance=st.sampled_from([0.02, 0.05, 0.2]))
def test_the_search_finds_what_a_linear_scan_finds(capacity: float, flatters: float, tolerance: float) -> None:
    """Whatever the capacity, however wrong the first guess: the bracket holds the border and is as narrow as set."""
    result = searched(Sut(capacity, flatters), tolerance=tolerance)
    assert result.low <= capacity < result.high
    assert result.relative_width <= tolerance * 1.0001
    assert (result.confirmed, result.sustained_per_s, result.high_verdict) == (True, result.low, "not_sustained")


rates = st.floats(0, 7).map(lambda exponent: 10**exponent)
"""1/s to 10 M/s."""


@given(capacity=rates, start=rates, failed=st.floats(0.98, 1.1), huge_batches=st.floats(1, 50))
@example(capacity=2e4, start=2e7, failed=1.0, huge_batches=50)
@example(capacity=2e4, start=10, failed=1.0, huge_batches=1)
def test_a_start_that_is_far_off_costs_few_trials_and_ends_with_both_ends(
    capacity: float, start: float, failed: float, huge_batches: float
) -> None:
    """Seven decades cost fourteen trials at most, also where a rate far too high drains in few, huge batches.

    A guess of the user's own replaces the overload trial, so its trial starts the engine.
    """

    def fields(outcome: TrialOutcome, number: int) -> dict[str, Any]:
        rate, flatters = outcome.rate_per_s, failed * max(1.0, min(huge_batches, outcome.rate_per_s / capacity / 10))
        return {} if outcome.holds else {"drained_per_s": min(rate, flatters * capacity)}

    sut = Sut(capacity, fields=fields)
    result = searched(sut, start_per_s=start, quick=True)
    assert len(sut.requests) <= 14
    assert result.low <= capacity < result.high
    assert result.high_verdict == "not_sustained"
    assert (sut.requests[0].purpose, sut.requests[0].fresh) == ("bracket", True)


@given(capacity=st.floats(1e3, 4e7), flatters=st.floats(0.95, 1.5), failed=st.floats(0.98, 1.1))
def test_a_usual_search_takes_few_trials(capacity: float, flatters: float, failed: float) -> None:
    """With drain rates that err as those of systems do, nine trials with both confirmations are enough.

    A judged trial that falls behind drains hardly more than the engine sustains.
    """
    sut = Sut(capacity, flatters, failed)
    assert searched(sut).confirmed
    assert len(sut.requests) <= 9


def test_the_steps_come_in_order() -> None:
    """Overload, bracket, bisection, 90 % on a fresh engine, confirmation; the engine is fresh only where it must be."""
    sut = Sut(1.5e6)
    result = searched(sut)
    assert sut.requests[0] == TrialRequest(CEILING, "overload", fresh=True)
    assert sut.purposes == sorted(sut.purposes, key=["overload", "bracket", "bisect", AT_90, "confirm"].index)
    assert sut.fresh == [True, *[False] * (len(sut.requests) - 3), True, False]
    assert result.at_90_percent.offered_per_s == pytest.approx(0.9 * result.low)
    assert (len(result.trials), result.seconds) == (len(sut.requests), 45.0 * len(sut.requests))


def test_quick_confirms_nothing_and_says_so() -> None:
    """Fewer trials, and the sentence names what is not there."""
    sut = Sut(1.5e6)
    result = searched(sut, quick=True)
    assert set(sut.purposes) == {"overload", "bracket", "bisect"}
    assert (result.confirmed, result.at_90_percent, result.ended_by) == (False, None, None)
    assert "not confirmed (quick)" in result.sentence
    assert "the search ended because the two rates lie within 5 %" in result.sentence


@pytest.mark.parametrize("capacity", [1e6, 10 * CEILING])
def test_the_generators_ceiling_caps_every_rate_and_an_overload_trial_has_no_verdict(capacity: float) -> None:
    """A system faster than the generator: the answer is the ceiling, and the sentence says whose limit it is.

    An overload trial is not judged, although the engine kept up.
    """
    sut = Sut(capacity)
    result = searched(sut)
    assert max(sut.rates) == CEILING
    assert [trial.verdict is None for trial in result.trials] == [True] + [False] * (len(sut.requests) - 1)
    assert (result.low == CEILING, result.high is None, result.confirmed) == (*[capacity > CEILING] * 2, True)
    assert ("generator can offer no more" in result.sentence) is (capacity > CEILING)


def test_nothing_holds() -> None:
    """Not even the lowest rate: no answer, and no invented one."""
    result = searched(Sut(0.0, flatters=1.0), start_per_s=1000)
    assert (result.sustained_per_s, result.confirmed, result.ended_by) == (None, False, SearchEnd.NO_RATE_HELD)


def test_an_overload_trial_that_drains_nothing_ends_the_search() -> None:
    """Without a guess there is nothing to look around."""
    result = searched(lambda rate, *_: TrialOutcome(rate, "not_sustained", 0.0, why="the SUT died"))
    assert (len(result.trials), result.ended_by) == (1, SearchEnd.NOTHING_DRAINED)
    assert "the SUT died" in result.sentence


@given(capacity=st.floats(10, 4e7), trial=st.integers(1, 5))
def test_wrong_answers_end_a_search_with_no_rate(capacity: float, trial: int) -> None:
    """Whatever held before, and in whatever step: fewer events would only hide them."""

    def fields(outcome: TrialOutcome, number: int) -> dict[str, Any]:
        wrong = number >= trial and outcome.holds
        return {"verdict": "not_sustained", "wrong_answers": "3 missing of 3,000 (0.10%)"} if wrong else {}

    sut = Sut(capacity, fields=fields)
    result = searched(sut, start_per_s=capacity / 2)
    assert len(sut.requests) >= trial
    assert (result.sustained_per_s, result.low, result.confirmed) == (None, None, False)
    assert (result.trials[-1].verdict, result.ended_by) == ("not_sustained", SearchEnd.WRONG_ANSWERS)
    assert "3 missing of 3,000 (0.10%)" in result.sentence


@given(
    capacity=st.floats(1e3, 1e7), noise=st.floats(0, 0.1), picks=st.lists(st.integers(0, 2), min_size=40, max_size=40)
)
def test_noise_near_the_border_stays_near_the_border(capacity: float, noise: float, picks: list[int]) -> None:
    """Within `noise` of the capacity verdicts are arbitrary, undecided too: the answer is off by no more than that."""
    arbitrary: tuple[VerdictValue, ...] = ("sustained", "not_sustained", "undecided")

    def changed(rate: float, number: int, purpose: str) -> VerdictValue | None:
        near = capacity / (1 + noise) <= rate <= capacity * (1 + noise)
        return arbitrary[picks[number % 40]] if near and purpose != "overload" else None

    result = searched(Sut(capacity, changed=changed))
    assert result.confirmed
    # Stepping down after refuted confirmations ends a width below the noise; 90 % of a rate may be refuted too.
    assert capacity / (1 + noise) / 1.05 / 1.12 <= result.low <= capacity * (1 + noise)


def test_undecided_is_not_held_and_is_reported_as_undecided() -> None:
    """Only proof raises the answer. An undecided rate is the upper end, but a refused one above still is the proof."""
    sut = Sut(0.9e6, changed=lambda rate, number, purpose: "undecided" if 0.9e6 < rate <= 1.1e6 else None)
    result = searched(sut, start_per_s=1.3e6)
    refused = min(trial.offered_per_s for trial in result.trials if trial.verdict == "not_sustained")
    assert (result.high_verdict, result.relative_width, result.refused_per_s) == ("undecided", None, refused)
    assert result.low <= 0.9e6 < result.high <= 1.1e6 < refused
    assert "undecided, which is not proof" in result.sentence


def test_a_refused_rate_that_lies_no_higher_than_what_holds_bounds_nothing() -> None:
    """The rate that a search ends with was confirmed after another trial at it had failed."""
    state = State(PLENTY)
    for rate, verdict in ((2e6, "not_sustained"), (1e6, "not_sustained"), (1e6, "sustained")):
        state.note(TrialOutcome(rate, verdict), rate)
    assert (state.low, state.refused_per_s) == (1e6, 2e6)


@pytest.mark.parametrize(
    ("verdict", "refused"), [("not_sustained", 2e6), ("undecided", None), ("invalid", None), (None, 2e6)]
)
def test_results_of_before_refused_rates_were_stored_are_read(
    verdict: VerdictValue | None, refused: float | None
) -> None:
    """There the upper end is the only rate known to have failed."""
    values = {"sustained_per_s": 1e6, "low": 1e6, "high": 2e6, "high_verdict": verdict, "relative_width": 1.0}
    result = SearchResult.model_validate({**values, "confirmed": True})
    assert result.refused_per_s == refused
    assert SearchResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("first", "start_per_s", "restarted", "message"),
    [
        ("sustained", 0.7e6, False, "confirmed on a fresh engine and at {share}"),
        ("sustained", 0.9e6, True, "confirmed on a fresh engine and at {share}"),
        ("undecided at 90 %", 0.7e6, False, "after a trial at {rate} that was undecided and at {share}"),
        ("invalid", 0.9e6, True, "confirmed on a fresh engine and at {share}"),
        ("not_sustained", 0.7e6, False, "started for the confirmation, after a trial at {rate} that did not hold"),
        ("undecided", 0.7e6, False, "started for the confirmation, after a trial at {rate} that was undecided"),
    ],
)
def test_the_engine_of_a_confirmation_is_called_fresh_only_if_it_is(
    first: str, start_per_s: float, restarted: bool, message: str, recorded: bool
) -> None:
    """A trial at 90 % that held before it changes nothing. A second confirmation runs on the engine of the first,
    unless that was invalid; old outcomes have no starts.
    """
    undecided = first == "undecided at 90 %"
    verdicts: Any = {AT_90: ["undecided"]} if undecided else {"confirm": [first]}
    sut = Sut(1e6, fields=lambda *_: {"engine_start": sum(sut.fresh) if recorded else 0}, **verdicts)
    result = searched(sut, start_per_s=start_per_s)
    tried = format_rate(sut.rates[sut.purposes.index("confirm") - undecided])
    assert result.confirmed
    share = share_of(result.at_90_percent.offered_per_s, result.low)
    assert message.format(rate=tried, share=share) in result.sentence
    assert f"at {share}" in result.sentence
    assert ("confirmed on a fresh engine" in result.sentence) == ("fresh" in message)
    assert [request.fresh for request in sut.requests if request.purpose == "confirm"][-1] == restarted


def test_a_failed_confirmation_steps_down_by_the_width_and_is_repeated() -> None:
    """A fresh engine that holds 10 % less: two steps of 5 %, all on one fresh engine, then 90 %."""
    sut = Sut(1e6, changed=lambda rate, _, purpose: "not_sustained" if purpose == "confirm" and rate > 0.9e6 else None)
    result = searched(sut)
    start, rates = sut.purposes.index(AT_90), [one.rate_per_s for one in sut.requests if one.purpose == "confirm"]
    assert sut.purposes[start : start + 2] == [AT_90, "confirm"]
    assert sut.fresh[start:] == [True] + [False] * (len(sut.requests) - start - 1)
    assert len(rates) >= 2
    assert all(above / below == pytest.approx(1.05) for above, below in pairwise(rates))
    assert (result.confirmed, result.low, result.high) == (True, rates[-1], rates[-2])


@pytest.mark.parametrize("tolerance", [0.05, 0.2, 0.5])
def test_no_confirmation_counts_as_the_trial_at_ninety_percent(tolerance: float) -> None:
    """However wide the bracket may be, what is called 90 % is 90 %."""
    result = searched(Sut(1e6), start_per_s=0.7e6, tolerance=tolerance)
    assert result.at_90_percent.purpose != "confirm"
    assert result.at_90_percent.offered_per_s == pytest.approx(0.9 * result.low, rel=0.056)


def test_a_rate_is_not_confirmed_while_ninety_percent_of_it_fail() -> None:
    """What does not hold at 90 % was not sustained at 100 %."""
    sut = Sut(1e6, **{AT_90: ["not_sustained"]})
    result = searched(sut)
    refuted, confirmed, _ = sut.rates[-3:]
    assert sut.purposes[-3:] == [AT_90, "confirm", AT_90]
    assert (result.confirmed, result.low, result.high) == (True, confirmed, refuted)
    assert confirmed == pytest.approx(refuted / 1.05)


def test_a_trial_at_ninety_percent_of_a_rate_serves_the_next_lower_one() -> None:
    """A width lower, it is 94.5 % of that, and the sentence says so."""
    sut = Sut(1e6, confirm=["not_sustained"])
    result = searched(sut)
    assert sut.purposes[-3:] == [AT_90, "confirm", "confirm"]
    assert result.at_90_percent.number == len(sut.requests) - 2
    assert "and at 94 %" in result.sentence


@pytest.mark.parametrize("trials_max", [PLENTY.trials_max, 11])
def test_a_confirmed_rate_is_refuted_by_ninety_percent_of_it(trials_max: int) -> None:
    """Where a first confirmation failed, the trial at 90 % comes after the next one; no trial may be left then."""
    sut = Sut(1e6, **{"confirm": ["not_sustained"] * 2, AT_90: [None, "not_sustained"]})
    result = searched(sut, trials_max=trials_max)
    start, more = sut.purposes.index(AT_90), ["confirm"] if trials_max > 11 else []
    assert sut.purposes[start:] == [AT_90, "confirm", "confirm", "confirm", AT_90, *more]
    refuted = sut.rates[start + 4]
    assert refuted == pytest.approx(0.9 * sut.rates[start + 3])
    assert result.confirmed is bool(more)
    assert result.low is None or result.low < refuted
    assert not more or (result.low, result.high) == (sut.rates[-1], refuted)


@pytest.mark.parametrize("verdict", ["undecided", "invalid"])
def test_a_fresh_engine_that_is_near_its_limit_at_ninety_percent_is_confirmed_below(verdict: VerdictValue) -> None:
    """The rate above would be undecided too. `invalid`: the engine left the driver too little CPU."""
    # A starved driver would be starved again, so only the undecided trial is repeated.
    repeated = [AT_90] * (verdict == "undecided")

    def fields(outcome: TrialOutcome, number: int) -> dict[str, Any]:
        failed = outcome.verdict == verdict
        return {"starved": failed and verdict == "invalid", "busy_share": 0.95 if failed else 0.8}

    sut = Sut(1e6, fields=fields, **{AT_90: [verdict] * (1 + len(repeated))})
    result = searched(sut)
    assert sut.purposes[-3 - len(repeated) :] == [AT_90, *repeated, "confirm", AT_90]
    assert (result.confirmed, result.high_verdict) == (True, verdict)
    assert result.low < sut.rates[-3]
    assert "is not proof that it fails" in result.sentence


@pytest.mark.parametrize("allowed", [1, 2, 3, 5, 8])
def test_no_more_trials_than_allowed(allowed: int) -> None:
    """The bracket as far as it got, and no claim that it was confirmed."""
    sut = Sut(1.234e6, flatters=3.0)
    result = searched(sut, trials_max=allowed)
    assert (len(sut.requests), result.confirmed, result.ended_by) == (allowed, False, SearchEnd.TRIALS_USED_UP)


@pytest.mark.parametrize(
    ("settings", "outcomes", "message"),
    [
        ({}, [TrialOutcome(CEILING, "not_sustained", 1.4e6), TrialOutcome(2e6, "sustained")], "another version"),
        (
            {"start_per_s": 1e6},
            [TrialOutcome(1e6, "sustained", purpose="confirm")],
            r"tries bracket at 1e\+06/s here; got 'confirm at 1e\+06/s'",
        ),
        ({"trials_max": 1}, [TrialOutcome(CEILING, "sustained")] * 2, "more trials"),
    ],
)
def test_outcomes_of_another_search_are_refused(settings: Any, outcomes: list[TrialOutcome], message: str) -> None:
    """By rate, purpose, or number: only another version can have made them."""
    with pytest.raises(InputError, match=rf"search\.resume(.|\n)*{message}"):
        Search(dataclasses.replace(PLENTY, **settings), outcomes)


# Trials that are invalid, and drivers that fail, say nothing of the engine.


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
    assert result.ended_by == SearchEnd.DRIVER_FAILED
    assert "generator 1 ended" in result.sentence


def test_a_rate_that_starves_the_driver_far_above_what_held_is_not_repeated() -> None:
    """Each repetition takes a minute, and the driver would fail again. Near what held it is repeated."""
    sut = Sut(5e6, changed=lambda rate, *_: "invalid" if rate > 5e6 else None)
    searched(sut, start_per_s=1e6, tolerance=0.1, quick=True)
    invalid = [rate for rate in sut.rates if rate > 5e6]
    nearest, *far = sorted(set(invalid))
    assert [invalid.count(rate) for rate in far] == [1] * len(far) != []
    assert invalid.count(nearest) == 2
