"""Demand and capacity on a grid of loads and resources, by one search with few trials.

demand(load) is the fewest resources that sustain it, capacity(resources) the highest load that they sustain (Ehrenstein
2020, later Theodolite). Both follow from the highest sustained load of each level of resources.

The search assumes that more resources sustain no less. It bisects the loads of the middle level first. Lower levels
then need no load above that level's capacity, and higher levels none below it. A level that sustains nothing bounds
its neighbours like any other: it does not end the search.

The search is a function of the outcomes so far, so it goes on after a kill, and repetitions or further points may be
added at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

Outcome = Literal["held", "failed", "undecided"]
DECIDED: tuple[Outcome, ...] = ("held", "failed")


class Point(NamedTuple):
    """A trial's place in a grid: the indices of its load and of its resources."""

    load: int
    resources: int


Outcomes = Mapping[Point, Outcome]


@dataclass(frozen=True)
class Grid:
    """The loads in ascending difficulty, and the levels of resources in ascending order."""

    loads: tuple[float, ...]
    resources: tuple[float, ...]


@dataclass(frozen=True)
class Capacity:
    """The highest sustained load of one level of resources.

    Attributes:
        load: None if the level sustains not even the least load.
        refused: the least load above it that did not hold; None if none exceeded the level, so `load` is a lower bound.
        measured: whether `load` was tried here; else it follows from a lower level.
        decided: whether `refused` failed, here or on a higher level; an undecided trial proves nothing.
    """

    resources: float
    load: float | None
    refused: float | None
    measured: bool
    decided: bool


@dataclass(frozen=True)
class Demand:
    """The fewest resources that sustain a load; None if no level does.

    `decided`: whether the next lower level was shown to fail; an undecided trial proves nothing.
    """

    load: float
    resources: float | None
    decided: bool


class _Unknown(Exception):
    """The search needs the outcome of a point."""

    def __init__(self, point: Point) -> None:
        super().__init__(point)
        self.point = point


def next_point(grid: Grid, outcomes: Outcomes) -> Point | None:
    """The point to try next; None once every capacity follows from the outcomes."""
    try:
        _highest_held(grid, outcomes)
    except _Unknown as unknown:
        return unknown.point
    return None


def capacities(grid: Grid, outcomes: Outcomes) -> tuple[Capacity, ...]:
    """The capacity of each level. `outcomes` must be complete: `next_point` gives None."""
    return tuple(_capacity(grid, outcomes, level, best) for level, best in enumerate(_highest_held(grid, outcomes)))


def demands(grid: Grid, outcomes: Outcomes) -> tuple[Demand, ...]:
    """The demand of each load, from the same outcomes."""
    found, each = [], capacities(grid, outcomes)
    highest = _highest_held(grid, outcomes)
    for place, load in enumerate(grid.loads):
        level = next((level for level, best in enumerate(highest) if best >= place), len(highest))
        decided = level == 0 or each[level - 1].decided
        found.append(Demand(load, grid.resources[level] if level < len(highest) else None, decided))
    return tuple(found)


def trials_max(grid: Grid) -> int:
    """The most points that the search can need."""

    @cache
    def most(levels: int, loads: int) -> int:
        """The most points for so many levels, where each capacity is one of `loads` + 1 places."""
        if not levels or not loads:
            return 0
        below, above = levels // 2, levels - levels // 2 - 1
        return loads.bit_length() + max(most(below, n) + most(above, loads - n) for n in range(loads + 1))

    return most(len(grid.resources), len(grid.loads))


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a point's repetitions: what more than half of them found."""
    for outcome in DECIDED:
        if 2 * outcomes.count(outcome) > len(outcomes):
            return outcome
    return "undecided"


def contradictions(outcomes: Outcomes) -> Iterator[tuple[Point, Point]]:
    """(held, failed) pairs in which the failed point has no more load and no fewer resources: one of both is wrong."""
    held, failed = (_with(outcomes, outcome) for outcome in ("held", "failed"))
    for one in held:
        for other in failed:
            if other.load <= one.load and other.resources >= one.resources:
                yield one, other


def _with(outcomes: Outcomes, outcome: str) -> list[Point]:
    return sorted(point for point, found in outcomes.items() if found == outcome)


def _highest_held(grid: Grid, outcomes: Outcomes) -> list[int]:
    """Index of the highest sustained load of each level; -1 without one."""
    found = [-1] * len(grid.resources)

    def fill(levels: range, low: int, high: int) -> None:
        """Levels whose capacity lies in [low, high): `low` holds on them all, `high` on none."""
        if not levels:
            return
        middle = len(levels) // 2
        best = found[levels[middle]] = _bisect(outcomes, levels[middle], low, high)
        fill(levels[:middle], low, best + 1)
        fill(levels[middle + 1 :], best, high)

    fill(range(len(grid.resources)), -1, len(grid.loads))
    return found


def _bisect(outcomes: Outcomes, level: int, low: int, high: int) -> int:
    while high - low > 1:
        point = Point((low + high) // 2, level)
        if point not in outcomes:
            raise _Unknown(point)
        if outcomes[point] == "held":
            low = point.load
        else:
            high = point.load
    return low


def _capacity(grid: Grid, outcomes: Outcomes, level: int, best: int) -> Capacity:
    above = best + 1
    # The level itself or a higher one did not hold the load above; the nearest level that tried it says how it ended.
    tried = (outcomes.get(Point(above, other)) for other in range(level, len(grid.resources)))
    return Capacity(
        resources=grid.resources[level],
        load=grid.loads[best] if best >= 0 else None,
        refused=grid.loads[above] if above < len(grid.loads) else None,
        measured=outcomes.get(Point(best, level)) == "held",
        decided=above >= len(grid.loads) or next((one for one in tried if one), None) == "failed",
    )
