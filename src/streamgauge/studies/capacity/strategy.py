"""The search strategy: chooses the next trial from the outcomes so far [method 3; K def. 5; E §3.6].

Pure: no engine, no clock, no chance. The steps, in order:

 1. one overload trial; the rate it drains, less a tenth, is a first guess. It overestimates, since near its limit an
    engine's batches vary so much that no trial decides. A guess that holds serves as the trial at 90 % of the limit;
 2. both ends of the bracket are tested: from the guess upwards or downwards, in growing steps, until one rate holds and
    a higher one does not;
 3. bisection until the bracket is as narrow as asked: where the engine is expected to be full, by how busy it was at
    both ends, and at the geometric middle where that says nothing;
 4. the rate that holds is confirmed: again on a fresh engine, then at 90 %, unless a trial of the bracket held about
    there. Where one of the two fails, the search steps down by the width from the rate that failed, and confirms again,
    on that same engine: no trial of the bracket ran there.

A trial that is invalid, because something disturbed the driver or took the system's processors, is made once more at
the same rate; a second time there is no upper end, and what held is confirmed. Where that rate lies far above what
held, or is a first guess, less is tried first. At 90 % it ends nothing: nothing is said against the rate above.
Undecided there, it is made once more too, since a rate is not worth much where less of it could not be shown to hold.

*Holds* means that the verdict is sustained. Undecided, after the extensions that a trial makes by itself, counts as
"does not hold", but for the first judged trial, which is made once more: the search must go on, and only proof may
raise the answer. It stays undecided in the table of trials,
and where the upper end of the bracket rests on it, the result says so.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Literal

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.formatting import format_rate
from streamgauge.results.causes import SearchEnd
from streamgauge.results.search import TrialSummary
from streamgauge.results.verdict import VerdictValue

Purpose = Literal["overload", "bracket", "bisect", "confirm", "at 90 %"]

DRAIN_OVERESTIMATE_FACTOR, FAILED_OVERESTIMATE_FACTOR = 1.1, 1.05
"""Rate drained over rate sustained, of the overload trial and of a judged one that fell behind; only where to look next
rests on it."""
BUSY_FULL, BUSY_OVER = 0.78, 0.84
"""An engine whose batches fill the first share of the time is near its limit: of windowed aggregations on Spark, 35
trials held at 0.28 to 0.79 and five at 0.8 to 0.88, and 14 of 17 at 0.79 to 0.9 were undecided. After a rate that held,
the next one is where they would fill the second share: a trial that fails is shorter than one that holds, and gives the
upper end. Joins have their limit elsewhere (0.5, 0.9): only where to look next rests on it."""
PROMISED_MAX, STEP_MAX, _WIDE = 4.0, 64.0, 1.5
"""The longest step that an idle engine's busy share promises, the longest of all, and a bracket that is wide."""
_GROWTH = {"sustained": 2, "undecided": 1.5}
"""How steps grow, as a power: down faster than up, since a drain rate is too high more often than too low, and
slowly where a rate was undecided, which lies near the border more often than far away."""
_FAR_STEP, _FAR_GROWTH = 1.2, 5
"""Steps that long are taken only by a search that began far away, and grow faster."""
_GUESSES_MAX = 3
"""So often a first guess that starves the driver is made smaller: a driver that fails at any rate has a fault."""
SLACK = 1e-9


@dataclass(frozen=True)
class Settings:
    """How to search. Rates in events per second; `tolerance` is the relative width of the bracket.

    `ceiling_per_s`: the generator's own; the overload trial offers it, and no trial is offered more. `floor_per_s`:
    nothing lower is tried. `start_per_s` takes the overload trial's place as the first guess. `fresh_always`: for flows
    with unbounded state.
    """

    ceiling_per_s: float
    tolerance: float = 0.05
    quick: bool = False
    start_per_s: float | None = None
    floor_per_s: float = 1.0
    trials_max: int = 16
    fresh_always: bool = False

    def __post_init__(self) -> None:
        problems = [
            Problem(f"search.{name}", rule, got, way_out)
            for name, holds, rule, got, way_out in (
                ("tolerance", 0 < self.tolerance < 1, "must be between 0 and 1", self.tolerance, "0.05"),
                ("trials_max", self.trials_max >= 1, "must be at least 1", self.trials_max, "16"),
                (
                    "ceiling",
                    0 < self.floor_per_s <= self.ceiling_per_s < math.inf,
                    f"must be a rate of at least {self.floor_per_s:g}/s",
                    self.ceiling_per_s,
                    "measure the generator's ceiling again on an idle machine",
                ),
            )
            if not holds
        ]
        if problems:
            raise InputError(problems)


@dataclass(frozen=True)
class TrialRequest:
    """One requested trial: `fresh` on a newly started engine."""

    rate_per_s: float
    purpose: Purpose
    fresh: bool


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial. `drained_per_s` is the rate delivered while there was a backlog, None where not known.
    `busy_share`: the share of the time that the engine's batches filled, mean; None where that is not known.
    `wrong_answers`: what is wrong with the results of a trial that kept up otherwise; empty where nothing is.

    An overload trial is not judged: its verdict only says whether the engine kept up with what was offered, or that the
    driver failed.
    """

    rate_per_s: float
    verdict: VerdictValue
    drained_per_s: float | None = None
    why: str = ""
    purpose: str = ""
    event_time_p50_us: float | None = None
    event_time_p99_us: float | None = None
    until_counted_p50_us: float | None = None
    until_counted_p99_us: float | None = None
    backlog_slope_share: float | None = None
    busy_share: float | None = None
    seconds: float = 0.0
    folder: str = ""
    engine_start: int = 0
    wrong_answers: str = ""

    @property
    def holds(self) -> bool:
        return self.verdict == "sustained"


TrialRequests = Generator[TrialRequest, TrialOutcome, None]
Trial = Generator[TrialRequest, TrialOutcome, TrialOutcome]


class SearchEnded(Exception):
    """The search cannot go on; the message says why, and `by` is its code."""

    def __init__(self, by: SearchEnd, reason: str = "") -> None:
        super().__init__(reason)
        self.by = by


@dataclass
class State:
    """What is known so far: `low` held, `high` did not; `drained_per_s` is the least that a failed trial drained.

    `refused` are the rates that a trial has shown to fail; `high` may lie below them all, where it was undecided.
    """

    settings: Settings
    trials: list[tuple[TrialRequest, TrialOutcome]] = field(default_factory=list)
    held: set[float] = field(default_factory=set)
    high: float | None = None
    high_verdict: VerdictValue | None = None
    refused: set[float] = field(default_factory=set)
    drained_per_s: float | None = None
    step_near_drained: float | None = None
    confirmed_per_s: float | None = None
    ended_by: SearchEnd | None = None
    ended: str = ""

    @property
    def low(self) -> float | None:
        """The rate that was confirmed; before that, the highest that held and was not refuted since."""
        return max(self.held, default=None) if self.confirmed_per_s is None else self.confirmed_per_s

    @property
    def judged(self) -> bool:
        """Whether any trial but an overload trial was made and not invalid."""
        return any(request.purpose != "overload" and told.verdict != "invalid" for request, told in self.trials)

    @property
    def refused_per_s(self) -> float | None:
        """The least rate above `low` that a trial has shown to fail; nothing of the search's strategy rests on it."""
        low = self.low or 0.0
        return min((rate for rate in self.refused if rate > low), default=None)

    @property
    def at_90_percent(self) -> TrialSummary | None:
        """The trial at 90 % of the confirmed rate: the last one, or an earlier one that held about there."""
        if self.confirmed_per_s is None:
            return None
        if self.trials[-1][0].purpose == "at 90 %":
            return summary(len(self.trials), *self.trials[-1])
        number = self.held_near(0.9 * self.confirmed_per_s)
        return summary(number, *self.trials[number - 1]) if number else None

    def held_near(self, rate_per_s: float) -> int:
        """The number of the last trial that held within half the tolerance of that rate; 0 for none."""
        near = 1 + self.settings.tolerance / 2
        numbers = (
            number
            for number, (request, outcome) in enumerate(self.trials, start=1)
            if request.purpose != "overload" and outcome.holds and 1 / near <= request.rate_per_s / rate_per_s <= near
        )
        return max(numbers, default=0)

    def forget_held(self) -> None:
        """Wrong answers at one rate leave no rate that holds."""
        self.held, self.confirmed_per_s = set(), None

    def note(self, outcome: TrialOutcome, rate_per_s: float) -> None:
        """A trial's word on a rate; a refuted rate takes those above it along."""
        if outcome.holds:
            self.held.add(rate_per_s)
            return
        if outcome.verdict == "not_sustained":
            self.refused.add(rate_per_s)
        if outcome.drained_per_s:
            self.drained_per_s = min(outcome.drained_per_s, self.drained_per_s or math.inf)
        if self.high is None or rate_per_s <= self.high:
            self.high, self.high_verdict = rate_per_s, outcome.verdict
            self.held = {rate for rate in self.held if rate < rate_per_s}


def steps(state: State) -> TrialRequests:
    """The conductor: steps 1 to 4 of this file's docstring."""
    guess = yield from _first_guess(state)
    stopped: SearchEnded | None = None
    try:
        yield from _bracket(state, guess)
        yield from _bisect(state)
    except SearchEnded as reason:
        stopped = reason
    if state.low is None:
        raise stopped or SearchEnded(SearchEnd.NO_RATE_HELD, f"not even {format_rate(state.settings.floor_per_s)} held")
    if not state.settings.quick:
        # A rate that held is a lower bound, and can be confirmed, whatever kept the search from an upper one.
        yield from _confirm(state)
    if stopped is not None:
        raise stopped


def _first_guess(state: State) -> Generator[TrialRequest, TrialOutcome, float]:
    settings = state.settings
    if settings.start_per_s is not None:
        return _within(settings, settings.start_per_s)
    offered = _within(settings, settings.ceiling_per_s)
    outcome = yield from _run_trial(TrialRequest(offered, "overload", fresh=True))
    # An engine that keeps up was not overloaded: what was offered is the guess, and no overestimate.
    if outcome.holds:
        return offered
    if not outcome.drained_per_s or outcome.drained_per_s <= 0:
        reason = f"the overload trial drained nothing ({outcome.why or outcome.verdict})"
        raise SearchEnded(SearchEnd.NOTHING_DRAINED, reason)
    return _within(settings, outcome.drained_per_s / DRAIN_OVERESTIMATE_FACTOR)


def _bracket(state: State, guess: float) -> TrialRequests:
    """Test the guess, then away from it in growing steps, until one rate holds and a higher one does not."""
    # One width: where the first step already makes a bracket, it is narrow enough.
    first = 1 + state.settings.tolerance
    rate, step, backoff = guess, first, DriverStarvationBackoff(first)
    while True:
        try:
            outcome = yield from (_try if state.judged else _try_first)(state, rate, "bracket")
        except SearchEnded as invalid:
            rate, step = backoff.lower_rate(rate, state.low, invalid), first
            continue
        if state.low is not None and state.high is not None:
            return
        if outcome.holds:
            following = backoff.higher_rate(
                rate, _within(state.settings, rate * _step_up(step, first, outcome.busy_share))
            )
        else:
            following = _within(state.settings, _rate_below(rate, step, outcome.drained_per_s))
        if following == rate:
            return
        rate, step = following, _longer_step(step, outcome.verdict)


def _longer_step(step: float, verdict: VerdictValue) -> float:
    far = verdict != "undecided" and step > _FAR_STEP
    return min(step ** (_FAR_GROWTH if far else _GROWTH.get(verdict, 3)), STEP_MAX)


class DriverStarvationBackoff:
    """The least rate at which the driver failed twice: on shared cores a far too high one leaves it no processor.

    That is no proof, so less is asked; but neither the same again, nor what lies within `near` of what held.
    """

    def __init__(self, near: float) -> None:
        self._near, self._rate_per_s, self._guesses = near, math.inf, 0
        self._reason = SearchEnded(SearchEnd.INVALID_TWICE)

    def lower_rate(self, rate: float, low: float | None, reason: SearchEnded) -> float:
        """Half way down to what held, or half of a first guess; raises the reason where there is no such rate."""
        self._rate_per_s, self._reason = rate, reason
        self._guesses += low is None
        if self._guesses > _GUESSES_MAX:
            raise reason
        return self._half_way(rate / PROMISED_MAX if low is None else low)

    def higher_rate(self, low: float, rate: float) -> float:
        """The next rate up."""
        return rate if rate < self._rate_per_s else self._half_way(low)

    def _half_way(self, low: float) -> float:
        if self._rate_per_s <= low * self._near:
            raise self._reason
        return math.sqrt(low * self._rate_per_s)


def _step_up(step: float, width: float, busy_share: float | None) -> float:
    """How much higher the next rate is: to where the engine is expected to fail, at least a width; without a busy
    share a step. Batches that stay full over many steps follow each other at any rate, and predict nothing.
    """
    if not busy_share:
        return step
    promised = BUSY_OVER / busy_share
    if promised > _WIDE:
        return max(step, min(promised, PROMISED_MAX))
    if promised > 1:
        return max(promised, width)
    return step if step > _FAR_STEP else min(step, width**2)


def _rate_below(rate: float, step: float, drained_per_s: float | None) -> float:
    """The next rate down: a step, or further where the trial's own drain rate says that it was far too much."""
    if not drained_per_s or drained_per_s <= 0:
        return rate / step
    return min(rate / step, drained_per_s / FAILED_OVERESTIMATE_FACTOR)


def _bisect(state: State) -> TrialRequests:
    while state.low is not None and state.high is not None and not is_narrow(state):
        yield from _try(state, _rate_between(state, state.low, state.high), "bisect")


def _rate_between(state: State, low: float, high: float) -> float:
    """Where the engine is expected to be full, else the geometric middle; in a wide bracket near what a failed trial
    drained.

    Both ends keep their distance of a width, and a rate nearly that close to one of them is put there: it may be the
    last one. So may a width below the upper end of a bracket of up to three widths, whose middle never is.
    """
    margin = 1 + state.settings.tolerance
    if high / low > _WIDE and low * margin <= (near := _near_drain_rate(state, low, high)) <= high / margin:
        return near
    full = _expected_full_rate(state, low, high)
    lowest, highest, near = low * margin, high / margin, math.sqrt(margin)
    if lowest >= highest:
        return math.sqrt(low * high)
    if full is None:
        return highest if high / low <= margin**3 else math.sqrt(low * high)
    if full < lowest * near:
        return lowest
    return highest if full > highest / near else full


def _near_drain_rate(state: State, low: float, high: float) -> float:
    """The next of growing steps away from a little less than the least that a failed trial drained; 0 where nothing is
    known.
    """
    if state.drained_per_s is None:
        return 0.0
    below, margin = state.drained_per_s / FAILED_OVERESTIMATE_FACTOR, 1 + state.settings.tolerance
    unheard = below >= low * margin
    if unheard and state.trials[-1][1].holds:
        return below
    state.step_near_drained = min((state.step_near_drained or math.sqrt(margin)) ** 2, STEP_MAX)
    return min(high / state.step_near_drained, below) if unheard else low * state.step_near_drained


def _expected_full_rate(state: State, low: float, high: float) -> float | None:
    """The rate at which batches would fill `BUSY_FULL` of the time, on a line from what held to what did not.

    None where one of the two is not known, or where that share does not lie between them.
    """
    shares = {request.rate_per_s: outcome.busy_share for request, outcome in state.trials}
    below, above = shares.get(low), shares.get(high)
    if below is None or above is None or not below < BUSY_FULL < above:
        return None
    return low + (high - low) * (BUSY_FULL - below) / (above - below)


def _confirm(state: State) -> TrialRequests:
    """On a fresh engine, then at 90 %; stepping down by the width, from the rate that failed, until both are there.

    One fresh engine serves them all, since it has made nothing but confirmations.

    At 90 % only "not sustained" refutes: undecided or invalid there says nothing against the rate above it.
    """
    settings, rate, fresh = state.settings, state.low, True
    while rate is not None:
        outcome = yield from _try(state, rate, "confirm", fresh)
        fresh = False
        if outcome.holds:
            refuted = yield from _refuted_at_90_percent(state, rate)
            if refuted is None:
                return
            rate = refuted
        if rate <= settings.floor_per_s * (1 + SLACK):
            reason = f"not even {format_rate(settings.floor_per_s)} was confirmed"
            raise SearchEnded(SearchEnd.NO_RATE_HELD, reason)
        rate = _within(settings, rate / (1 + settings.tolerance))


def _try(state: State, rate: float, purpose: Purpose, fresh: bool = False) -> Trial:
    first = not state.trials
    outcome = yield from _run_trial(TrialRequest(rate, purpose, fresh or first or state.settings.fresh_always))
    state.note(outcome, rate)
    return outcome


def _try_first(state: State, rate: float, purpose: Purpose) -> Trial:
    """The first judged trial of a search, once more where it was undecided: its engine comes from the overload, or is
    new, and a search that believed it would look far below its limit.
    """
    fresh = not state.trials or state.settings.fresh_always
    outcome = yield from _run_trial(TrialRequest(rate, purpose, fresh))
    if outcome.verdict == "undecided":
        outcome = yield from _run_trial(TrialRequest(rate, purpose, state.settings.fresh_always))
    state.note(outcome, rate)
    return outcome


def _run_trial(request: TrialRequest) -> Trial:
    """The outcome of a trial, made once more where it was invalid; `Ended` where it is so again."""
    outcome = yield from _twice_if_invalid(request)
    if _is_inconclusive(request, outcome):
        reason = f"invalid twice at {format_rate(request.rate_per_s)}: {outcome.why or 'no reason was given'}"
        raise SearchEnded(SearchEnd.INVALID_TWICE, reason)
    return outcome


def _twice_if_invalid(request: TrialRequest) -> Trial:
    outcome = yield request
    return (yield request) if _is_inconclusive(request, outcome) else outcome


def _is_inconclusive(request: TrialRequest, outcome: TrialOutcome) -> bool:
    """Invalid; but an overload trial starves the driver on shared cores, and its guess is no worse for that."""
    guessed = request.purpose == "overload" and bool(outcome.drained_per_s)
    return outcome.verdict == "invalid" and not guessed


def _refuted_at_90_percent(state: State, rate: float) -> Generator[TrialRequest, TrialOutcome, float | None]:
    """The lower rate, where it is not sustained: so the one above is not either, whatever its own trials said.

    No trial is made if an earlier one held about there.
    """
    # Confirmed by now: should this trial be invalid, the rate above it stays what it is.
    state.confirmed_per_s = rate
    if state.held_near(0.9 * rate):
        return None
    below = _within(state.settings, 0.9 * rate)
    request = TrialRequest(below, "at 90 %", state.settings.fresh_always)
    outcome = yield request
    if outcome.verdict in ("invalid", "undecided"):
        outcome = yield request
    if outcome.verdict != "not_sustained":
        return None
    state.confirmed_per_s = None
    state.note(outcome, below)
    return below


def _within(settings: Settings, rate_per_s: float) -> float:
    return min(max(rate_per_s, settings.floor_per_s), settings.ceiling_per_s)


def is_narrow(state: State) -> bool:
    """Whether the bracket is as narrow as asked."""
    relative = width(state)
    return relative is not None and relative <= state.settings.tolerance * (1 + SLACK)


def width(state: State) -> float | None:
    """The bracket's width as a share of its lower end; None where an end is not known."""
    if state.low is None or state.high is None:
        return None
    return state.high / state.low - 1


def summary(number: int, request: TrialRequest, outcome: TrialOutcome) -> TrialSummary:
    """One line of the search's table. An overload trial is not judged; it has a verdict only where it is invalid."""
    judged = request.purpose != "overload" or outcome.verdict == "invalid"
    return TrialSummary(
        number=number,
        purpose=request.purpose,
        offered_per_s=outcome.rate_per_s,
        verdict=outcome.verdict if judged else None,
        event_time_p50_us=outcome.event_time_p50_us,
        event_time_p99_us=outcome.event_time_p99_us,
        until_counted_p50_us=outcome.until_counted_p50_us,
        until_counted_p99_us=outcome.until_counted_p99_us,
        backlog_slope_share=outcome.backlog_slope_share,
        why=outcome.why,
        seconds=outcome.seconds,
        folder=outcome.folder,
        engine_start=outcome.engine_start,
    )
