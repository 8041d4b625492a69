"""verdict/trend_checks.py: batches that leave time over decide what the backlog's slope cannot."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.results.codes import Cause, Detail
from streamgauge.verdict.evidence import Evidence, Samples, Work
from streamgauge.verdict.trend_checks import BATCH_SHARE_MAX, may_decide
from streamgauge.verdict.verdict import CHECKS
from tests.unit.verdict.helpers_evidence import evidence

SLIDE_S, INTERVAL_S, TOO_FEW = 4.0, 1.4, 6


def batches(close_s: float, each_s: float = 0.4, n: int = 22) -> Work:
    """Batches of `each_s` every 1.4 s; those in which a window of 4 s ends need `close_s` more."""
    ends_s = INTERVAL_S * np.arange(1, n + 1)
    closing = np.floor(ends_s / SLIDE_S) > np.floor((ends_s - INTERVAL_S) / SLIDE_S)
    noise = np.random.default_rng(3).normal(0, 0.03, n)
    return Work(each_s + close_s * closing + noise, np.full(n, INTERVAL_S), closing.astype(float), SLIDE_S)


def undecided(work: tuple[Work, ...], about: str = "") -> Evidence:
    """A backlog whose slope is undecided, with these batches."""
    time_s = INTERVAL_S * np.arange(22)
    backlog = Samples(time_s, 1.4 + np.resize([0.0, 0.9, 0.1], 22), about)
    return replace(evidence(backlog=backlog), work=work)


def backlog_check(seen: Evidence) -> Any:
    return next(spec.check for spec in CHECKS if spec.name == "backlog_trend")(seen)


def test_time_left_over_decides() -> None:
    check, slope = backlog_check(undecided((batches(1.4),))), backlog_check(undecided(()))
    assert (check.state, check.code, check.ok) == ("ok", Cause.OK, True)
    assert check.remarks[-1].code == Detail.SPARE_TIME
    assert (slope.code, slope.value) == (Cause.TREND_UNDECIDED, check.value)  # the slope stays what it is


@pytest.mark.parametrize(
    "work",
    [
        (batches(3.0, 0.5),), (batches(0.0, 1.45),), (batches(1.4, n=TOO_FEW),),
        (replace(batches(1.4), about="other"),), (batches(1.4), batches(3.0)),
    ],
)  # fmt: skip
def test_too_full_too_few_or_another_querys_batches_decide_nothing(work: tuple[Work, ...]) -> None:
    """The spare time of one query must not acquit another."""
    assert backlog_check(undecided(work)).state == "undecided"


def test_a_proven_growth_is_not_acquitted() -> None:
    time_s = INTERVAL_S * np.arange(22)
    grown = replace(undecided((batches(1.4),)), backlog=(Samples(time_s, 1.4 + 0.1 * time_s),))
    assert backlog_check(grown).state == "failed"


def test_at_a_varying_rate_it_decides_nothing() -> None:
    """A late peak counts little in the mean over a span."""
    assert backlog_check(replace(undecided((batches(1.4),)), steady=False)).state == "undecided"


@pytest.mark.parametrize(("at_end_s", "state"), [(0.3, "ok"), (2.4, "undecided")])
def test_an_engine_that_slowed_down_at_the_end_is_not_acquitted(at_end_s: float, state: str) -> None:
    """Its mean over the span is far below the limit, but the interval is wide."""
    work = batches(0.0, 0.3, n=60)
    slowed = replace(work, busy_s=np.where(np.arange(60) < 50, work.busy_s, at_end_s))
    assert backlog_check(undecided((replace(slowed, slide_s=0.0),))).state == state


@pytest.mark.parametrize("slide_s", [0.0, SLIDE_S])
def test_batches_that_get_fuller_leave_too_little_time(slide_s: float) -> None:
    """From 55 % to 105 %: such a drift makes the interval wide, so the mean of 80 % does not count."""
    drifting = replace(batches(0.0), busy_s=INTERVAL_S * np.linspace(0.55, 1.05, 22), slide_s=slide_s)
    share: Any = drifting.needed_share
    assert share.estimate < 0.85
    assert share.high > BATCH_SHARE_MAX


@pytest.mark.parametrize("slide_s", [0.0, SLIDE_S])
@pytest.mark.parametrize(("per_s", "state"), [(-0.007, "ok"), (0.003, "ok"), (0.007, "undecided")])
def test_slow_growth_that_would_fill_the_time_is_not_acquitted(slide_s: float, per_s: float, state: str) -> None:
    """From 0.59 of the time in the middle of a span of 31 s: two more would end at 0.82, or at 1.13."""
    even = batches(0.7)
    middle_s = np.cumsum(even.covered_s) - even.covered_s.sum() / 2
    work: Any = replace(even, busy_s=even.busy_s + per_s * middle_s * even.covered_s, slide_s=slide_s)
    assert work.needed_share.high < BATCH_SHARE_MAX
    assert backlog_check(undecided((work,))).state == state


def test_windows_closing_in_some_batches_only_do_not_widen_the_interval() -> None:
    """Their cost is fitted; without it, each batch by itself differs from the next."""
    shares: list[Any] = [replace(batches(1.4), slide_s=slide_s).needed_share for slide_s in (SLIDE_S, 0.0)]
    assert shares[0].half_width < shares[1].half_width / 2


@pytest.mark.parametrize(("work", "worth"), [
    ((batches(1.4),), True), ((batches(3.0),), False), ((batches(1.4, n=TOO_FEW),), False), ((), False),
    ((batches(1.4), batches(3.0)), False), ((batches(1.4), batches(1.4, n=TOO_FEW)), False),
])  # fmt: skip
def test_a_longer_span_is_worth_it_where_batches_leave_time_over(work: tuple[Work, ...], worth: bool) -> None:
    """Those of every query. Not where they need all of it, nor where too few batches say how much they need."""
    assert may_decide(undecided(work), 2.0) is worth


def test_a_wide_interval_needs_a_longer_span() -> None:
    """Of batches that vary much: four times the span, and not twice."""
    noisy = replace(batches(0.0, 1.0), busy_s=np.resize([0.4, 1.6, 1.1], 22))
    share: Any = noisy.needed_share
    factor = (share.half_width / (BATCH_SHARE_MAX - share.estimate)) ** 2
    seen = undecided((noisy,))
    assert (may_decide(seen, 1.1 * factor), may_decide(seen, 0.9 * factor)) == (True, False)


def test_the_estimated_share_is_fitted_from_few_batches() -> None:
    """In the long run a window closes every 4 s: not in a third of the batches, nor in half of them."""
    even: Any = batches(1.4, n=40)
    assert even.estimated_share == pytest.approx(even.needed_share.estimate)
    few = replace(even, **{name: getattr(even, name)[2:9] for name in ("busy_s", "covered_s", "closed")})
    assert few.needed_share is None
    assert few.closed.sum() == 3
    assert few.estimated_share == pytest.approx((0.4 + 1.4 * INTERVAL_S / SLIDE_S) / INTERVAL_S, abs=0.03)
    assert few.estimated_share < few.busy_s.sum() / few.covered_s.sum() - 0.03


@pytest.mark.parametrize(
    ("n", "slide_s"), [(3, SLIDE_S), (5, SLIDE_S), (22, 0.0)], ids=["no fit", "one slide", "no windows"]
)
def test_without_a_fit_the_estimated_share_is_the_mean(n: int, slide_s: float) -> None:
    """As many batches as costs fit anything; one that closes windows does not show what that costs."""
    work = replace(batches(1.4, n=n), slide_s=slide_s)
    assert work.estimated_share == pytest.approx(work.busy_s.sum() / work.covered_s.sum())


def test_without_batches_nothing_grows_and_no_share_is_estimated() -> None:
    assert replace(batches(0.0), busy_s=np.zeros(22)).share_after(2.0) == 0
    assert batches(1.4, n=0).estimated_share is None


def test_a_fit_below_zero_is_no_share() -> None:
    """Four batches for three costs: noise may say anything."""
    odd = replace(batches(0.0, n=4), busy_s=np.array([0.1, 1.4, 0.1, 0.1]), closed=np.array([1.0, 0.0, 1.0, 1.0]))
    mean = odd.busy_s.sum() / odd.covered_s.sum()
    negative = replace(odd, slide_s=0.5)
    assert negative._per_second @ np.linalg.pinv(negative._costs) @ negative.busy_s < 0
    assert negative.estimated_share == pytest.approx(mean)
