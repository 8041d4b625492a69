"""Eq. 3.4 worked by hand, its open points, and the three ways of multiplying."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.stats.parallelism_advice import advised, multiplied, spread, work


def test_the_formula_worked_by_hand() -> None:
    """A splitter of 2 us a line and a counter of 0.5 us a word, ten words a line: 2 and 5 of 7, tenths rounded up."""
    works = {"splitter": work([(2.0, 1.0)]), "counter": work([(0.5, 10.0)])}
    assert works == {"splitter": 2.0, "counter": 5.0}
    assert advised(works) == {"splitter": 3, "counter": 8}  # 20 / 7 and 50 / 7
    assert (work([(2.0, 0.25), (4.0, 0.75)]), work([])) == (0.5 + 3.0, 0.0)  # a join works for both its inputs


def test_what_is_not_known_stays_so() -> None:
    """A source has nothing before it and was not timed: the others share the target, and it gets no number."""
    assert advised({"lines": None, "splitter": 3.0, "counter": 1.0}) == {"lines": None, "splitter": 8, "counter": 3}
    assert advised({"lines": None}) == {"lines": None}


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_work_that_cannot_be_is_refused(bad: float) -> None:
    """A difference of times may be negative; that it is clipped before is the caller's business."""
    with pytest.raises(ValueError, match="finite"):
        advised({"a": bad, "b": 1.0})


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=12).filter(any), st.integers(1, 100))
def test_sums_lie_where_they_can(works: list[float], target: int) -> None:
    """Whatever the work: that is what shows that a published row does not come from the formula. Each share is rounded
    up by less than 1, or from 0 to 1, and one of them at least is above 0.
    """
    given_out = advised({str(n): each for n, each in enumerate(works)}, target)
    assert max(target, len(works)) <= sum(each or 0 for each in given_out.values()) <= target + len(works) - 1


def test_three_ways_of_multiplying() -> None:
    """By the formula, one each, and the formula with the source alone multiplied; what is not known counts as one."""
    ways = multiplied({"lines": None, "splitter": 5, "counts": None}, {"lines"}, [1, 3])
    assert ways["formula"][3] == {"lines": 3, "splitter": 15, "counts": 3}
    assert ways["one_each"][3] == {"lines": 3, "splitter": 3, "counts": 3}
    assert ways["source_only"][3] == {"lines": 3, "splitter": 5, "counts": 1}
    assert ways["formula"][1] == ways["source_only"][1] == {"lines": 1, "splitter": 5, "counts": 1}


def test_a_share_just_above_a_whole_number_is_still_that() -> None:
    """The work of two inputs, 0.1 and 0.2, is a hair above three tenths in binary fractions."""
    works = {"a": 0.1 + 0.2, "b": 0.7}
    assert 10 * works["a"] / math.fsum(works.values()) > 3
    assert advised(works) == {"a": 3, "b": 7}


def test_spread_leaves_a_twentieth_at_each_end() -> None:
    """Of 100 samples the five least and the five most: one that is not known has none."""
    samples = [{"a": 1.0, "b": float(b), "c": None} for b in range(1, 101)]
    low, high = advised(samples[4])["b"], advised(samples[94])["b"]
    assert spread(samples) == {"a": (1, 2), "b": (low, high), "c": None}
    assert (low, high) == (9, 10)
    finer = [advised(samples[place], 1000)["b"] for place in (4, 94)]
    assert spread(samples, 1000)["b"] == tuple(finer)
    assert spread([]) == {}
