"""What every transport shares.

How long an end of the transport was at work, by a clock that nothing else moves.
"""

from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.transports.spi import BusyTracker


def clock_of(now: SimpleNamespace) -> BusyTracker:
    """By a clock that is set by hand."""
    return BusyTracker(lambda: now.us)


def test_only_the_time_inside_counts() -> None:
    """Each time from its begin to its end, and reported once."""
    now = SimpleNamespace(us=1000)
    busy = clock_of(now)
    for since, until in ((1000, 1300), (2000, 2001)):
        now.us = since
        with busy:
            now.us = until
    now.us = 5000
    assert busy.news() == [(1000, 1300), (2000, 2001)]
    assert busy.news() == []


def test_a_time_that_goes_on_is_reported_up_to_now() -> None:
    """A delivery that never ends must be seen before it does; an error inside ends one."""
    now = SimpleNamespace(us=0)
    busy = clock_of(now)
    with suppress(ValueError), busy:
        now.us = 700
        assert busy.news() == [(0, 700)]
        now.us = 900
        raise ValueError
    now.us = 1000
    assert busy.news() == [(700, 900)]


@given(st.lists(st.tuples(st.sampled_from(("enter", "leave", "look")), st.integers(0, 50)), max_size=40))
def test_threads_that_are_inside_together_count_once(steps: list[tuple[str, int]]) -> None:
    """Whatever the order of entering and leaving, the sum is the time for which at least one was inside."""
    now, inside, expected = SimpleNamespace(us=0), 0, 0
    busy = clock_of(now)
    news: list[tuple[int, int]] = []
    for what, after_us in steps:
        now.us += after_us
        expected += after_us if inside else 0
        if what == "enter":
            busy.__enter__()
            inside += 1
        elif what == "leave" and inside:
            busy.__exit__()
            inside -= 1
        elif what == "look":
            news += busy.news()
    news += busy.news()
    assert sum(until - since for since, until in news) == expected <= now.us
    assert all(before[1] <= after[0] for before, after in pairwise(news))
