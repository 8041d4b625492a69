"""The slope of a quantity over the span, with its interval, against a limit.

A trend is ok if its whole interval is at most the limit, failed if all of it is above, else undecided. A quantity that
first falls and then surely grows is also undecided, whatever its straight line says.

Few samples. With 5 to 8 steps, neither a block length nor the shape of the noise can be estimated: a percentile
bootstrap of six points covers 81 % instead of 95 %. The interval is then Student's t with n - 2 degrees of freedom. It
takes closing delays of different windows as independent, which holds if windows are longer than batches. It is wide:
in simulation, a slope of 0 passes in nine of ten trials if closing delays have a standard deviation of 40 ms (7
windows of 4 s) or 150 ms (15 windows). The interval narrows with span^1.5, from which the advice is computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.bootstrap import Interval, slope_interval
from streamgauge.verdict.criteria.check_spec import make_check
from streamgauge.verdict.evidence import Evidence, Samples

TREND_POINTS_MIN = 5
"""Fewer observations than this are no trend: the check is then undecided."""


class SlopeWording(NamedTuple):
    """The code of a slope above its limit, and the words for a positive and a negative slope."""

    code: Cause
    more: str
    less: str

    def by(self, slope: float) -> str:
        # Rounded first, so that a printed 0 counts as positive.
        shown = round(slope, 4) + 0.0
        return f"{self.less if shown < 0 else self.more} by {abs(shown):.2%}"


def check_trend(
    name: str, samples: Samples, limit: float, evidence: Evidence, wording: SlopeWording, of_what: str
) -> Check:
    """The check `name` of the slope of `samples`. `of_what`: what a slope of 1 means, such as "of the rate"."""
    n, of = samples.value.size, f"{samples.about}: " if samples.about else ""
    if n < TREND_POINTS_MIN:
        sentence = f"{of}{n} observations are too few for a trend (minimum {TREND_POINTS_MIN})"
        return make_check(name, "undecided", Cause.TOO_FEW_OBSERVATIONS, None, limit, "s/s", sentence)
    interval = slope_interval(samples.time_s, samples.value, evidence.confidence)
    sentence = (
        f"{of}{wording.by(interval.estimate)} {of_what} ({interval.low:+.2%} to {interval.high:+.2%}, "
        f"{interval.confidence:.1%} interval, {n} observations), limit {limit:.0%}"
    )
    state = _trend_state(interval, limit)
    code = {"ok": Cause.OK, "failed": wording.code}.get(state, Cause.TREND_UNDECIDED)
    if state == "ok" and (later := _later_half(samples, evidence.confidence)).low > limit:
        state, code = "undecided", Cause.TREND_TURNED
        sentence += f"; but in the later half, {wording.by(later.estimate)} (at least {later.low:.2%})"
    return make_check(name, state, code, interval.estimate, limit, "s/s", sentence, interval)


def _later_half(samples: Samples, confidence: float) -> Interval:
    half = samples.value.size // 2
    return slope_interval(samples.time_s[half:], samples.value[half:], confidence)


def _trend_state(interval: Interval, limit: float) -> CheckState:
    if interval.high <= limit:
        return "ok"
    return "failed" if interval.low > limit else "undecided"


def steps(lag_s: Samples) -> Samples:
    """The samples at which the output frontier (time - lag) moved: one per window, all in the same phase.

    A stall produces no step. So the last sample counts too if its lag, minus the largest step so far, exceeds the last
    step's lag: the next step could not have come with less.
    """
    frontier_s = lag_s.time_s - lag_s.value
    jump_s = np.diff(frontier_s)
    moved = np.flatnonzero(jump_s > 1e-6) + 1
    times, lags = lag_s.time_s[moved], lag_s.value[moved]
    if moved.size and moved[-1] != frontier_s.size - 1:
        least_s = lag_s.value[-1] - jump_s.max()
        if least_s > lags[-1]:
            times, lags = np.append(times, lag_s.time_s[-1]), np.append(lags, least_s)
    return Samples(times, lags, lag_s.about)
