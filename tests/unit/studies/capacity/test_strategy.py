"""Which rate a search offers next."""

import dataclasses
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.constants import FAILED_OVERESTIMATE_FACTOR, PROMISED_MAX, STEP_MAX
from streamgauge.studies.capacity.search import TrialOutcome
from streamgauge.studies.capacity.search_state import State, TrialRequest
from streamgauge.studies.capacity.strategy import _factor_promised, _had_time_over, _rate_below, _rate_between
from tests.unit.studies.capacity.helpers_search import PLENTY, Sut, requested_after, searched


@pytest.mark.parametrize(
    ("keeps_rows", "factor"), [(False, NEAR_LIMIT.drain_factor), (True, NEAR_LIMIT.drain_factor_keeping_rows)]
)
def test_the_first_bracket_rate_is_lower_than_what_was_drained(keeps_rows: bool, factor: float) -> None:
    """Much lower if windows that end later cost most."""
    request = requested_after(TrialOutcome(0, "not_sustained", 5e6), keeps_rows=keeps_rows)
    assert request.rate_per_s == pytest.approx(5e6 / factor)


@pytest.mark.parametrize(
    ("capacity", "start", "share", "trials_max", "keeps_rows"),
    [
        (1e6, 0.4e6, NEAR_LIMIT.over, 7, False),  # too low by more than half, and batches show it
        (1e6, 0.6e6, NEAR_LIMIT.keeping_rows, 7, True),  # what most trials decide
        (0.93e6, 0.88e6, NEAR_LIMIT.over, 4, False),  # a trial that fails is shorter, and gives the upper end
    ],
)
def test_an_engine_is_offered_what_would_fill_its_batches(
    capacity: float, start: float, share: float, trials_max: int, keeps_rows: bool
) -> None:
    """At once, however far that is; a little more than full, unless the flow keeps rows."""
    sut = busy(capacity, 1e6)
    result = searched(sut, start_per_s=start, quick=True, keeps_rows=keeps_rows)
    assert sut.rates[:2] == [start, pytest.approx(load_of(share) * 1e6)]
    assert capacity / 1.06 <= result.low <= capacity
    assert len(sut.rates) <= trials_max


def busy(capacity_per_s: float, full_per_s: float) -> Sut:
    """Sustains `capacity_per_s`; its batches fill all the time at `full_per_s`."""
    undecided: VerdictValue = "undecided"
    return Sut(
        capacity_per_s,
        changed=lambda rate, *_: undecided if rate > capacity_per_s else None,
        fields=lambda outcome, _: {"busy_share": share_of(outcome.rate_per_s / full_per_s), "drained_per_s": None},
    )


def share_of(load: float) -> float:
    """The busy share of an engine at a share of the rate at which its batches are full."""
    return NEAR_LIMIT.fixed + (1 - NEAR_LIMIT.fixed) * load


def load_of(share: float) -> float:
    """The reverse of `share_of`."""
    return (share - NEAR_LIMIT.fixed) / (1 - NEAR_LIMIT.fixed)


@given(load=st.floats(0.02, 2), wanted=st.floats(0.2, 1))
def test_the_rate_of_a_busy_share(load: float, wanted: float) -> None:
    """Batches need a fixed share of the time, and another that grows with the rate."""
    assert NEAR_LIMIT.rate_at(wanted, load * 1e6, share_of(load)) == pytest.approx(load_of(wanted) * 1e6)


@pytest.mark.parametrize("share", [0.0, 0.1, NEAR_LIMIT.fixed])
def test_batches_that_need_hardly_any_time_promise_much(share: float) -> None:
    """And no rate below zero."""
    assert NEAR_LIMIT.rate_at(NEAR_LIMIT.full, 1e6, share) == pytest.approx(78e6)


@pytest.mark.parametrize("again", ["sustained", "undecided", "not_sustained"])
def test_an_undecided_trial_that_began_behind_is_repeated_once(again: VerdictValue) -> None:
    """The second one counts. No other undecided rate is tried again."""
    verdicts: dict[int, VerdictValue] = {2: "undecided", 3: again}
    sut = Sut(
        1e6,
        changed=lambda rate, number, _: verdicts.get(number) or ("undecided" if rate > 1e6 else None),
        fields=lambda _, number: {"began_behind": number in (2, 3)},
    )
    assert searched(sut).confirmed
    _, first, second, following, *_ = sut.rates
    assert first == second != following
    assert (sut.fresh[2], following > first) == (False, again == "sustained")
    rates = [one.rate_per_s for one in sut.requests[2:] if one.purpose in ("bracket", "bisect")]
    assert len(set(rates)) == len(rates)


@pytest.mark.parametrize(
    ("verdict", "busy_share", "repeated"),
    [
        ("undecided", NEAR_LIMIT.sure - 0.01, True),
        ("undecided", NEAR_LIMIT.sure + 0.01, False),
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

    def fields(outcome: TrialOutcome, number: int) -> dict[str, Any]:
        first = outcome.purpose == purpose and sut.purposes.count(purpose) <= 2
        return {"drained_per_s": None, "busy_share": busy_share if first else None}

    sut = Sut(1e6, fields=fields, **{purpose: [verdict] * 2})
    searched(sut, start_per_s=0.99e6)
    first, second = [one.rate_per_s for one in sut.requests if one.purpose == purpose][:2]
    assert (first == second) is (repeated and purpose == "bracket")


def test_an_undecided_trial_counts_if_its_repetition_is_invalid() -> None:
    """Twice: the search goes on below it."""
    undecided, invalid = TrialOutcome(0, "undecided", busy_share=0.5), TrialOutcome(0, "invalid")
    assert requested_after(undecided, invalid, invalid, start_per_s=1e6).rate_per_s < 1e6


@pytest.mark.parametrize(
    ("verdict", "busy_share", "following"),
    [
        ("undecided", 1.0, NEAR_LIMIT.rate_at(NEAR_LIMIT.sure, 1e6, 1.0)),
        ("undecided", 0.84, 1e6 / 1.05),  # no nearer than a step
        ("undecided", None, 1e6 / 1.05),
        ("not_sustained", 1.0, 1e6 / 1.05),
    ],
)
def test_after_an_undecided_guess_the_search_goes_down_to_a_rate_that_decides(
    verdict: VerdictValue, busy_share: float | None, following: float
) -> None:
    """In steps of 5 %, each undecided rate on the way costs a minute."""
    request = requested_after(TrialOutcome(0, verdict, busy_share=busy_share), start_per_s=1e6)
    assert request.rate_per_s == pytest.approx(following)


def test_an_engine_that_is_full_a_little_above_a_width_is_offered_a_width_more() -> None:
    """If it fails there, as is likely, the bracket is closed. At 7 % above it would not be."""
    sut = busy(0.95e6, 1e6)
    assert searched(sut, start_per_s=0.92e6, quick=True).low == 0.92e6
    assert sut.rates == [0.92e6, pytest.approx(1.05 * 0.92e6)]


@pytest.mark.parametrize(
    ("keeps_rows", "verdict", "busy_share", "step"),
    [
        (False, "undecided", 0.84, 1.05),
        (False, "undecided", 1.0, 1 / NEAR_LIMIT.rate_at(NEAR_LIMIT.full, 1.0, 1.0)),
        (False, "invalid", 1.0, 1 / NEAR_LIMIT.rate_at(NEAR_LIMIT.full, 1.0, 1.0)),
        (True, "undecided", 1.0, 1 / NEAR_LIMIT.rate_at(NEAR_LIMIT.keeping_rows, 1.0, 1.0)),
        (False, "undecided", 2.0, 1.25),
        (False, "undecided", None, 1.05),
        (False, "not_sustained", 2.0, 1.05),
    ],
)
def test_after_an_undecided_confirmation_the_step_depends_on_how_full_batches_were(
    keeps_rows: bool, verdict: VerdictValue, busy_share: float | None, step: float
) -> None:
    """A fresh engine needed a sixth more time: 933, 888, 846, and 806 k/s were all undecided."""
    held, failed, at_90 = (TrialOutcome(0, one) for one in ("sustained", "not_sustained", "sustained"))
    held = dataclasses.replace(held, busy_share=0.92)
    confirmation = TrialOutcome(0, verdict, busy_share=busy_share, starved=verdict == "invalid")
    request = requested_after(held, failed, at_90, confirmation, start_per_s=1e6, keeps_rows=keeps_rows)
    assert (request.purpose, request.fresh, request.rate_per_s) == ("confirm", False, pytest.approx(1e6 / step))


@pytest.mark.parametrize(("below", "purposes"), [(0.905, ["confirm"]), (0.84, ["at 90 %", "confirm"])])
def test_a_trial_that_held_at_about_ninety_percent_is_not_repeated(below: float, purposes: list[str]) -> None:
    """At 85 to 95 % of the rate; the result shows that trial's figures."""
    first = NEAR_LIMIT.fixed + (NEAR_LIMIT.over - NEAR_LIMIT.fixed) * below
    sut = Sut(
        1.001e6,
        changed=lambda rate, *_: "undecided" if rate > 1.001e6 else None,
        fields=lambda _, number: {"busy_share": first if number == 1 else NEAR_LIMIT.over, "drained_per_s": None},
    )
    result = searched(sut, start_per_s=below * 1e6)
    assert (result.confirmed, result.low) == (True, pytest.approx(1e6))
    assert [purpose for purpose in sut.purposes if purpose in ("confirm", "at 90 %")] == purposes
    assert result.at_90_percent.number == (1 if len(purposes) == 1 else len(sut.purposes) - 1)


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
        outcome = TrialOutcome(rate, verdict, purpose="bracket", busy_share=busy and busy * NEAR_LIMIT.full / 0.78)
        state.trials.append((TrialRequest(rate, "bracket", False), outcome))
        state.note(outcome, rate)
    assert _rate_between(state, low[0], high[0]) == pytest.approx(expected)


def test_steps_from_far_below_grow_and_none_is_longer_than_the_longest() -> None:
    """What an idle engine promises is believed up to four times; what held again and again is left behind faster."""
    sut = Sut(1e7, fields=lambda _, number: {"drained_per_s": None, "busy_share": 0.001 if number == 1 else None})
    searched(sut, start_per_s=10.0, tolerance=0.5, quick=True)
    steps = [above / below for below, above in pairwise(sut.rates) if above > below]
    assert steps[:3] == [pytest.approx(4.0), pytest.approx(1.5**5), pytest.approx(STEP_MAX)]
    assert max(steps) <= STEP_MAX * 1.001


def test_an_engine_that_had_time_over_and_is_full_now_is_offered_a_width_more() -> None:
    """After three steps that held, a step of 2.65 filled the driver's memory twice."""
    outcomes = [TrialOutcome(0, "sustained", busy_share=share) for share in (0.73, 0.87, 0.85, 0.981)]
    last, following = (requested_after(*outcomes[:count], start_per_s=5.7e6) for count in (3, 4))
    assert following.rate_per_s == pytest.approx(1.05 * last.rate_per_s)


@pytest.mark.parametrize(("share", "capacity", "start", "trials_max"), [(1.0, 2e4, 10.0, 12), (0.9, 1e5, 1e4, 20)])
def test_an_engine_whose_batches_are_full_at_any_rate_is_left_behind_too(
    share: float, capacity: float, start: float, trials_max: int
) -> None:
    """Batches that follow each other fill all the time, or nearly all, far below the limit as well. After some shares
    that promised the end within two widths, and held, they predict nothing.
    """
    sut = Sut(capacity, failed_flatters=1.0, fields=lambda *_: {"busy_share": share})
    assert searched(sut, start_per_s=start, quick=True).low == pytest.approx(capacity, rel=0.06)
    assert len(sut.requests) <= trials_max


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
    """Whichever is lower: an engine that took far less than its load is not offered nearly as much again."""
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
