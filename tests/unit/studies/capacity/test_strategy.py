"""Which rate a search offers next."""

import dataclasses
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, TrialOutcome, search
from streamgauge.studies.capacity.search_state import State, TrialRequest
from streamgauge.studies.capacity.strategy import (
    BUSY_FULL,
    BUSY_OVER,
    BUSY_SURE,
    DRAIN_OVERESTIMATE_FACTOR,
    FAILED_OVERESTIMATE_FACTOR,
    FIXED_SHARE,
    KEPT_ROWS_BUSY,
    KEPT_ROWS_OVERESTIMATE_FACTOR,
    PROMISED_MAX,
    STEP_MAX,
    _factor_promised,
    _had_time_over,
    _rate_below,
    _rate_between,
    rate_at,
)
from tests.unit.studies.capacity.helpers_search import PLENTY, Scripted, Sut


@pytest.mark.parametrize(
    ("keeps_rows", "factor"), [(False, DRAIN_OVERESTIMATE_FACTOR), (True, KEPT_ROWS_OVERESTIMATE_FACTOR)]
)
def test_the_first_bracket_rate_is_lower_than_what_was_drained(keeps_rows: bool, factor: float) -> None:
    """Much lower if windows that end later cost most."""
    sut = Sut(3.5e6, flatters=5.0 / 3.5)
    search(sut, dataclasses.replace(PLENTY, keeps_rows=keeps_rows))
    assert sut.requests[1].rate_per_s == pytest.approx(5.0e6 / factor)


def test_an_engine_that_was_idle_for_long_is_asked_for_much_more() -> None:
    """The guess was too low by more than half: batches filled little of the time, and say so."""
    busy = Busy(1e6)
    result = search(busy, dataclasses.replace(PLENTY, start_per_s=0.4e6, quick=True))
    assert busy.rates[:2] == [0.4e6, pytest.approx(load_of(BUSY_OVER) * 1e6)]
    assert result.low is not None
    assert 0.95e6 <= result.low <= 1e6
    assert len(busy.rates) <= 7


class Busy:
    """Sustains `capacity_per_s`; its batches fill all the time at `full_per_s`."""

    def __init__(self, capacity_per_s: float, full_per_s: float | None = None) -> None:
        self.capacity_per_s, self.full_per_s = capacity_per_s, full_per_s or capacity_per_s
        self.rates: list[float] = []

    def __call__(self, rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        self.rates.append(rate)
        verdict: VerdictValue = "sustained" if rate <= self.capacity_per_s else "undecided"
        return TrialOutcome(rate, verdict, purpose=purpose, busy_share=share_of(rate / self.full_per_s))


def share_of(load: float) -> float:
    """The busy share of an engine at a share of the rate at which its batches are full."""
    return FIXED_SHARE + (1 - FIXED_SHARE) * load


def load_of(share: float) -> float:
    """The reverse of `share_of`."""
    return (share - FIXED_SHARE) / (1 - FIXED_SHARE)


@given(load=st.floats(0.02, 2), wanted=st.floats(0.2, 1))
def test_the_rate_of_a_busy_share(load: float, wanted: float) -> None:
    """Batches need a fixed share of the time, and another that grows with the rate."""
    assert rate_at(wanted, load * 1e6, share_of(load)) == pytest.approx(load_of(wanted) * 1e6)


@pytest.mark.parametrize("share", [0.0, 0.1, FIXED_SHARE])
def test_batches_that_need_hardly_any_time_promise_much(share: float) -> None:
    """And no rate below zero."""
    assert rate_at(BUSY_FULL, 1e6, share) == pytest.approx(78e6)


@pytest.mark.parametrize("again", ["sustained", "undecided", "not_sustained"])
def test_an_undecided_trial_that_began_behind_is_repeated_once(again: VerdictValue) -> None:
    """What the second says counts. No other undecided rate is tried again."""
    verdicts: dict[int, VerdictValue] = {2: "undecided", 3: again}
    sut = Scripted(1e6, lambda rate, number, _: verdicts.get(number) or ("undecided" if rate > 1e6 else None))

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        outcome = sut(rate, purpose, fresh)
        return dataclasses.replace(outcome, began_behind=len(sut.requests) in (2, 3))

    result = search(trial, PLENTY)
    rates = [request.rate_per_s for request in sut.requests]
    assert rates[1] == rates[2] != rates[3]
    assert not sut.requests[2].fresh
    assert (rates[3] > rates[1]) is (again == "sustained")
    searched = [request.rate_per_s for request in sut.requests[2:] if request.purpose in ("bracket", "bisect")]
    assert len(set(searched)) == len(searched)
    assert result.confirmed


@pytest.mark.parametrize(
    ("verdict", "busy_share", "repeated"),
    [
        ("undecided", BUSY_SURE - 0.01, True),
        ("undecided", BUSY_SURE + 0.01, False),
        ("undecided", None, False),
        ("not_sustained", 0.5, False),
    ],
)
@pytest.mark.parametrize("purpose", ["bracket", "confirm"])
def test_an_undecided_trial_far_from_the_limit_is_repeated_once(
    verdict: VerdictValue, busy_share: float | None, repeated: bool, purpose: str
) -> None:
    """A join was undecided at 545 k/s with a quarter of the time left over, and held at 519 k/s with half of it.

    Not a confirmation, which would then be one on a warm engine.
    """
    made: list[float] = []

    def trial(rate: float, why: str, fresh: bool) -> TrialOutcome:
        if why == purpose and len(made) < 2:
            made.append(rate)
            return TrialOutcome(rate, verdict, purpose=why, busy_share=busy_share)
        return TrialOutcome(rate, "sustained" if rate <= 1e6 else "not_sustained", purpose=why)

    search(trial, dataclasses.replace(PLENTY, start_per_s=0.99e6))
    assert (made[0] == made[1]) is (repeated and purpose == "bracket")


def test_an_undecided_trial_counts_if_its_repetition_is_invalid() -> None:
    """Twice: the search goes on below it."""
    machine = Search(dataclasses.replace(PLENTY, start_per_s=1e6))
    machine.tell(TrialOutcome(1e6, "undecided", purpose="bracket", busy_share=0.5))
    for _ in range(2):
        assert machine.request is not None
        machine.tell(TrialOutcome(machine.request.rate_per_s, "invalid", purpose="bracket"))
    assert machine.request is not None
    assert machine.request.rate_per_s < 1e6


def test_a_flow_that_keeps_rows_is_offered_what_most_trials_decide() -> None:
    busy = Busy(1e6)
    search(busy, dataclasses.replace(PLENTY, start_per_s=0.6e6, quick=True, keeps_rows=True))
    assert busy.rates[:2] == [0.6e6, pytest.approx(load_of(KEPT_ROWS_BUSY) * 1e6)]


def test_an_engine_that_is_nearly_full_is_offered_what_would_overfill_it() -> None:
    """A trial that fails is shorter than one that holds, and gives the bracket its upper end."""
    busy = Busy(0.93e6, 1e6)
    result = search(busy, dataclasses.replace(PLENTY, start_per_s=0.88e6, quick=True))
    assert busy.rates[:2] == [0.88e6, pytest.approx(load_of(BUSY_OVER) * 1e6)]
    assert len(busy.rates) == 4
    assert result.low is not None
    assert 0.93e6 / 1.05 <= result.low <= 0.93e6


@pytest.mark.parametrize(
    ("verdict", "busy_share", "following"),
    [
        ("undecided", 1.0, rate_at(BUSY_SURE, 1e6, 1.0)),
        ("undecided", 0.84, 1e6 / 1.05),  # no nearer than a step
        ("undecided", None, 1e6 / 1.05),
        ("not_sustained", 1.0, 1e6 / 1.05),
    ],
)
def test_after_an_undecided_guess_the_search_goes_down_to_a_rate_that_decides(
    verdict: VerdictValue, busy_share: float | None, following: float
) -> None:
    """In steps of 5 %, each undecided rate on the way costs a minute."""
    machine = Search(dataclasses.replace(PLENTY, start_per_s=1e6))
    machine.tell(TrialOutcome(1e6, verdict, purpose="bracket", busy_share=busy_share))
    assert machine.request is not None
    assert machine.request.rate_per_s == pytest.approx(following)


def test_an_engine_that_is_full_a_little_above_a_width_is_offered_a_width_more() -> None:
    """If it fails there, as is likely, the bracket is closed. At 7 % above it would not be."""
    busy = Busy(0.95e6, 1e6)
    result = search(busy, dataclasses.replace(PLENTY, start_per_s=0.92e6, quick=True))
    assert busy.rates == [0.92e6, pytest.approx(1.05 * 0.92e6)]
    assert result.low == 0.92e6


@pytest.mark.parametrize(
    ("keeps_rows", "verdict", "busy_share", "step"),
    [
        (False, "undecided", 0.84, 1.05),
        (False, "undecided", 1.0, 1 / rate_at(BUSY_FULL, 1.0, 1.0)),
        (False, "invalid", 1.0, 1 / rate_at(BUSY_FULL, 1.0, 1.0)),
        (True, "undecided", 1.0, 1 / rate_at(KEPT_ROWS_BUSY, 1.0, 1.0)),
        (False, "undecided", 2.0, 1.25),
        (False, "undecided", None, 1.05),
        (False, "not_sustained", 2.0, 1.05),
    ],
)
def test_after_an_undecided_confirmation_the_step_depends_on_how_full_batches_were(
    keeps_rows: bool, verdict: VerdictValue, busy_share: float | None, step: float
) -> None:
    """A fresh engine needed a sixth more time: 933, 888, 846, and 806 k/s were all undecided."""
    machine = Search(dataclasses.replace(PLENTY, start_per_s=1e6, keeps_rows=keeps_rows))
    machine.tell(TrialOutcome(1e6, "sustained", purpose="bracket", busy_share=0.92))
    assert machine.request is not None
    machine.tell(TrialOutcome(machine.request.rate_per_s, "not_sustained", purpose="bracket"))
    machine.tell(TrialOutcome(0.9e6, "sustained", purpose="at 90 %"))
    outcome = TrialOutcome(1e6, verdict, purpose="confirm", busy_share=busy_share)
    machine.tell(dataclasses.replace(outcome, starved=verdict == "invalid"))
    assert (machine.request.purpose, machine.request.fresh) == ("confirm", False)
    assert machine.request.rate_per_s == pytest.approx(1e6 / step)


@pytest.mark.parametrize(("below", "purposes"), [(0.905, ["confirm"]), (0.84, ["at 90 %", "confirm"])])
def test_a_trial_that_held_at_about_ninety_percent_is_not_repeated(below: float, purposes: list[str]) -> None:
    """At 85 to 95 % of the rate; the result shows that trial's figures."""
    capacity = 1e6
    busy = Busy(capacity * 1.001, 1e9)

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        made.append(purpose)
        share = FIXED_SHARE + (BUSY_OVER - FIXED_SHARE) * below if len(made) == 1 else BUSY_OVER
        return dataclasses.replace(busy(rate, purpose, fresh), busy_share=share)

    made: list[str] = []
    result = search(trial, dataclasses.replace(PLENTY, start_per_s=below * capacity))
    assert result.confirmed
    assert result.low == pytest.approx(capacity)
    assert [purpose for purpose in made if purpose in ("confirm", "at 90 %")] == purposes
    assert result.at_90_percent is not None
    assert result.at_90_percent.number == (1 if len(purposes) == 1 else len(made) - 1)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ((1e6, 0.5), (1.6e6, 0.9), 1.42e6),
        ((1e6, 0.77), (1.2e6, 0.9), 1.05e6),  # full at 1.015 M: no nearer than a width, which ends it if refused
        ((1e6, 0.75), (1.2e6, 0.90), 1.05e6),  # full at 1.04 M
        ((1e6, 0.75), (1.2e6, 0.85), 1.05e6),  # full at 1.06 M: further than a width, and nearly that close
        ((1e6, 0.75), (1.2e6, 0.81), 1.1e6),
        ((1e6, 0.6), (1.2e6, 0.9), 1.2e6 / 1.05),  # full at 1.12 M, nearly a width below the upper end
        ((1e6, 0.6), (1.2e6, 0.79), 1.2e6 / 1.05),  # full at 1.189 M
        ((1e6, 0.6), (1.06e6, 0.9), math.sqrt(1.06) * 1e6),  # too narrow to keep a width from both
        ((1e6, 0.4), (1.2e6, 0.5), math.sqrt(1.2) * 1e6),  # its limit is no matter of full batches
        ((1e6, 0.4), (1.15e6, 0.5), 1.15e6 / 1.05),  # the middle would leave 7 % on either side
        ((1e6, 0.4), (1.1e6, 0.5), math.sqrt(1.1) * 1e6),
        ((1e6, 0.65), (1.2e6, 0.74), 1.2e6 / 1.05),  # batches left a little time over even at the upper end
        ((1e6, 0.8), (1.2e6, 0.9), math.sqrt(1.2) * 1e6),
        ((1e6, None), (1.2e6, 0.9), math.sqrt(1.2) * 1e6),
    ],
)
def test_where_a_bracket_is_cut(
    low: tuple[float, float | None], high: tuple[float, float | None], expected: float
) -> None:
    state = State(PLENTY)
    for (rate, busy), verdict in ((low, "sustained"), (high, "undecided")):
        outcome = TrialOutcome(rate, verdict, purpose="bracket", busy_share=busy and busy * BUSY_FULL / 0.78)
        state.trials.append((TrialRequest(rate, "bracket", False), outcome))
        state.note(outcome, rate)
    assert _rate_between(state, low[0], high[0]) == pytest.approx(expected)


def test_steps_from_far_below_grow_and_none_is_longer_than_the_longest() -> None:
    """What an idle engine promises is believed up to four times; what held again and again is left behind faster."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        offered.append(rate)
        verdict: VerdictValue = "sustained" if rate <= 1e7 else "not_sustained"
        return TrialOutcome(rate, verdict, purpose=purpose, busy_share=0.001 if len(offered) == 1 else None)

    offered: list[float] = []
    search(trial, dataclasses.replace(PLENTY, start_per_s=10.0, tolerance=0.5, quick=True))
    steps = [above / below for below, above in pairwise(offered) if above > below]
    assert steps[:3] == [pytest.approx(4.0), pytest.approx(1.5**5), pytest.approx(64)]
    assert max(steps) <= STEP_MAX * 1.001


def test_an_engine_that_had_time_over_and_is_full_now_is_offered_a_width_more() -> None:
    """After three steps that held, a step of 2.65 filled the driver's memory twice."""
    shares = iter((0.73, 0.87, 0.85, 0.981))
    machine = Search(dataclasses.replace(PLENTY, start_per_s=5.7e6))
    for share in shares:
        assert machine.request is not None
        rate = machine.request.rate_per_s
        machine.tell(TrialOutcome(rate, "sustained", purpose="bracket", busy_share=share))
    assert machine.request is not None
    assert machine.request.rate_per_s == pytest.approx(1.05 * rate)


def test_an_engine_whose_batches_are_full_at_any_rate_is_left_behind_too() -> None:
    """Batches that follow each other fill all the time, far below the limit as well."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        offered.append(rate)
        return dataclasses.replace(sut(rate, purpose, fresh), busy_share=1.0)

    offered: list[float] = []
    sut = Sut(2e4, failed_flatters=1.0)
    result = search(trial, dataclasses.replace(PLENTY, start_per_s=10.0, quick=True))
    assert result.low == pytest.approx(2e4, rel=0.06)
    assert len(offered) <= 12


@pytest.mark.parametrize(
    ("drained_per_s", "expected"),
    [
        (None, 1e6 / 1.1),
        (0.0, 1e6 / 1.1),
        (0.99e6, 1e6 / 1.1),  # no less than a step down
        (0.4e6, 0.4e6 / FAILED_OVERESTIMATE_FACTOR),
    ],
)
def test_the_rate_below_is_that_of_a_step_or_of_what_was_drained(drained_per_s: float | None, expected: float) -> None:
    """Whichever is lower: an engine that took far less than its load is not asked for nearly as much again."""
    assert _rate_below(1e6, 1.1, drained_per_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("step", "promised", "expected"),
    [
        (1.05, 83.0, PROMISED_MAX),
        (10.0, 83.0, 10.0),
        (1.15, 0.99, 1.05**2),  # full: no more than two widths
        (1.02, 0.99, 1.02),
        (1.3, 0.99, 1.3),  # except far away, where batches are full at any rate
        (1.3, None, 1.3),
    ],
)
def test_a_step_up_has_its_cap(step: float, promised: float | None, expected: float) -> None:
    assert _factor_promised(step, 1.05, promised, had_time_over=False) == pytest.approx(expected)


@pytest.mark.parametrize(("share", "time_over"), [(0.8, True), (0.95, False), (None, False)])
def test_the_time_left_over_in_the_overload_trial_counts(share: float | None, time_over: bool) -> None:
    """Batches that are full in another trial are so because the engine is near its limit."""
    state = State(PLENTY)
    outcome = TrialOutcome(5e7, "not_sustained", 9e5, purpose="overload", busy_share=share)
    state.trials.append((TrialRequest(5e7, "overload", fresh=True), outcome))
    assert _had_time_over(state) is time_over


def test_an_engine_whose_batches_are_nearly_full_at_any_rate_is_left_behind_too() -> None:
    """Each share promises the end within two widths; after some that held, they predict nothing."""

    def trial(rate: float, purpose: str, fresh: bool) -> TrialOutcome:
        offered.append(rate)
        return dataclasses.replace(sut(rate, purpose, fresh), busy_share=0.9)

    offered: list[float] = []
    sut = Sut(1e5, failed_flatters=1.0)
    result = search(trial, dataclasses.replace(PLENTY, start_per_s=1e4, quick=True))
    assert result.low == pytest.approx(1e5, rel=0.06)
    assert len(offered) <= 20
