"""Sets of processors as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.cpu_sets import CPU_MAX, format_cpus, parse_cpus
from streamgauge.core.errors import InputError


@pytest.mark.parametrize(("text", "cpus"), [
    ("0", (0,)), (3, (3,)), ("1-3", (1, 2, 3)), ("5,0-1", (0, 1, 5)), (" 2 - 2 , 2", (2,)), (f"{CPU_MAX}", (CPU_MAX,)),
])  # fmt: skip
def test_numbers_and_ranges_are_read(text: str | int, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0,,1", "1.5", "0-99999999999", f"{CPU_MAX + 1}", "0;1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_cpus(text, "cpus", "--cpus 0-1")
    (problem,) = refused.value.problems
    assert (problem.setting, problem.got, problem.way_out) == ("cpus", text, "--cpus 0-1")


@given(st.sets(st.integers(0, 40), min_size=1))
def test_what_is_written_is_read_back(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == tuple(sorted(cpus))


def test_ranges_are_written_short() -> None:
    assert format_cpus([3, 0, 1, 2, 7]) == "0-3,7"
