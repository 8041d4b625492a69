"""studies/capacity/search.py: a search that is resumed continues with the next trial, or refuses the record."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.engines.spi import UNMEASURED
from streamgauge.studies.capacity.search import TrialOutcome, replay, search
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
    """An interrupted last trial proves nothing; the ones before it do."""
    overload = TrialOutcome(CEILING, "not_sustained", UNMEASURED.drain_factor * 1e6)
    request: Any = replay(PLENTY, [overload, TrialOutcome(1e6, "interrupted")]).request
    assert (request.rate_per_s, request.purpose) == (pytest.approx(1e6), "bracket")


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
        replay(dataclasses.replace(PLENTY, **settings), outcomes)


@pytest.mark.parametrize("purpose", ["", "bracket"])
def test_outcomes_that_name_no_purpose_are_accepted_by_their_rate(purpose: str) -> None:
    settings = dataclasses.replace(PLENTY, start_per_s=1e6)
    assert replay(settings, [TrialOutcome(1e6, "sustained", purpose=purpose)]).request is not None
