"""How many trials a grid needs if busy shares choose its loads, beside plain bisection, on modelled engines."""

import dataclasses
import math
import random
from collections.abc import Callable
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.scalability import Capacity
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.scalability.monotone_search import (
    Grid,
    Point,
    capacities,
    next_point,
    trials_max,
)
from tests.unit.studies.scalability.helpers_scale import LAWS

STEP, LEVELS = 1.05, (1.0, 2.0, 4.0, 8.0)
LOADS = tuple(16384.0 * STEP**n for n in range(86))
"""To 1.04 M/s, as `--loads 16384..1048576` has them."""
CAPACITIES = [8000.0 * 1.19**n for n in range(32)]
"""Of one unit of resources: from half of the least load to more than the greatest."""

Trial = Callable[[Point], tuple[VerdictValue, float | None]]


@dataclasses.dataclass(frozen=True)
class Modelled:
    """An engine whose batches need a share of the time that grows with the rate, whatever the search believes of it.

    `fixed`: the share that they need at any rate; `power`: how the rest grows; `noise`: its spread between trials. The
    share at which trials no longer hold is 0.95; near it the end of a trial is a matter of chance if there is noise.
    """

    fixed: float = 0.2
    power: float = 1.0
    noise: float = 0.0

    def trial(self, capacity: float, law: str, levels: tuple[float, ...], seed: int) -> Trial:
        def one(point: Point) -> tuple[VerdictValue, float]:
            chance = random.Random(f"{seed}, {point}")
            full_at = LAWS[law].capacity(capacity, round(levels[point.resources]), chance)
            share = self.fixed + (0.95 - self.fixed) * (LOADS[point.load] / full_at) ** self.power
            share *= chance.gauss(1, self.noise)
            above = (share - 0.95) / 0.02
            held = chance.random() * (1 + math.exp(min(1.7 * above, 99))) < 1 if self.noise else above <= 0
            return "sustained" if held else "not_sustained" if share > 1.03 else "undecided", share

        return one


def searched(trial: Trial, levels: tuple[float, ...], rates: tuple[float, ...]) -> tuple[int, tuple[Capacity, ...]]:
    """(trials, answer) of a search that knows the busy shares if it knows the rates."""
    grid = Grid(LOADS, levels, rates, near_limit=NEAR_LIMIT, full=NEAR_LIMIT.full)
    outcomes = dict[Point, VerdictValue]()
    while (point := next_point(grid, outcomes)) is not None:
        assert point not in outcomes
        outcomes[point], share = trial(point)
        if share is not None:
            grid = dataclasses.replace(grid, shares={**grid.shares, point: share})
    return len(outcomes), capacities(grid, outcomes)


def trials(engine: Modelled, levels: tuple[float, ...], capacities_: list[float]) -> tuple[list[int], list[int]]:
    """Trials with busy shares and without; without noise both find the same."""
    after, before = [], []
    for law in ("linear", "contended", "coherent"):
        for seed, capacity in enumerate(capacities_):
            trial = engine.trial(capacity, law, levels, seed)
            (with_shares, found), (plain, expected) = (searched(trial, levels, rates) for rates in (LOADS, ()))
            if not engine.noise:
                assert [one.load for one in found] == [one.load for one in expected]
            after.append(with_shares)
            before.append(plain)
    return after, before


@pytest.mark.parametrize(
    ("engine", "levels", "share"),
    [
        (Modelled(fixed=0.05), (1.0, 2.0), 0.65),
        (Modelled(fixed=0.15), LEVELS, 0.6),
        (Modelled(fixed=0.236, noise=0.03), (1.0, 2.0), 0.75),
        (Modelled(fixed=0.236, noise=0.03), LEVELS, 0.7),
        (Modelled(power=2.0), LEVELS, 0.7),
        (Modelled(fixed=0.5), LEVELS, 0.8),
    ],
)
def test_a_study_whose_loads_end_inside_needs_fewer_trials(
    engine: Modelled, levels: tuple[float, ...], share: float
) -> None:
    """On average at most this share of a bisection's trials; hardly ever more than it, or than it can need."""
    after, before = trials(engine, levels, CAPACITIES)
    assert fmean(after) <= share * fmean(before)
    assert fmean(more > plain for more, plain in zip(after, before, strict=True)) < 0.2
    assert max(after) <= trials_max(Grid(LOADS, levels)) + 1


@given(capacity=st.sampled_from(CAPACITIES), seed=st.integers(), held=st.booleans())
def test_shares_that_mislead_cost_a_whole_study_one_trial(capacity: float, seed: int, held: bool) -> None:
    """More than a bisection can need, and change no answer."""
    chance = random.Random(seed)
    shares: dict[Point, float | None] = {}

    def trial(point: Point) -> tuple[VerdictValue, float | None]:
        outcome = Modelled().trial(capacity, "contended", LEVELS, seed)(point)[0]
        return outcome, shares.setdefault(point, chance.choice([None, chance.uniform(0, 1.5)]))

    (after, found), (before, expected) = (searched(trial, LEVELS, rates) for rates in (LOADS, ()))
    assert [one.load for one in found] == [one.load for one in expected]
    assert before <= trials_max(Grid(LOADS, LEVELS)) >= after - 1


@pytest.mark.parametrize("rates", [(), (1e5,) * len(LOADS), LOADS[::-1]])
def test_without_rising_rates_shares_choose_nothing(rates: tuple[float, ...]) -> None:
    """A window period is a load of another kind: the middle is next, as without shares."""
    grid = Grid(LOADS, (1.0, 2.0), rates, shares={Point(43, 1): 0.2})
    assert next_point(grid, {}) == Point(42, 1)
    assert next_point(dataclasses.replace(grid, shares={Point(42, 1): 0.2}), {Point(42, 1): "sustained"}) == Point(
        64, 1
    )
