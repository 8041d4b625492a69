"""Loads from easy to hard, and levels of resources, as settings of trials."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config.experiment import Scale
from streamgauge.core.errors import InputError
from streamgauge.studies.scalability.study import load_axis, resource_axis
from tests.unit.helpers_refusals import problem_of


def loads(text: str, load: str = "rate", step: float = 0.05) -> tuple[float, ...]:
    return load_axis(Scale(loads=text, load=load), step).numbers


def test_a_range_has_both_ends_and_steps_of_at_most_the_tolerance() -> None:
    """Doublings by a factor."""
    assert loads("4096..131072x2") == (4096, 8192, 16384, 32768, 65536, 131072)
    assert loads("1k..1k") == (1000,)
    assert loads("1k..1.04k") == (1000, 1040)
    assert load_axis(Scale(loads="1,2k, 3M"), 0.05).values == (1, 2000, 3_000_000)


@given(st.integers(1, 10**6), st.integers(1, 10**3), st.sampled_from([0.05, 0.1, 0.5]))
def test_every_range_ascends_in_steps(first: int, factor: int, step: float) -> None:
    """Rounded to whole numbers."""
    numbers = loads(f"{first}..{first * factor}", step=step)
    assert (numbers[0], numbers[-1]) == (first, first * factor)
    for one, other in pairwise(numbers):
        assert one < other <= one * (1 + step) * 1.001 + 1


def test_smaller_is_harder_where_the_range_descends() -> None:
    """Times are written with their unit, to the microsecond."""
    axis = load_axis(Scale(loads="1s..10ms", load="period"), 1.0)
    assert (axis.setting, axis.unit, axis.ascends) == ("parameters.period", "s", False)
    assert (axis.values[0], axis.values[-1]) == ("1000ms", "10ms")
    assert all(one > other for one, other in pairwise(axis.numbers))


def test_a_parameter_has_whole_numbers() -> None:
    """Each once; a dotted name is a setting."""
    assert load_axis(Scale(loads="1..5", load="height"), 0.05).values == (1, 2, 3, 4, 5)
    axis = load_axis(Scale(loads="1k,10k", load="options.capacity"), 0.05)
    assert (axis.setting, axis.values) == ("options.capacity", ("1000", "10000"))


def test_levels_ascend() -> None:
    """Options are texts."""
    assert resource_axis(Scale(resources="4,1,2")).values == (1, 2, 4)
    assert resource_axis(Scale(resources="2", resource="options.knee")).values == ("2",)


@pytest.mark.parametrize(
    ("given_loads", "load", "rule"),
    [
        ("", "rate", "must be given"),
        ("fast", "rate", "must be a number of events per second"),
        ("1k,fast", "keys", "must be numbers above 0"),
        ("0", "keys", "must be numbers above 0"),
        ("0s..1s", "period", "must be above 0"),
        ("1k..", "rate", "must be a number of events per second"),
        ("1k..2kx1", "rate", "must have a factor above 1"),
        ("1k,1k", "rate", "must ascend"),
        ("2k,1k", "rate", "must ascend"),
        ("2k..1k", "rate", "must ascend"),
        ("1,3,2", "keys", "must ascend or descend"),
        ("1..1e300", "rate", "must have at most 500 loads"),
    ],
)
def test_loads_that_are_none_are_refused(given_loads: str, load: str, rule: str) -> None:
    """Once, by the setting's name."""
    problem = problem_of(load_axis, Scale(loads=given_loads or (), load=load), 0.05)
    assert (problem.setting, rule in problem.rule) == ("scale.loads", True)


def test_levels_must_be_given_and_set_a_setting() -> None:
    """Both at once."""
    with pytest.raises(InputError) as refused:
        resource_axis(Scale(resource="cores"))
    assert [problem.setting for problem in refused.value.problems] == ["scale.resource", "scale.resources"]
