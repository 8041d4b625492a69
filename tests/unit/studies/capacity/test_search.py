"""studies/capacity/search.py and studies/capacity/strategy.py: finds what a linear scan finds, in few trials."""

import dataclasses
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.core.formatting import format_rate
from streamgauge.results.codes import SearchEnd
from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import TrialOutcome, search
from streamgauge.studies.capacity.search_state import (
    State,
    TrialRequest,
)
from tests.unit.studies.capacity.helpers_search import CEILING, PLENTY, Scripted, Sut, capacities


def scanned(capacity: float, result: SearchResult) -> tuple[float, float]:
    """What a linear scan over a fine grid of rates says: the last rate that holds, the first that does not."""
    assert result.low is not None
    assert result.high is not None
    rates = [result.low * 0.8 * 1.001**step for step in range(700)]
    held = [rate for rate in rates if rate <= capacity]
    return held[-1], next(rate for rate in rates if rate > capacity)


@given(capacity=capacities, flatters=st.floats(0.3, 5), tolerance=st.sampled_from([0.02, 0.05, 0.2]))
def test_the_search_finds_what_a_linear_scan_finds(capacity: float, flatters: float, tolerance: float) -> None:
    """Whatever the capacity, however wrong the first guess: the bracket holds the border and is as narrow as asked."""
    sut = Sut(capacity, flatters)
    result = search(sut, dataclasses.replace(PLENTY, tolerance=tolerance))
    last_held, first_refused = scanned(capacity, result)
    assert result.low is not None
    assert result.high is not None
    assert result.low <= last_held * 1.001
    assert result.high >= first_refused / 1.001
    assert result.relative_width is not None
    assert result.relative_width <= tolerance * 1.0001
    assert (result.confirmed, result.sustained_per_s) == (True, result.low)
    assert result.high_verdict == "not_sustained"


rates = st.floats(0, 7).map(lambda exponent: 10**exponent)
"""1/s to 10 M/s."""


@given(capacity=rates, start=rates, failed=st.floats(0.98, 1.1), huge_batches=st.floats(1, 50))
@example(capacity=2e4, start=2e7, failed=1.0, huge_batches=50)
@example(capacity=2e4, start=10, failed=1.0, huge_batches=1)
def test_a_start_that_is_far_off_costs_few_trials_and_ends_with_both_ends(
    capacity: float, start: float, failed: float, huge_batches: float
) -> None:
    """Seven decades cost fourteen trials at most, also where a rate far too high drains in few, huge batches."""

    class Flattered(Sut):
        def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
            outcome = super().__call__(rate, purpose, fresh)
            if outcome.holds:
                return outcome
            flatters = failed * max(1.0, min(huge_batches, rate / self.capacity_per_s / 10))
            return dataclasses.replace(outcome, drained_per_s=min(rate, flatters * self.capacity_per_s))

    sut = Flattered(capacity)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=start, quick=True))
    assert len(sut.requests) <= 14
    assert result.low is not None
    assert result.high is not None
    assert result.low <= capacity < result.high
    assert result.high_verdict == "not_sustained"


@given(capacity=st.floats(1e3, 4e7), flatters=st.floats(0.95, 1.5), failed=st.floats(0.98, 1.1))
def test_a_usual_search_takes_few_trials(capacity: float, flatters: float, failed: float) -> None:
    """With drain rates that err as those of systems do, nine trials with both confirmations are enough.

    A judged trial that falls behind drains hardly more than the engine sustains.
    """
    sut = Sut(capacity, flatters, failed)
    assert search(sut, PLENTY).confirmed
    assert len(sut.requests) <= 9


def test_the_steps_come_in_order() -> None:
    """Overload, bracket, bisection, 90 % on a fresh engine, confirmation; the engine is fresh only where it must be."""
    sut = Sut(1.5e6)
    result = search(sut, PLENTY)
    assert sut.requests[0] == TrialRequest(CEILING, "overload", fresh=True)
    assert sut.purposes == sorted(sut.purposes, key=["overload", "bracket", "bisect", "at 90 %", "confirm"].index)
    assert [request.fresh for request in sut.requests[1:-2]] == [False] * (len(sut.requests) - 3)
    assert (sut.requests[-2].fresh, sut.requests[-1].fresh) == (True, False)
    assert result.at_90_percent is not None
    assert result.at_90_percent.offered_per_s == pytest.approx(0.9 * result.low)  # type: ignore[operator]
    assert (len(result.trials), result.seconds) == (len(sut.requests), 45.0 * len(sut.requests))


def test_flows_with_unbounded_state_get_a_fresh_engine_each_time() -> None:
    """No trial may begin with the state of another."""
    sut = Sut(1.5e6)
    search(sut, dataclasses.replace(PLENTY, fresh_always=True))
    assert all(request.fresh for request in sut.requests)


def test_without_an_overload_trial_the_first_one_starts_the_engine() -> None:
    """A guess of the user's own takes the place of the overload trial."""
    sut = Sut(1.5e6)
    search(sut, dataclasses.replace(PLENTY, start_per_s=1e6))
    assert "overload" not in sut.purposes
    assert sut.requests[0].fresh


def test_quick_confirms_nothing_and_says_so() -> None:
    """Fewer trials, and the sentence names what is not there."""
    sut = Sut(1.5e6)
    result = search(sut, dataclasses.replace(PLENTY, quick=True))
    assert set(sut.purposes) == {"overload", "bracket", "bisect"}
    assert (result.confirmed, result.at_90_percent) == (False, None)
    assert "not confirmed (quick)" in result.sentence
    assert "the search ended because the two rates lie within 5 %" in result.sentence
    assert result.ended_by is None


def test_the_generators_ceiling_caps_every_rate() -> None:
    """A system faster than the generator: the answer is the ceiling, and the sentence says whose limit it is."""
    sut = Sut(10 * CEILING)
    result = search(sut, PLENTY)
    assert max(request.rate_per_s for request in sut.requests) == CEILING
    assert (result.low, result.high, result.confirmed) == (CEILING, None, True)
    assert "generator can offer no more" in result.sentence


def test_nothing_holds() -> None:
    """Not even the lowest rate: no answer, and no invented one."""
    result = search(Sut(0.0, flatters=1.0), dataclasses.replace(PLENTY, start_per_s=1000))
    assert (result.sustained_per_s, result.confirmed) == (None, False)
    assert "not even 1 /s held" in result.sentence
    assert result.ended_by == SearchEnd.NO_RATE_HELD


def test_an_overload_trial_that_drains_nothing_ends_the_search() -> None:
    """Without a guess there is nothing to look around."""
    result = search(lambda rate, *_: TrialOutcome(rate, "not_sustained", 0.0, why="the SUT died"), PLENTY)
    assert len(result.trials) == 1
    assert "the SUT died" in result.sentence
    assert result.ended_by == SearchEnd.NOTHING_DRAINED


@given(capacity=st.floats(10, 4e7), trial=st.integers(1, 5))
def test_wrong_answers_end_a_search_with_no_rate(capacity: float, trial: int) -> None:
    """Whatever held before, and in whatever step: fewer events would only hide them."""

    def wrong(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = sut(rate, purpose, fresh)
        if len(sut.requests) < trial or rate > capacity:
            return outcome
        return dataclasses.replace(outcome, verdict="not_sustained", wrong_answers="3 missing of 3,000 (0.10%)")

    sut = Sut(capacity)
    result = search(wrong, dataclasses.replace(PLENTY, start_per_s=capacity / 2))
    assert len(sut.requests) >= trial
    assert (result.sustained_per_s, result.low, result.confirmed) == (None, None, False)
    assert result.trials[-1].verdict == "not_sustained"
    assert "no rate was found that holds" in result.sentence
    assert "the answers are wrong at" in result.sentence
    assert result.ended_by == SearchEnd.WRONG_ANSWERS
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

    result = search(Scripted(capacity, changed), PLENTY)
    assert result.confirmed
    assert result.low is not None
    # Stepping down after refuted confirmations ends a width below the noise; 90 % of a rate may be refuted too.
    assert capacity / (1 + noise) / 1.05 / 1.12 <= result.low <= capacity * (1 + noise)


def test_undecided_is_not_held_and_is_reported_as_undecided() -> None:
    """Only proof raises the answer; the upper end's sentence says that it is no proof of failure."""
    sut = Scripted(1e6, lambda rate, number, purpose: "undecided" if 9e5 < rate <= 1e6 else None)
    result = search(sut, PLENTY)
    assert result.low is not None
    assert result.low <= 9e5
    assert "undecided" in {trial.verdict for trial in result.trials}
    assert "undecided, which is not proof" in result.sentence
    assert (result.high_verdict, result.relative_width) == ("undecided", None)


def test_a_refused_rate_bounds_the_answer_although_less_was_undecided() -> None:
    """An undecided rate below it takes its place as the upper end, and is no proof; the one above still is."""
    sut = Scripted(0.9e6, lambda rate, number, purpose: "undecided" if 0.9e6 < rate <= 1.1e6 else None)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=1.3e6))
    failed = [trial.offered_per_s for trial in result.trials if trial.verdict == "not_sustained"]
    assert result.low is not None
    assert result.high is not None
    assert result.refused_per_s == min(rate for rate in failed if rate is not None)
    assert result.low <= 0.9e6 < result.high <= 1.1e6 < result.refused_per_s


def test_a_refused_rate_that_lies_no_higher_than_what_holds_bounds_nothing() -> None:
    """The rate that a search ends with was confirmed after another trial at it had failed."""
    state = State(PLENTY)
    for rate, verdict in ((2e6, "not_sustained"), (1e6, "not_sustained"), (1e6, "sustained")):
        state.note(TrialOutcome(rate, verdict), rate)
    assert (state.low, state.refused_per_s) == (1e6, 2e6)


@pytest.mark.parametrize(
    ("verdict", "refused"), [("not_sustained", 2e6), ("undecided", None), ("invalid", None), (None, 2e6)]
)
def test_results_of_before_refused_rates_were_kept_are_read(
    verdict: VerdictValue | None, refused: float | None
) -> None:
    """There the upper end is the only rate known to have failed."""
    values = {"sustained_per_s": 1e6, "low": 1e6, "high": 2e6, "high_verdict": verdict, "relative_width": 1.0}
    found = SearchResult.model_validate({**values, "confirmed": True})
    assert found.refused_per_s == refused
    assert SearchResult.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        ("sustained", "confirmed on a fresh engine and at 90 %"),
        ("undecided", "but undecided at 90 %"),
        ("invalid", "but the trial at 90 % was invalid"),
    ],
)
def test_what_the_trial_at_ninety_percent_concluded_is_reported(verdict: VerdictValue, message: str) -> None:
    """Confirmed is the rate above it; the lower one only where it held."""
    sut = Scripted(1e6, lambda rate, number, purpose: verdict if purpose == "at 90 %" else None)
    result = search(sut, PLENTY)
    assert result.confirmed
    assert message in result.sentence


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("first", "start_per_s", "restarted", "message"),
    [
        ("sustained", 0.7e6, False, "confirmed on a fresh engine and at 90 %"),
        ("sustained", 0.9e6, True, "confirmed on a fresh engine and at 90 %"),
        ("undecided at 90 %", 0.7e6, False, "after a trial at {rate} that was undecided and at 90 %"),
        ("invalid", 0.9e6, True, "confirmed on a fresh engine and at 90 %"),
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

    class Starts(Scripted):
        start = 0

        def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
            self.start += fresh
            return dataclasses.replace(
                super().__call__(rate, purpose, fresh), engine_start=self.start if recorded else 0
            )

    confirmations: list[int] = []

    def changed(rate: float, number: int, purpose: str) -> VerdictValue | None:
        if purpose == "at 90 %" and first == "undecided at 90 %" and sut.purposes.count(purpose) == 1:
            return "undecided"
        if purpose != "confirm":
            return None
        confirmations.append(number)
        verdict: Any = first
        return verdict if len(confirmations) == 1 and "at" not in verdict.split() else None

    sut = Starts(1e6, changed)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=start_per_s))
    tried = format_rate(sut.requests[confirmations[0] - 1 - ("at 90 %" in first)].rate_per_s)
    assert result.confirmed
    assert message.format(rate=tried) in result.sentence
    assert "at 90 %" in result.sentence
    assert ("confirmed on a fresh engine" in result.sentence) == ("fresh" in message)
    assert (sut.requests[confirmations[-1] - 1].fresh) == restarted


def test_an_overload_trial_has_no_verdict() -> None:
    """An engine that kept up was not judged: neither sustained nor not, in the table."""
    for capacity in (1e6, 2 * CEILING):
        trials = search(Sut(capacity), PLENTY).trials
        assert (trials[0].purpose, trials[0].verdict) == ("overload", None)
        assert None not in [trial.verdict for trial in trials[1:]]


def test_a_failed_confirmation_steps_down_by_the_width_and_is_repeated() -> None:
    """A fresh engine that holds 10 % less: two steps of 5 %, all on one fresh engine, then 90 %."""
    sut = Scripted(
        1e6, lambda rate, number, purpose: "not_sustained" if purpose == "confirm" and rate > 0.9e6 else None
    )
    result = search(sut, PLENTY)
    confirmations = [request for request in sut.requests if request.purpose == "confirm"]
    rates = [request.rate_per_s for request in confirmations]
    assert len(rates) >= 2
    of_90_percent = sut.purposes.index("at 90 %")
    assert sut.requests[of_90_percent].fresh
    assert sut.requests.index(confirmations[0]) == of_90_percent + 1
    assert not any(request.fresh for request in sut.requests[of_90_percent + 1 :])
    assert all(above / below == pytest.approx(1.05) for above, below in pairwise(rates))
    assert (result.confirmed, result.low, result.high) == (True, rates[-1], rates[-2])


@pytest.mark.parametrize("tolerance", [0.05, 0.2, 0.5])
def test_no_confirmation_counts_as_the_trial_at_ninety_percent(tolerance: float) -> None:
    """However wide the bracket may be, what is called 90 % is 90 %."""
    sut = Sut(1e6)
    result = search(sut, dataclasses.replace(PLENTY, start_per_s=0.7e6, tolerance=tolerance))
    assert result.at_90_percent is not None
    assert result.low is not None
    assert result.at_90_percent.purpose != "confirm"
    assert result.at_90_percent.offered_per_s == pytest.approx(0.9 * result.low, rel=0.056)


def test_a_rate_is_not_confirmed_while_ninety_percent_of_it_fail() -> None:
    """What does not hold at 90 % was not sustained at 100 %."""
    failures = iter(["not_sustained"])
    sut = Scripted(1e6, lambda rate, number, purpose: next(failures, None) if purpose == "at 90 %" else None)
    result = search(sut, PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "confirm", "at 90 %"]
    assert result.confirmed
    refuted = sut.requests[-3].rate_per_s
    assert (result.low, result.high) == (pytest.approx(refuted / 1.05), refuted)
    assert result.low == sut.requests[-2].rate_per_s


def test_a_trial_at_ninety_percent_of_a_rate_serves_the_next_lower_one() -> None:
    """A width lower, it is 94.5 % of that."""
    message = iter(["not_sustained"])
    sut = Scripted(1e6, lambda rate, number, purpose: next(message, None) if purpose == "confirm" else None)
    result = search(sut, PLENTY)
    assert sut.purposes[-3:] == ["at 90 %", "confirm", "confirm"]
    assert result.at_90_percent is not None
    assert result.at_90_percent.number == len(sut.requests) - 2
    assert "and at 90 %" in result.sentence


def test_a_confirmed_rate_is_refuted_by_ninety_percent_of_it() -> None:
    """Where a first confirmation failed, the trial at 90 % comes after the next one."""

    def changed(rate: float, number: int, purpose: str) -> VerdictValue | None:
        seen = [request.purpose for request in sut.requests]
        if purpose == "confirm":
            return "not_sustained" if seen.count("confirm") < 3 else None
        return "not_sustained" if purpose == "at 90 %" and seen.count("at 90 %") == 2 else None

    sut = Scripted(1e6, changed)
    result = search(sut, PLENTY)
    assert sut.purposes[-6:] == ["at 90 %", "confirm", "confirm", "confirm", "at 90 %", "confirm"]
    refuted, confirmed = (request.rate_per_s for request in sut.requests[-2:])
    assert (result.confirmed, result.low, result.high) == (True, confirmed, refuted)
    assert confirmed < refuted == pytest.approx(0.9 * sut.requests[-3].rate_per_s)


@pytest.mark.parametrize("verdict", ["undecided", "invalid"])
def test_a_fresh_engine_that_is_near_its_limit_at_ninety_percent_is_confirmed_below(verdict: VerdictValue) -> None:
    """The rate above would be undecided too. `invalid`: the engine left the driver too little CPU."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = sut(rate, purpose, fresh)
        if purpose == "at 90 %" and sut.purposes.count("at 90 %") <= 1 + (verdict == "undecided"):
            return dataclasses.replace(outcome, verdict=verdict, starved=verdict == "invalid", busy_share=0.95)
        return dataclasses.replace(outcome, busy_share=0.8)

    sut = Sut(1e6)
    result = search(trial, PLENTY)
    repeated = ["at 90 %"] * (verdict == "undecided")  # a starved driver would be starved again
    assert sut.purposes[-3 - len(repeated) :] == ["at 90 %", *repeated, "confirm", "at 90 %"]
    assert (result.confirmed, result.high_verdict) == (True, verdict)
    assert result.low is not None
    assert result.low < sut.requests[-3].rate_per_s
    assert "is not proof that it fails" in result.sentence


def test_a_refuted_confirmation_is_none_when_trials_run_out() -> None:
    """At 90 % it fails after the rate was confirmed, and no trial is left."""
    verdicts = {"confirm": ["not_sustained", "not_sustained"], "at 90 %": [None, "not_sustained"]}

    def changed(rate: float, number: int, purpose: str) -> VerdictValue | None:
        message: Any = verdicts.get(purpose)
        return message.pop(0) if message else None

    sut = Scripted(1e6, changed)
    result = search(sut, dataclasses.replace(PLENTY, trials_max=11))
    assert sut.purposes[-5:] == ["at 90 %", "confirm", "confirm", "confirm", "at 90 %"]
    assert not result.confirmed
    assert result.low is None or result.low < sut.requests[-1].rate_per_s


@pytest.mark.parametrize("refuted", ["confirm", "at 90 %"])
def test_a_refuted_rate_is_not_the_answer_when_trials_run_out(refuted: str) -> None:
    """The last trial allowed refutes the rate that held: what is left is lower, and unconfirmed."""
    whole = Sut(1.5e6)
    confirmed = search(whole, PLENTY)
    sut = Scripted(1.5e6, lambda rate, number, purpose: "not_sustained" if purpose == refuted else None)
    result = search(sut, dataclasses.replace(PLENTY, trials_max=whole.purposes.index(refuted) + 1))
    assert sut.purposes[-1] == refuted
    assert not result.confirmed
    assert confirmed.low is not None
    assert result.low is None or result.low < confirmed.low
    assert result.high == sut.requests[-1].rate_per_s <= confirmed.low


@pytest.mark.parametrize("allowed", [1, 2, 3, 5, 8])
def test_no_more_trials_than_allowed(allowed: int) -> None:
    """The bracket as far as it got, and no claim that it was confirmed."""
    sut = Sut(1.234e6, flatters=3.0)
    result = search(sut, dataclasses.replace(PLENTY, trials_max=allowed))
    assert len(sut.requests) == allowed
    assert not result.confirmed
    assert "allowed trials are used" in result.sentence
    assert result.ended_by == SearchEnd.TRIALS_USED_UP


@pytest.mark.parametrize(
    ("setting", "values"),
    [("tolerance", {"tolerance": 0.0}), ("trials_max", {"trials_max": 0}), ("ceiling", {"ceiling_per_s": 0.5})],
)
def test_settings_that_cannot_be_are_refused(setting: str, values: dict[str, float]) -> None:
    """Each names the setting it is about."""
    with pytest.raises(InputError, match=rf"search\.{setting}"):
        dataclasses.replace(PLENTY, **values)
