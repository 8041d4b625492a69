"""The search for demand and capacity against a linear scan, and where others give up."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.results.scalability import Capacity, Demand
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.scalability.monotone_search import (
    Grid,
    Point,
    capacities,
    combine,
    contradictions,
    demands,
    next_point,
    trials_max,
)


@st.composite
def systems(draw: st.DrawFn) -> tuple[Grid, list[int]]:
    """A grid, and for each level how many loads it sustains: no fewer with more resources."""
    loads, levels = draw(st.integers(1, 24)), draw(st.integers(1, 9))
    sustained = sorted(draw(st.lists(st.integers(0, loads), min_size=levels, max_size=levels)))
    return Grid(tuple(1000.0 * n for n in range(1, loads + 1)), tuple(float(2**n) for n in range(levels))), sustained


def searched(grid: Grid, sustained: list[int], undecided: frozenset[Point] = frozenset()) -> dict[Point, VerdictValue]:
    """The outcomes of every trial that the search asks for."""
    outcomes: dict[Point, VerdictValue] = {}
    while (point := next_point(grid, outcomes)) is not None:
        assert point not in outcomes
        held = point.load < sustained[point.resources]
        outcomes[point] = "undecided" if point in undecided else "sustained" if held else "not_sustained"
    return outcomes


def scanned(grid: Grid, sustained: list[int]) -> tuple[list[float | None], list[float | None]]:
    """(capacity of each level, demand of each load) by trying every point in turn."""
    by_level = [
        max((load for place, load in enumerate(grid.loads) if place < count), default=None) for count in sustained
    ]
    by_load = [
        min((level for level, count in zip(grid.resources, sustained, strict=True) if place < count), default=None)
        for place in range(len(grid.loads))
    ]
    return by_level, by_load


def levels_of(*sustained: int) -> tuple[Grid, list[int]]:
    """Up to four loads, and for each level how many of them it sustains."""
    return Grid((1000.0, 2000.0, 3000.0, 4000.0), tuple(2.0**n for n in range(len(sustained)))), list(sustained)


@given(systems())
@example(levels_of(0, 0, 2, 3))
@example(levels_of(0, 0, 0, 0))
@example(levels_of(4, 4, 4, 4))
def test_it_finds_what_a_linear_scan_finds(system: tuple[Grid, list[int]]) -> None:
    """Both metrics, from at most log2(loads + 1) trials a level; every end is decided. Levels that sustain nothing do
    not end it: Theodolite starts a level's search at the previous level's answer, and gives up where that is empty.
    """
    grid, sustained = system
    outcomes = searched(grid, sustained)
    result = capacities(grid, outcomes)
    assert ([one.load for one in result], [one.resources for one in demands(grid, outcomes)]) == scanned(
        grid, sustained
    )
    assert len(outcomes) <= trials_max(grid) <= len(grid.resources) * math.ceil(math.log2(len(grid.loads) + 1))
    assert all(one.decided for one in result)
    assert all(one.decided for one in demands(grid, outcomes))
    for one, count in zip(result, sustained, strict=True):
        assert one.refused == (grid.loads[count] if count < len(grid.loads) else None)


@given(systems(), st.data())
def test_it_goes_on_from_what_was_tried(system: tuple[Grid, list[int]], data: st.DataObject) -> None:
    """A search that was killed tries only what is missing, and so ends with the same outcomes."""
    grid, sustained = system
    whole = searched(grid, sustained)
    outcomes = dict(list(whole.items())[: data.draw(st.integers(0, len(whole)))])
    while (point := next_point(grid, outcomes)) is not None:
        outcomes[point] = whole[point]
    assert outcomes == whole


@given(systems(), st.data())
def test_noise_neither_loops_nor_reverses_levels(system: tuple[Grid, list[int]], data: st.DataObject) -> None:
    """Whatever trials find, the search ends, and capacity does not fall with more resources."""
    grid, _ = system
    outcomes: dict[Point, VerdictValue] = {}
    while (point := next_point(grid, outcomes)) is not None:
        outcomes[point] = data.draw(st.sampled_from(["sustained", "not_sustained", "undecided"]))
    loads = [one.load or 0.0 for one in capacities(grid, outcomes)]
    assert loads == sorted(loads)
    assert len(outcomes) <= len(grid.loads) * len(grid.resources)


@given(systems())
def test_a_capacity_that_an_undecided_trial_bounds_is_not_decided(system: tuple[Grid, list[int]]) -> None:
    """The load above it may hold."""
    grid, sustained = system
    outcomes = searched(grid, sustained, frozenset(Point(count, level) for level, count in enumerate(sustained)))
    for one, count in zip(capacities(grid, outcomes), sustained, strict=True):
        assert one.load == (grid.loads[count - 1] if count else None)
        assert one.decided == (count == len(grid.loads))


def test_an_undecided_trial_bounds_no_demand() -> None:
    """A lower level may sustain the load too, and a load without a demand may have one."""
    grid = Grid((1000.0, 2000.0, 3000.0), (1.0, 2.0))
    assert demands(grid, searched(grid, [1, 2], frozenset({Point(1, 0), Point(2, 1)}))) == (
        Demand(load=1000.0, resources=1, decided=True),
        Demand(load=2000.0, resources=2, decided=False),
        Demand(load=3000.0, resources=None, decided=False),
    )


def test_what_no_load_exceeded_is_a_lower_bound() -> None:
    """It has no refused load, and what follows from a lower level was not measured."""
    grid = Grid((1000.0,), (1.0, 2.0, 4.0))
    result = capacities(grid, searched(grid, [1, 1, 1]))
    assert result[1] == Capacity(resources=2, load=1000.0, refused=None, measured=True, decided=True)
    assert result[2] == Capacity(resources=4, load=1000.0, refused=None, measured=False, decided=True)
    assert [one.measured for one in result] == [True, True, False]


def test_repetitions_decide_by_majority() -> None:
    """Without one nothing is decided."""
    assert combine(["sustained", "not_sustained", "sustained"]) == "sustained"
    assert combine(["not_sustained", "not_sustained", "undecided"]) == "not_sustained"
    assert combine(["sustained", "not_sustained"]) == "undecided"
    assert combine([]) == "undecided"


def test_outcomes_that_no_monotone_system_has_are_found() -> None:
    """A load that held with 1 core failed with 2: one trial is wrong."""
    outcomes: dict[Point, VerdictValue] = {
        Point(1, 0): "sustained",
        Point(1, 1): "not_sustained",
        Point(2, 1): "not_sustained",
    }
    assert list(contradictions(outcomes)) == [(Point(1, 0), Point(1, 1))]
    with_the_same: dict[Point, VerdictValue] = {Point(1, 0): "sustained", Point(0, 0): "not_sustained"}
    assert list(contradictions(with_the_same)) == [(Point(1, 0), Point(0, 0))]
