"""The search strategy: chooses the next trial from the outcomes so far (after Karimov et al. 2018, definition 5).

Pure: no engine, no clock, no chance. The steps, in order:

 1. One overload trial. If it predicts the rate at which batches are full, that is the first guess (a little less if
    the flow keeps rows until windows end). An engine becomes faster for minutes, so its limit may be higher by then,
    and the guess serves as the trial at 90 %. Else the guess is the drain rate less a tenth (two sevenths), because a
    drain rate overestimates.
 2. Both ends of the bracket are tested: from the guess upwards or downwards in growing steps, until one rate holds and
    a higher one does not. If the limit is predicted, this begins on a fresh engine (not in a quick search).
 3. Bisection until the bracket is as narrow as requested. The next rate is where the engine is expected to be full, by
    its busy share at both ends. Without such a prediction it is the geometric middle.
 4. The rate that holds is confirmed on a fresh engine: at 90 % first, unless a trial of the bracket held at about 90 %,
    so that the engine has worked for longer; then at the rate. If the bracket began on a fresh engine that was never
    offered far more than the rate, the trial of the bracket counts, if 90 % holds too (or the rate a second time). If
    one of the two fails, the search steps down from the rate that failed, at least a width, and confirms again. It
    starts another engine only if the one before was offered far more than the next rate.

*Holds* means that the verdict is sustained. Two other ends of a trial count as "does not hold" without a proof, because
the search must go on and only proof may raise the answer:

- The trial stays undecided after its extensions. It is repeated once if its span began while the backlog of before was
  draining. So is one of the bracket if batches left so much time over that the limit is far, and one at 90 %.
- The trial is invalid because an engine near its limit left the driver too little CPU. A repetition would end the same
  way. `believed` says when this is not believed.

Neither verdict is changed, and the result says so if the bracket's upper end rests on it.

Any other invalid trial (something disturbed the driver or took the system's CPUs) is repeated once at the same rate. If
it is invalid again, there is no upper end, and the rate that held is confirmed. Exceptions:

- A rate far above what held is not repeated: a lower one is tried at once.
- A first guess of the user's own is lowered.
- The guess of an overload trial is not repeated: the next is a width lower, or what the engine drained meanwhile,
  because that guess is more often too high than disturbed.
- At 90 %, two invalid trials end nothing: they prove nothing against the rate above, which must then hold once more.
"""

import math
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace

from streamgauge.results.codes import SearchEnd
from streamgauge.studies.capacity.constants import (
    CONFIRM_STEP_MAX,
    FAILED_OVERESTIMATE_FACTOR,
    FAR_GROWTH,
    FAR_STEP,
    GROWTH_DOWN,
    GROWTH_UNPROVEN,
    GROWTH_UP,
    GUESSES_MAX,
    PROMISED_MAX,
    SHORT_STEPS_MAX,
    SLACK,
    STEP_MAX,
    WIDE,
)  # fmt: skip
from streamgauge.studies.capacity.search_state import (
    Purpose,
    SearchEnded,
    Settings,
    State,
    TrialOutcome,
    TrialRequest,
)

TrialRequests = Generator[TrialRequest, TrialOutcome, None]
Trial = Generator[TrialRequest, TrialOutcome, TrialOutcome]


def steps(state: State) -> TrialRequests:
    """Runs steps 1 to 4 of the module's docstring."""
    guess = yield from _first_guess(state)
    stopped: SearchEnded | None = None
    try:
        yield from _bracket(state, guess)
        yield from _bisect(state)
    except SearchEnded as reason:
        stopped = reason
    if state.low is None:
        raise stopped or SearchEnded(SearchEnd.NO_RATE_HELD, rate=state.settings.floor_per_s, confirmed=False)
    if not state.settings.quick:
        # A rate that held is a lower bound, and can be confirmed even without an upper one.
        yield from _confirm(state)
    if stopped is not None:
        raise stopped


def _first_guess(state: State) -> Generator[TrialRequest, TrialOutcome, float]:
    settings = state.settings
    if settings.start_per_s is not None:
        return _within(settings, settings.start_per_s)
    offered = _within(settings, settings.ceiling_per_s)
    outcome = yield from _run_trial(state, TrialRequest(offered, "overload", fresh=True))
    # An engine that keeps up was not overloaded: the offered rate is then the guess, and no overestimate.
    if outcome.holds:
        return offered
    if not outcome.drained_per_s:
        raise SearchEnded(SearchEnd.NOTHING_DRAINED, why=outcome.why or outcome.verdict)
    near = settings.near_limit
    if outcome.limit_per_s is not None:
        state.fresh_bracket = not settings.quick
        return _within(settings, near.rate_at(settings.full, outcome.limit_per_s, near.full))
    factor = near.drain_factor_keeping_rows if settings.keeps_rows else near.drain_factor
    return _within(settings, outcome.drained_per_s / factor)


def _bracket(state: State, guess: float) -> TrialRequests:
    """Tests the guess, then moves away in growing steps until one rate holds and a higher one does not.

    A far too high rate starves the driver on shared cores, which is no proof. So the search asks for less then: half
    way down to what held, or half of a first guess. It asks for no rate again at which the driver failed.
    """
    # A first step of one width: if it completes the bracket, that is narrow enough.
    first = 1 + state.settings.tolerance
    rate, step = guess, first
    failed_per_s, failure, guesses = math.inf, SearchEnded(SearchEnd.INVALID_TWICE), 0
    from_overload, fresh = bool(state.trials), state.fresh_bracket
    while True:
        guessed, starts, from_overload, fresh = from_overload, fresh, False, False
        try:
            far = state.low is not None and rate > WIDE * state.low
            outcome = yield from _try(state, rate, "bracket", starts, repeat_invalid=not (guessed or far))
        except SearchEnded as invalid:
            lower = rate / first
            if not guessed:
                failed_per_s, failure = rate, invalid
                guesses += state.low is None
                if guesses > GUESSES_MAX:
                    raise
                lower = _half_way(rate / PROMISED_MAX if state.low is None else state.low, first, rate, invalid)
            if state.low is None and (drained_per_s := state.trials[-1][1].drained_per_s):
                lower = max(rate / 2, _rate_below(rate, first, drained_per_s))
            rate, step = _within(state.settings, lower), first
            continue
        if state.low is not None and state.high is not None:
            return
        if outcome.holds:
            factor = _factor_up(state, step, outcome.busy_share)
            following = _within(state.settings, rate * factor)
            if following >= failed_per_s:
                following = _half_way(rate, first, failed_per_s, failure)
        else:
            lower = _rate_below(rate, step, outcome.drained_per_s)
            following = _within(state.settings, min(lower, _decidable_rate(state.settings, outcome)))
        if following == rate:
            return
        rate, step = following, _longer_step(step, outcome)


def _longer_step(step: float, outcome: TrialOutcome) -> float:
    proven = FAR_GROWTH if step > FAR_STEP else GROWTH_UP if outcome.holds else GROWTH_DOWN
    growth = GROWTH_UNPROVEN if outcome.unproven else proven
    return min(step**growth, STEP_MAX)


def _half_way(low: float, near: float, failed_per_s: float, failure: SearchEnded) -> float:
    """Half way up to a rate at which the driver failed, but not within `near` of it. Raises the failure then."""
    if failed_per_s <= low * near:
        raise failure
    return math.sqrt(low * failed_per_s)


def _factor_up(state: State, step: float, busy_share: float | None) -> float:
    """The factor to the next higher rate: to where batches would be full, at least a width.

    A longer one after `SHORT_STEPS_MAX` short ones that all held.
    """
    width = 1 + state.settings.tolerance
    promised = state.settings.near_limit.rate_at(state.settings.over, 1.0, busy_share) if busy_share else None
    factor = _factor_promised(step, width, promised, _had_time_over(state))
    state.short_steps = state.short_steps + 1 if factor <= max(width, FAR_STEP) else 0
    return max(factor, min(step, WIDE)) if state.short_steps > SHORT_STEPS_MAX else factor


def _had_time_over(state: State) -> bool:
    """Whether batches left time over in any trial, the overload trial included.

    If they fill it in another, the engine is near its limit.
    """
    return any((outcome.busy_share or math.inf) < state.settings.near_limit.full for _, outcome in state.trials)


def _factor_promised(step: float, width: float, promised: float | None, had_time_over: bool) -> float:
    """The factor `promised` by a busy share, within bounds; a step without one.

    Batches that stay full over many steps fill their interval at any rate, and predict nothing, unless they left time
    over at another rate.
    """
    if promised is None:
        return step
    if promised > WIDE:
        return max(step, min(promised, PROMISED_MAX))
    if promised > 1:
        # A failure one width above closes the bracket; one a little higher would need another trial.
        return width if promised <= width**2 else promised
    if had_time_over:
        return width
    return step if step > FAR_STEP else min(step, width**2)


def _rate_below(rate: float, step: float, drained_per_s: float | None) -> float:
    """The next rate down: a step, or more if the trial's drain rate was far below its rate."""
    return min(rate / step, drained_per_s / FAILED_OVERESTIMATE_FACTOR if drained_per_s else math.inf)


def _decidable_rate(settings: Settings, outcome: TrialOutcome) -> float:
    """The rate at which batches would leave enough time over to decide; infinite if unknown, or if it was decided."""
    if not outcome.unproven or not outcome.busy_share:
        return math.inf
    near = settings.near_limit
    return near.rate_at(near.sure, outcome.rate_per_s, outcome.busy_share)


def _bisect(state: State) -> TrialRequests:
    while state.low is not None and state.high is not None and not state.is_narrow:
        yield from _try(state, _rate_between(state, state.low, state.high), "bisect")


def _rate_between(state: State, low: float, high: float) -> float:
    """The next rate within the bracket: where the engine is expected to be full, else the geometric middle.

    In a wide bracket it is near the drain rate of a failed trial. It keeps a width of distance from both ends, and a
    rate nearly that close to an end moves exactly there, because it may be the last one. For the same reason, it is a
    width below the upper end in a bracket of up to three widths.
    """
    margin = 1 + state.settings.tolerance
    if high / low > WIDE and low * margin <= (near := _near_drain_rate(state, low, high)) <= high / margin:
        return near
    full = state.expected_limit(state.settings.near_limit, state.settings.full)
    lowest, highest, near = low * margin, high / margin, math.sqrt(margin)
    if lowest >= highest:
        return math.sqrt(low * high)
    if full is None or full <= low:
        return highest if high / low <= margin**3 else math.sqrt(low * high)
    if full < lowest * near:
        return lowest
    return highest if full > highest / near else full


def _near_drain_rate(state: State, low: float, high: float) -> float:
    """The next of growing steps away from a rate below the least drain rate of a failed trial; 0 if unknown."""
    if state.drained_per_s is None:
        return 0.0
    below, margin = state.drained_per_s / FAILED_OVERESTIMATE_FACTOR, 1 + state.settings.tolerance
    unheard = below >= low * margin
    if unheard and state.trials[-1][1].holds:
        return below
    state.step_near_drained = min((state.step_near_drained or math.sqrt(margin)) ** 2, STEP_MAX)
    return min(high / state.step_near_drained, below) if unheard else low * state.step_near_drained


def _confirm(state: State) -> TrialRequests:
    """Confirms the rate that holds, and at 90 %; steps down from a rate that failed, until both hold.

    If nothing is decided at 90 %, the rate must hold twice. An engine serves one confirmation after the other, until it
    has been offered far more than the next rate. `held`: whether the rate held on the engine that confirms.
    """
    rate = state.low
    assert rate is not None
    held = state.fresh_bracket and state.held_undisturbed(rate)
    fresh = not held
    while True:
        if (fresh or held) and not state.tried_at_90_percent(rate):
            outcome = yield from _at_90_percent(state, rate, fresh)
            fresh = False
            if outcome.verdict == "not_sustained" or (outcome.unproven and not held):
                state.note(outcome, outcome.rate_per_s)
                rate, held = _next_to_confirm(state.settings, outcome), False
                continue
        if not (held and state.held_at_90_percent(rate)):
            outcome = yield from _try(state, rate, "confirm", fresh or state.offered_far_above(rate))
            rate, held, fresh = outcome.rate_per_s, outcome.holds, False
            if not held:
                rate = _next_to_confirm(state.settings, outcome)
                continue
        if state.held_at_90_percent(rate) or (state.times_held(rate) > 1 and state.tried_at_90_percent(rate)):
            state.confirmed_per_s = rate
            return


def _at_90_percent(state: State, rate: float, fresh: bool) -> Trial:
    """The trial at 90 % of a rate, repeated once if undecided, or invalid without being `starved`."""
    always = state.settings.fresh_always
    request = TrialRequest(state.rate_at_90_percent(rate), "at 90 %", fresh or always)
    outcome = yield request
    if outcome.verdict == "undecided":
        outcome = yield replace(request, fresh=always)
    elif _is_inconclusive(request, outcome):
        outcome = yield request
    return outcome


def _next_to_confirm(settings: Settings, outcome: TrialOutcome) -> float:
    """The next rate to confirm, after one that did not hold: at least a width lower.

    If that was not proven, down to where batches leave enough time over to decide.
    """
    rate = outcome.rate_per_s
    if rate <= settings.floor_per_s * (1 + SLACK):
        raise SearchEnded(SearchEnd.NO_RATE_HELD, rate=settings.floor_per_s, confirmed=True)
    lower = rate / (1 + settings.tolerance)
    if outcome.unproven and outcome.busy_share:
        lower = max(
            min(lower, settings.near_limit.rate_at(settings.full, rate, outcome.busy_share)), rate / CONFIRM_STEP_MAX
        )
    return _within(settings, lower)


def _try(state: State, rate: float, purpose: Purpose, fresh: bool = False, repeat_invalid: bool = True) -> Trial:
    """A trial, repeated once if it is undecided though the engine is not near its limit."""
    rate, first = state.tried_before(rate), not state.trials
    request = TrialRequest(rate, purpose, fresh or first or state.settings.fresh_always)
    outcome = yield from _run_trial(state, request, repeat_invalid)
    # Not a confirmation, because an engine becomes faster for minutes: the second time it is no fresh one.
    near = state.settings.near_limit
    far = purpose in ("bracket", "bisect") and (outcome.busy_share or near.full) < near.sure
    if outcome.verdict == "undecided" and (outcome.began_behind or far):
        with suppress(SearchEnded):  # If the second is invalid, the first counts.
            outcome = yield from _run_trial(state, TrialRequest(rate, purpose, state.settings.fresh_always))
    state.note(outcome, rate)
    return outcome


def _run_trial(state: State, request: TrialRequest, repeat_invalid: bool = True) -> Trial:
    """The outcome of a trial, repeated once if invalid; `SearchEnded` if it is invalid again."""
    outcome, twice = (yield request), False
    if repeat_invalid and _is_inconclusive(request, outcome):
        outcome, twice = (yield request), True
    if _is_inconclusive(request, outcome):
        raise SearchEnded(
            # Nothing but the driver's failure makes an overload trial invalid.
            SearchEnd.DRIVER_FAILED if request.purpose == "overload" else SearchEnd.INVALID_TWICE,
            twice=twice, rate=request.rate_per_s, why=outcome.why,
        )  # fmt: skip
    return outcome


def believed(state: State, outcome: TrialOutcome) -> TrialOutcome:
    """The outcome, not `starved` if the engine may be far from its limit and the driver at fault.

    So it is where batches are full at any rate, and where no rate held after some that starved the driver.
    """
    unknown = outcome.busy_share is not None and not _had_time_over(state)
    hopeless = state.low is None and sum(one.starved for _, one in state.trials) >= GUESSES_MAX
    return replace(outcome, starved=False) if outcome.starved and (unknown or hopeless) else outcome


def _is_inconclusive(request: TrialRequest, outcome: TrialOutcome) -> bool:
    """Whether a trial is invalid and says nothing, so that it is repeated.

    Two say something: an overload trial, which may starve the driver on shared cores without harm to its guess, and a
    trial whose driver was starved by an engine near its limit, and would be again.
    """
    guessed = request.purpose == "overload" and bool(outcome.drained_per_s)
    return outcome.verdict == "invalid" and not guessed and not outcome.starved


def _within(settings: Settings, rate_per_s: float) -> float:
    return min(max(rate_per_s, settings.floor_per_s), settings.ceiling_per_s)
