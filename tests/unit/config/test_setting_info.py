"""Values of settings: lists and ranges of shares."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config.experiment import build
from streamgauge.config.setting_info import parse_shares
from tests.unit.helpers_refusals import problem_of


@given(st.lists(st.integers(1, 300), min_size=1, max_size=9, unique=True).map(sorted))
def test_a_list_of_loads_is_read_as_it_is_written(percents: list[int]) -> None:
    """As shares, in one text or as a list, of texts or numbers."""
    shares = tuple(percent / 100 for percent in percents)
    texts = [f"{percent}%" for percent in percents]
    assert parse_shares(",".join(texts)) == parse_shares(texts) == parse_shares(list(shares)) == shares


@given(st.integers(1, 299), st.integers(1, 300))
def test_a_range_of_loads_has_steps_of_ten_percent_and_both_ends(first: int, last: int) -> None:
    """Ranges and values mix; a range that does not ascend is refused."""
    if first >= last:
        assert problem_of(parse_shares, f"{first}%..{last}%").got == f"{first}%..{last}%"
        return
    shares = parse_shares(f"{first}%..{last}%")
    assert (shares[0], shares[-1]) == (pytest.approx(first / 100), last / 100)
    steps = [round(100 * (b - a), 6) for a, b in pairwise(shares)]
    assert (set(steps[:-1]) <= {10.0}, 0 < steps[-1] <= 10) == (True, True)
    assert last == 300 or parse_shares([f"{first}%..{last}%", 3.0]) == (*shares, 3.0)


@pytest.mark.parametrize(
    "loads", ["", "x", "10%..", "..50%", "10%...50%", "1..3..2", "301%", "10%..1000000%", "nan", True, []]
)
def test_loads_that_are_none_are_refused(loads: Any) -> None:
    """Not an ascending list of shares up to 300 %; the way out is accepted."""
    problem = problem_of(build, {"command": "sweep", "workload": "identity", "sweep": {"loads": loads}})
    assert (problem.setting, problem.way_out) == ("sweep.loads", "--loads 10%..110%")
