"""studies/capacity/search.py: a search that is resumed continues with the next trial, or refuses the record."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.studies.capacity.search import TrialOutcome, replay, search
from streamgauge.studies.capacity.strategy import (
    DRAIN_OVERESTIMATE_FACTOR,
)
from tests.unit.studies.capacity.helpers_search import CEILING, PLENTY, Sut, capacities, search_with_outcomes


@given(capacity=capacities, cut=st.integers(0, 12))
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(capacity: float, cut: int) -> None:
    """Told its first outcomes again, it asks for the very next trial and ends with the same answer."""
    whole = Sut(capacity)
    answer, outcomes = search_with_outcomes(whole)
    rest = Sut(capacity)
    assert search(rest, PLENTY, recorded=outcomes[:cut]) == answer
    assert rest.requests == whole.requests[cut:]


def test_the_trial_that_was_killed_is_made_again() -> None:
    """An interrupted last trial says nothing; the ones before it do."""
    recorded = [
        TrialOutcome(CEILING, "not_sustained", DRAIN_OVERESTIMATE_FACTOR * 1e6),
        TrialOutcome(1e6, "interrupted"),
    ]
    resumed = replay(PLENTY, recorded)
    assert resumed.request is not None
    assert (resumed.request.rate_per_s, resumed.request.purpose) == (pytest.approx(1e6), "bracket")


def test_outcomes_of_another_search_are_refused() -> None:
    """Rates that no search of these settings asks for now: only another version can have made them."""
    with pytest.raises(InputError, match=r"search\.resume.*\n.*another version of streamgauge made it: start a new"):
        replay(PLENTY, [TrialOutcome(CEILING, "not_sustained", 1.4e6), TrialOutcome(2e6, "sustained")])


def test_outcomes_of_another_purpose_are_refused() -> None:
    """The rate alone may be the same by chance; outcomes that name no purpose are taken by their rate."""
    settings = dataclasses.replace(PLENTY, start_per_s=1e6)
    for purpose in ("", "bracket"):
        assert replay(settings, [TrialOutcome(1e6, "sustained", purpose=purpose)]).request is not None
    with pytest.raises(InputError, match=r"which tries bracket at 1e\+06/s here; got 'confirm at 1e\+06/s'"):
        replay(settings, [TrialOutcome(1e6, "sustained", purpose="confirm")])


def test_more_outcomes_than_the_search_makes_are_refused() -> None:
    """A record longer than the search belongs to another one."""
    outcome = TrialOutcome(CEILING, "sustained")
    with pytest.raises(InputError, match="more trials"):
        replay(dataclasses.replace(PLENTY, trials_max=1), [outcome, outcome])
