"""A model of searches with made-up engines: how long they take, what they find, and how often that holds again.

It tries changes of the strategy in seconds rather than in hours. The search is the real one; an engine answers by rule
instead of running. Its batches need a share of the time that grows with the rate, differs from start to start, and
falls while a fresh engine compiles. Near the limit a trial's end is a matter of chance. The figures of both engines are
set by eye from searches of a windowed aggregation and of a windowed join (`docs/results`), so minutes and shares are
rough. Ratios in one run are what it is for.

Baseline: a search that must do without the predicted limit (it guesses as well). It makes its bracket on the engine of
the overload trial, and confirms the rate on another start.

Needs no engine and one core: `python -m bench.studies.search_model`.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.support.row import Row, row
from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, Settings, TrialOutcome, TrialRequest

REPEATS, SEARCHES, AGAIN = 3, 200, 10
WITHIN_MINUTES = 9.0
AGES_S = (120.0, 300.0)
"""How long an engine has worked when the rate of a search is tried on it again."""
SPEED, PREDICTED, PREDICTION_ERROR = 0.05, 0.98, 0.05
"""Spread of engines, and mean and spread of predicted limits, as shares."""
FULL, STEEPNESS = 1.03, 1.7
STARTING_S, WARM_UP_S, OVERLOAD_S, FAILED_S = 12.0, 48.0, 97.0, 50.0
COLD_UNTIL_S = 40.0
"""An engine is fully cold until then; its trial begins with the last of its warm-up."""


@dataclass(frozen=True)
class Kind:
    """A kind of engine.

    `fixed_share`, `share_per_event_s`: of the time that batches need, without and per event. `cold_share`, `cold_s`: by
    how much a fresh engine is slower, and how fast that passes. `trial_noise`, `start_noise`: spread of the share
    between trials and between starts. `limit_share`, `limit_spread`: the share at which half of the trials hold, and
    the range in which some do. `starved_share`: of the trials that do not hold, those in which the driver starves.
    """

    name: str
    keeps_rows: bool
    ceiling_per_s: float
    fixed_share: float
    share_per_event_s: float
    cold_share: float
    cold_s: float
    trial_noise: float
    start_noise: float
    limit_share: float
    limit_spread: float
    starved_share: float
    held_s: float
    extended_s: float
    undecided_s: float


KINDS = (
    Kind("aggregation", False, 160e6, 0.236, 0.0597e-6, 0.075, 45, 0.02, 0.03, 0.955, 0.018, 0.5, 65, 82, 78),
    Kind("join", True, 6e6, 0.12, 0.75e-6, 0.12, 110, 0.03, 0.03, 0.885, 0.03, 0.08, 61, 70, 55),
)


class ModelEngine:
    """Answers the trials of one search. `seconds` is the time that they took."""

    def __init__(self, kind: Kind, seed: int, predicts: bool) -> None:
        self.kind, self.predicts, self.chance = kind, predicts, random.Random(seed)
        self.speed = self.chance.gauss(1, SPEED)
        self.seconds, self._age_s, self._start = 0.0, 0.0, 1.0

    def __call__(self, request: TrialRequest) -> TrialOutcome:
        if request.fresh:
            self._pass(STARTING_S)
            self.start(0.0)
        if request.purpose == "overload":
            self._pass(OVERLOAD_S)
            return self._overloaded(request)
        self._pass(WARM_UP_S if request.fresh else 0.0)
        share = self.share(request.rate_per_s)
        verdict, seconds = self.judged(share)
        self._pass(seconds)
        return TrialOutcome(
            request.rate_per_s, verdict, request.rate_per_s / share if verdict == "not_sustained" else None,
            purpose=request.purpose, busy_share=share, starved=verdict == "invalid",
        )  # fmt: skip

    def start(self, age_s: float) -> None:
        """A new start, as it is after `age_s`."""
        self._start, self._age_s = self.chance.gauss(1, self.kind.start_noise), age_s

    def share(self, rate_per_s: float) -> float:
        """The share of the time that batches need in one trial."""
        kind = self.kind
        cold = kind.cold_share * math.exp(-max(0.0, self._age_s - COLD_UNTIL_S) / kind.cold_s)
        needed = (kind.fixed_share + kind.share_per_event_s * rate_per_s) * (1 + cold) * self._start * self.speed
        return needed * self.chance.gauss(1, kind.trial_noise)

    def judged(self, share: float) -> tuple[VerdictValue, float]:
        """The verdict of a trial, and how long it took."""
        kind, chance = self.kind, self.chance.random
        above = (share - kind.limit_share) / kind.limit_spread
        if share > FULL:
            return "not_sustained", FAILED_S
        if chance() * (1 + math.exp(STEEPNESS * above)) < 1:
            return "sustained", kind.extended_s if above > -2 and chance() < 0.5 else kind.held_s
        if share >= NEAR_LIMIT.full and chance() < kind.starved_share:
            return "invalid", FAILED_S
        return "undecided", kind.undecided_s

    def _overloaded(self, request: TrialRequest) -> TrialOutcome:
        kind = self.kind
        limit = (NEAR_LIMIT.full / self.speed - kind.fixed_share) / kind.share_per_event_s
        limit *= self.chance.gauss(PREDICTED, PREDICTION_ERROR)
        outcome = TrialOutcome(request.rate_per_s, "not_sustained", limit, purpose="overload", busy_share=0.75)
        if self.predicts:
            return replace(outcome, limit_per_s=limit)
        factor = NEAR_LIMIT.drain_factor_keeping_rows if kind.keeps_rows else NEAR_LIMIT.drain_factor
        guess = NEAR_LIMIT.rate_at(NEAR_LIMIT.full_of(kind.keeps_rows), limit, NEAR_LIMIT.full)
        return replace(outcome, drained_per_s=factor * guess)

    def _pass(self, seconds: float) -> None:
        self.seconds += seconds
        self._age_s += seconds


@dataclass(frozen=True)
class Searched:
    """One search.

    `held_young`, `held_old`: the shares of trials at its rate that hold on other starts of an engine, two and five
    minutes old; 0 without a confirmed rate. `held_below`: of those at 90 % of it, two minutes old.
    """

    minutes: float
    rate_per_s: float
    confirmed: bool
    held_young: float
    held_old: float
    held_below: float

    @property
    def in_time(self) -> bool:
        return self.confirmed and self.minutes < WITHIN_MINUTES


def searched(kind: Kind, seed: int, predicts: bool) -> Searched:
    engine = ModelEngine(kind, seed, predicts)
    search = Search(Settings(ceiling_per_s=kind.ceiling_per_s, keeps_rows=kind.keeps_rows, near_limit=NEAR_LIMIT))
    while search.request is not None:
        search.tell(engine(search.request))
    result = search.result()
    rate = result.sustained_per_s if result.confirmed else None
    took = engine.seconds / 60
    young, old = (_held_again(engine, rate, age_s) for age_s in AGES_S)
    below = _held_again(engine, rate and 0.9 * rate, AGES_S[0])
    return Searched(took, rate or 0.0, result.confirmed, young, old, below)


def _held_again(engine: ModelEngine, rate_per_s: float | None, age_s: float) -> float:
    held = 0
    for _ in range(AGAIN if rate_per_s else 0):
        engine.start(age_s)
        held += engine.judged(engine.share(rate_per_s or 0.0))[0] == "sustained"
    return held / AGAIN


def rows_of(kind: Kind) -> list[Row]:
    """The figures of a kind of engine, beside those of the baseline."""
    ours, theirs = (
        [[searched(kind, SEARCHES * repeat + n, predicts) for n in range(SEARCHES)] for repeat in range(REPEATS)]
        for predicts in (True, False)
    )

    def pair(what: str, unit: str, of: Callable[[list[Searched]], float]) -> list[Row]:
        name = f"search model, {kind.name}: {what}"
        return [row(name, [*map(of, ours)], unit), row(f"{name} (baseline)", [*map(of, theirs)], unit)]

    def ratio(what: str, of: Callable[[list[Searched]], float]) -> Row:
        ratios = [of(one) / of(other) for one, other in zip(ours, theirs, strict=True)]
        return row(f"search model, {kind.name}: {what} / baseline", ratios, "times")

    again = "trials at its rate that hold on other starts, after"
    below = "trials at 90 % of it that hold on other starts, after"
    return [
        *pair("time", "minutes", minutes),
        ratio("time", minutes),
        ratio("rate", rate_per_s),
        *pair("confirmed within nine minutes", "share", lambda repeat: statistics.mean(one.in_time for one in repeat)),
        *pair(f"{again} 2 min", "share", lambda repeat: statistics.mean(one.held_young for one in repeat)),
        *pair(f"{again} 5 min", "share", lambda repeat: statistics.mean(one.held_old for one in repeat)),
        *pair(f"{below} 2 min", "share", lambda repeat: statistics.mean(one.held_below for one in repeat)),
    ]


def minutes(repeat: list[Searched]) -> float:
    return statistics.median(one.minutes for one in repeat)


def rate_per_s(repeat: list[Searched]) -> float:
    return statistics.median(one.rate_per_s for one in repeat)


def main() -> list[Row]:
    """Both kinds of engine."""
    return [line for kind in KINDS for line in rows_of(kind)]


if __name__ == "__main__":
    for line in main():
        print(f"{line['what']:80} {line['value']:8.3g} {line['unit']:8} ±{line['spread']:.1%}")
