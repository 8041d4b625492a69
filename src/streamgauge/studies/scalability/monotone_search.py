"""Demand and capacity on a grid of loads and resources, by one search with few trials.

demand(load) is the fewest resources that sustain it, capacity(resources) the highest load that they sustain (Ehrenstein
2020, later Theodolite). Both follow from the highest sustained load of each level of resources.

The search assumes that more resources sustain no less. It narrows the loads of the middle level first. Lower levels
then need no load above that level's capacity, and higher levels none below it. A level that sustains nothing bounds
its neighbours like any other: it does not end the search.

The first load of a level is the middle one, or the one that follows from its neighbour's limit. The next one is where
the engine's batches are expected to be full, by their busy shares at the loads tried so far: the hardest load at once,
if it is expected to hold. Where busy shares are unknown, or loads are no event rates, each next load is the middle one.
Busy shares only choose the load, and a verdict decides. Each next load leaves so few others that the trials of a plain
bisection suffice for them, and `SPARE_TRIALS` in the whole grid; what a level does not need is spare for the next one.

The search is a function of the outcomes so far, so it goes on after a kill, and repetitions or further points may be
added at any time.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise, product
from typing import NamedTuple

from streamgauge.engines.spi import UNMEASURED, NearLimit
from streamgauge.results.scalability import Capacity, Demand
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.bracket import Bracket
from streamgauge.studies.capacity.constants import SPARE_TRIALS

DECIDED: tuple[VerdictValue, ...] = ("sustained", "not_sustained")
"""Verdicts that decide a point; every other one leaves it undecided."""


class Point(NamedTuple):
    """A trial's place in a grid: the indices of its load and of its resources."""

    load: int
    resources: int


Outcomes = Mapping[Point, VerdictValue]


@dataclass(frozen=True)
class Grid:
    """The loads in ascending difficulty, and the levels of resources in ascending order.

    `rates`: events per second of each load. `shares`: of the time that batches needed in a trial, where it is known.
    `near_limit` and `full` tell what they mean: a share of `full` is near the engine's limit.
    """

    loads: tuple[float, ...]
    resources: tuple[float, ...]
    rates: tuple[float, ...] = ()
    shares: Mapping[Point, float] = field(default_factory=dict)
    near_limit: NearLimit = UNMEASURED
    full: float = UNMEASURED.full

    @cached_property
    def are_rates(self) -> bool:
        """Whether a harder load is a higher rate, so that busy shares grow with it."""
        return len(self.rates) == len(self.loads) and all(low < high for low, high in pairwise(self.rates))


class _Unknown(Exception):
    """The search needs the outcome of a point, its argument."""


def next_point(grid: Grid, outcomes: Outcomes) -> Point | None:
    """The point to try next; None once every capacity follows from the outcomes."""
    try:
        _Search(grid, outcomes)
    except _Unknown as unknown:
        return unknown.args[0]
    return None


def capacities(grid: Grid, outcomes: Outcomes) -> tuple[Capacity, ...]:
    """The capacity of each level. `outcomes` must be complete: `next_point` gives None."""
    return tuple(_capacity(grid, outcomes, level, best) for level, best in enumerate(_Search(grid, outcomes).best))


def demands(grid: Grid, outcomes: Outcomes) -> tuple[Demand, ...]:
    """The demand of each load, from the same outcomes."""
    each, highest = capacities(grid, outcomes), _Search(grid, outcomes).best
    found = []
    for place, load in enumerate(grid.loads):
        level = next((level for level, best in enumerate(highest) if best >= place), len(each))
        resources = each[level].resources if level < len(each) else None
        found.append(Demand(load=load, resources=resources, decided=level == 0 or each[level - 1].decided))
    return tuple(found)


def trials_max(grid: Grid) -> int:
    """The most points that a bisection can need; busy shares that mislead may cost `SPARE_TRIALS` more."""

    @cache
    def most(levels: int, loads: int) -> int:
        """The most points for so many levels, where each capacity is one of `loads` + 1 places."""
        if not levels or not loads:
            return 0
        below, above = levels // 2, levels - levels // 2 - 1
        return loads.bit_length() + max(most(below, n) + most(above, loads - n) for n in range(loads + 1))

    return most(len(grid.resources), len(grid.loads))


def combine(verdicts: Sequence[VerdictValue], of: int = 0) -> VerdictValue:
    """What more than half of a point's repetitions found, or more than half `of` so many that are to come."""
    return next((each for each in DECIDED if 2 * verdicts.count(each) > max(len(verdicts), of)), "undecided")


def contradictions(outcomes: Outcomes) -> Iterator[tuple[Point, Point]]:
    """(held, failed) pairs in which the failed point has no more load and no fewer resources: one of both is wrong."""
    held, failed = ([point for point in sorted(outcomes) if outcomes[point] == verdict] for verdict in DECIDED)
    for one, other in product(held, failed):
        if other.load <= one.load and other.resources >= one.resources:
            yield one, other


class _Search:
    """One pass through the outcomes; `_Unknown` if it needs another one.

    `best`: index of the highest sustained load of each level; -1 without one. `_loads` are the loads of brackets, with
    ends that need no trial before and after them.
    """

    def __init__(self, grid: Grid, outcomes: Outcomes) -> None:
        self._grid, self._outcomes = grid, outcomes
        self._spare = SPARE_TRIALS if grid.are_rates else 0
        loads = grid.rates if grid.are_rates else range(len(grid.loads))
        self._loads = (-math.inf, *loads, math.inf)
        self.best = [-1] * len(grid.resources)
        self._narrow_levels(range(len(grid.resources)), -1, len(grid.loads), None)

    def _narrow_levels(self, levels: range, low: int, high: int, limit_of_one: float | None) -> None:
        """Levels whose capacity lies in [low, high): `low` holds on them all, `high` on none.

        `limit_of_one`: the rate that one unit of resources is expected to sustain, by a neighbour.
        """
        if not levels:
            return
        middle = len(levels) // 2
        resources = self._grid.resources[levels[middle]]
        limit = None if limit_of_one is None else limit_of_one * resources
        best, limit = self._narrow(levels[middle], low, high, limit)
        self.best[levels[middle]] = best
        limit_of_one = None if limit is None else limit / resources
        self._narrow_levels(levels[:middle], low, best + 1, limit_of_one)
        self._narrow_levels(levels[middle + 1 :], best, high, limit_of_one)

    def _narrow(self, level: int, low: int, high: int, limit: float | None) -> tuple[int, float | None]:
        """(the highest place between both that held, the rate at which the level is expected to be full)."""
        grid, bracket = self._grid, Bracket(within=(self._loads[low + 1], self._loads[high + 1]))
        trials = (high - low - 1).bit_length() + self._spare
        while high - low > 1:
            point = Point(self._next_place(low, high, limit, trials), level)
            if point not in self._outcomes:
                raise _Unknown(point)
            outcome, trials = self._outcomes[point], trials - 1
            bracket.narrow(self._loads[point.load + 1], outcome, grid.shares.get(point))
            low, high = (self._loads.index(end) - 1 for end in bracket.ends)
            if grid.are_rates:
                limit = bracket.expected_limit(grid.near_limit, grid.full)
        self._spare = trials
        return low, limit

    def _next_place(self, low: int, high: int, limit: float | None, trials: int) -> int:
        """The place of the expected limit, or the nearest one after which `trials` suffice for a bisection."""
        if limit is None:
            return (low + high) // 2
        expected = bisect_right(self._grid.rates, limit) - 1
        most = 2 ** (trials - 1) - 1
        return min(max(expected, low + 1, high - 1 - most), high - 1, low + 1 + most)


def _capacity(grid: Grid, outcomes: Outcomes, level: int, best: int) -> Capacity:
    above = best + 1
    # The level itself or a higher one did not hold the load above; the nearest level that tried it says how it ended.
    tried = (outcomes.get(Point(above, other)) for other in range(level, len(grid.resources)))
    return Capacity(
        resources=round(grid.resources[level]),
        load=grid.loads[best] if best >= 0 else None,
        refused=grid.loads[above] if above < len(grid.loads) else None,
        measured=outcomes.get(Point(best, level)) == "sustained",
        decided=above >= len(grid.loads) or next((one for one in tried if one), None) == "not_sustained",
    )
