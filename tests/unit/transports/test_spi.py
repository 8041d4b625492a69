"""What every transport shares.

How long an end of the transport was at work, by a clock that nothing else moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.transports.spi import BusyTracker, new_token


def test_tokens_are_long_and_new_each_time() -> None:
    """At least 128 bits, and no two alike."""
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 22


@dataclass
class Hand:
    """A clock that is set by hand."""

    at_us: int = 0

    def __call__(self) -> int:
        return self.at_us


def test_only_the_time_inside_counts() -> None:
    """Each time from its begin to its end, and told once."""
    now = Hand(1000)
    busy = BusyTracker(now)
    for since, until in ((1000, 1300), (2000, 2001)):
        now.at_us = since
        with busy:
            now.at_us = until
    now.at_us = 5000
    assert busy.news() == [(1000, 1300), (2000, 2001)]
    assert busy.news() == []


def test_a_time_that_goes_on_is_told_as_far_as_it_is_known() -> None:
    """A delivery that never ends must be seen before it does."""
    now = Hand()
    busy = BusyTracker(now)
    with busy:
        now.at_us = 700
        assert busy.news() == [(0, 700)]
        now.at_us = 900
    assert busy.news() == [(700, 900)]


def test_an_error_inside_ends_it() -> None:
    """A range that is refused keeps nobody waiting any more."""
    now = Hand()
    busy = BusyTracker(now)
    try:
        with busy:
            now.at_us = 5
            raise ValueError
    except ValueError:
        now.at_us = 9
    assert busy.news() == [(0, 5)]


@given(st.lists(st.tuples(st.sampled_from(("enter", "leave", "look")), st.integers(0, 50)), max_size=40))
def test_threads_that_are_inside_together_count_once(steps: list[tuple[str, int]]) -> None:
    """Whatever the order of entering and leaving, the sum is the time for which at least one was inside."""
    now, inside, expected = Hand(), 0, 0
    busy = BusyTracker(now)
    told: list[tuple[int, int]] = []
    for what, after_us in steps:
        now.at_us += after_us
        expected += after_us if inside else 0
        if what == "enter":
            busy.__enter__()
            inside += 1
        elif what == "leave" and inside:
            busy.__exit__()
            inside -= 1
        elif what == "look":
            told += busy.news()
    told += busy.news()
    assert sum(until - since for since, until in told) == expected <= now.at_us
    assert all(before[1] <= after[0] for before, after in pairwise(told))
