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
from dataclasses import dataclass, replace

from bench.support.row import Row, row
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import Search, Settings, TrialOutcome, TrialRequest
from streamgauge.studies.capacity.strategy import (
    BUSY_FULL,
    DRAIN_OVERESTIMATE_FACTOR,
    KEPT_ROWS_BUSY,
    KEPT_ROWS_OVERESTIMATE_FACTOR,
    rate_at,
)

REPEATS, SEARCHES, AGAIN = 3, 200, 10
WITHIN_MINUTES = 9.0
WARM_AGE_S = 300.0
SPEED, PREDICTED, PREDICTION_ERROR = 0.05, 0.98, 0.05
"""Spread of engines, and mean and spread of predicted limits, as shares."""
FULL, STEEPNESS = 1.03, 1.7
STARTING_S, WARM_UP_S, OVERLOAD_S, FAILED_S, BEFORE_SPAN_S = 12.0, 48.0, 97.0, 50.0, 35.0


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
        cold = kind.cold_share * math.exp(-max(0.0, self._age_s + BEFORE_SPAN_S - 75) / kind.cold_s)
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
        if share >= BUSY_FULL and chance() < kind.starved_share:
            return "invalid", FAILED_S
        return "undecided", kind.undecided_s

    def _overloaded(self, request: TrialRequest) -> TrialOutcome:
        kind = self.kind
        limit = (BUSY_FULL / self.speed - kind.fixed_share) / kind.share_per_event_s
        limit *= self.chance.gauss(PREDICTED, PREDICTION_ERROR)
        outcome = TrialOutcome(request.rate_per_s, "not_sustained", limit, purpose="overload", busy_share=0.75)
        if self.predicts:
            return replace(outcome, limit_per_s=limit)
        factor = KEPT_ROWS_OVERESTIMATE_FACTOR if kind.keeps_rows else DRAIN_OVERESTIMATE_FACTOR
        guess = rate_at(KEPT_ROWS_BUSY if kind.keeps_rows else BUSY_FULL, limit, BUSY_FULL)
        return replace(outcome, drained_per_s=factor * guess)

    def _pass(self, seconds: float) -> None:
        self.seconds += seconds
        self._age_s += seconds


@dataclass(frozen=True)
class Searched:
    """One search: `held_again` is the share of trials at its rate that hold on other starts, minutes old."""

    minutes: float
    rate_per_s: float
    confirmed: bool
    held_again: float


def searched(kind: Kind, seed: int, predicts: bool) -> Searched:
    engine = ModelEngine(kind, seed, predicts)
    search = Search(Settings(ceiling_per_s=kind.ceiling_per_s, keeps_rows=kind.keeps_rows))
    while search.request is not None:
        search.tell(engine(search.request))
    result = search.result()
    rate, held = result.sustained_per_s or 0.0, 0
    for _ in range(AGAIN):
        engine.start(WARM_AGE_S)
        held += engine.judged(engine.share(rate))[0] == "sustained"
    return Searched(engine.seconds / 60, rate, result.confirmed, held / AGAIN)


def rows_of(kind: Kind) -> list[Row]:
    """The figures of a kind of engine, and their ratios to the baseline."""
    found = {
        predicts: [
            [searched(kind, SEARCHES * repeat + number, predicts) for number in range(SEARCHES)]
            for repeat in range(REPEATS)
        ]
        for predicts in (True, False)
    }
    median = {
        (predicts, what): [statistics.median(getattr(one, what) for one in repeat) for repeat in found[predicts]]
        for predicts in found
        for what in ("minutes", "rate_per_s")
    }
    again = {
        predicts: [statistics.mean(one.held_again for one in repeat) for repeat in found[predicts]]
        for predicts in found
    }
    within = [statistics.mean(one.minutes < WITHIN_MINUTES for one in repeat) for repeat in found[True]]
    confirmed = [statistics.mean(one.confirmed for one in repeat) for repeat in found[True]]
    ratio = [ours / theirs for ours, theirs in zip(median[True, "minutes"], median[False, "minutes"], strict=True)]
    rates = [
        ours / theirs for ours, theirs in zip(median[True, "rate_per_s"], median[False, "rate_per_s"], strict=True)
    ]
    name = f"search model, {kind.name}"
    return [
        row(f"{name}: time", median[True, "minutes"], "minutes"),
        row(f"{name}: time, confirmed on another start (baseline)", median[False, "minutes"], "minutes"),
        row(f"{name}: time / baseline", ratio, "times"),
        row(f"{name}: searches within 9 min", within, "share"),
        row(f"{name}: confirmed", confirmed, "share"),
        row(f"{name}: rate / baseline", rates, "times"),
        row(f"{name}: trials at that rate that hold on other starts", again[True], "share"),
        row(f"{name}: the same (baseline)", again[False], "share"),
    ]


def main() -> list[Row]:
    """Both kinds of engine."""
    return [line for kind in KINDS for line in rows_of(kind)]


if __name__ == "__main__":
    for line in main():
        print(f"{line['what']:80} {line['value']:8.3g} {line['unit']:8} ±{line['spread']:.1%}")
