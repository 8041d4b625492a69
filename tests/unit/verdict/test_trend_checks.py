"""verdict/trend_checks.py: slopes with their intervals, and growth that fails a trial or does not."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.text.sentences import sentence
from streamgauge.results.verdict import Remark
from streamgauge.stats.bootstrap import slope_interval
from streamgauge.verdict.collect_evidence import ingested_share
from streamgauge.verdict.evidence import TREND_CONFIDENCE, Samples
from streamgauge.verdict.trend_checks import steps
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import (
    RATE,
    SECONDS,
    check_of,
    evidence,
    samples,
    staircase,
)


def falling_then_growing(points: int, growth: float) -> Samples:
    """A lag every 4 s that falls by 0.05 s/s in its first half and grows by `growth` in the second."""
    time_s = 4.0 * np.arange(points)
    turn_s = time_s[points // 2]
    return Samples(time_s, 5 + np.where(time_s < turn_s, -0.05 * (time_s - turn_s), growth * (time_s - turn_s)))


@pytest.mark.parametrize("points", [12, 15])
@pytest.mark.parametrize(("growth", "state"), [(0.02, "undecided"), (0.0, "ok")])
def test_an_output_that_first_falls_and_then_surely_grows_is_undecided(points: int, growth: float, state: str) -> None:
    """Its straight line falls, whatever the later half says."""
    check = check_of(judge(evidence(output_lag=falling_then_growing(points, growth))), "output_trend")
    assert (check.state, (check.high or 0) <= (check.limit or 0)) == (state, True)
    assert (check.remarks[-1].code == Detail.RESULTS_FALL_BEHIND_LATER) is (state == "undecided")


def test_a_later_half_that_may_grow_by_chance_turns_no_trend() -> None:
    """It grows by more than the limit, and its interval reaches far below 0."""
    samples = falling_then_growing(12, 0.02)
    samples = replace(samples, value=samples.value + np.where(np.arange(12) % 2, 0.1, -0.1))
    later = slope_interval(samples.time_s[6:], samples.value[6:], TREND_CONFIDENCE)
    check = check_of(judge(evidence(output_lag=samples)), "output_trend")
    assert later.low < 0 < (check.limit or 0) < later.estimate
    assert check.state == "ok"


@pytest.mark.parametrize("slope", [0.0, -0.00001])
def test_what_is_shown_as_0_has_no_sign(slope: float) -> None:
    """Nothing grows by less than 0."""
    facts = {"about": "", "slope": slope, "low": 0, "high": 0, "confidence": 0.95, "n": 9, "limit": 0.01}
    assert sentence(Remark(Cause.BACKLOG_GROWS, facts)).startswith("the backlog grows by 0.00% of the rate")


@pytest.mark.parametrize(("until_s", "count"), [(40.9, 3), (41.1, 4)])
def test_a_stall_counts_from_where_not_even_the_largest_step_would_have_helped(until_s: float, count: int) -> None:
    """Steps of 4, 16 and 4 s, each 1 s late: at 41 s another one of 16 s would leave more lag than the last did."""
    at_s, ends_s = np.array([5.0, 21.0, 25.0]), np.array([4.0, 20.0, 24.0])
    time_s = np.arange(0.0, until_s + 0.05, 0.1)
    frontier_s = np.concatenate([[0.0], ends_s])[np.searchsorted(at_s, time_s + 1e-9, side="right")]
    assert steps(Samples(time_s, time_s - frontier_s)).value.size == count


def test_a_staircase_is_no_trend_unless_it_ends() -> None:
    """A hundred samples a second do not make more evidence out of seven windows. A span that ends in the middle of a
    step is judged like one that ends after it. A frontier that stands still for 20 s leaves no steps behind, and is
    seen all the same.
    """
    assert steps(staircase(0.0, 7, 0.02)).value.size == 7
    for windows, until_s, state in ((12, 51.9, "ok"), (10, 62.0, "undecided")):
        lags = staircase(0.0, windows, 0.02, until_s=until_s)
        assert check_of(judge(evidence(output_lag=lags)), "output_trend").state == state


def test_both_phases_mixed_are_no_trend() -> None:
    """Samples of both phases make a saw-tooth of half a second's height: the interval widens around 0."""
    check = check_of(judge(evidence(backlog=Samples(SECONDS, 1 + 0.5 * (SECONDS % 2)))), "backlog_trend")
    assert check.state == "ok"
    assert (check.low or 0) < -0.002 < 0.002 < (check.high or 0)


def noisy(slope: float) -> Samples:
    """A second that grows by `slope` a second for a minute, with noise of 0.2 s."""
    time_s = np.arange(60.0)
    return Samples(time_s, 1 + slope * time_s + np.random.default_rng(1).normal(0, 0.2, time_s.size))


@pytest.mark.parametrize(("share", "state"), [(0.98, "failed"), (1.02, "ok")])
def test_latency_that_surely_grew_by_more_than_it_may_drift_fails(share: float, state: str) -> None:
    """What is sure is the lower end of the interval, and not its middle."""
    growing = noisy(0.03)
    sure: Any = check_of(judge(evidence(latency=growing)), "latency_trend")
    assert 1.1 * sure.low < sure.value
    drift_s = share * sure.low * float(np.ptp(growing.time_s))
    assert check_of(judge(evidence(latency=growing, latency_drift_s=drift_s)), "latency_trend").state == state


@pytest.mark.parametrize(("interval_s", "state"), [(1.2, "ok"), (1.5, "undecided"), (2.2, "undecided"), (3.0, "ok")])
def test_batches_that_seem_to_grow_matter_where_they_end_in_time_and_soon_would_not(
    interval_s: float, state: str
) -> None:
    """Most take 1.4 s, the last 1.7, and after another such minute 2.4; of what most exceed the other trends tell."""
    verdict = judge(evidence(output_lag_at_commits=noisy(0.012), interval_s=interval_s))
    assert check_of(verdict, "output_trend").state == state


def test_latency_whose_growth_is_not_sure_is_not_shown_to_fail() -> None:
    """Its number may be above the limit: the sentence says why it holds all the same."""
    check: Any = check_of(judge(evidence(latency=noisy(0.0105))), "latency_trend")
    assert check.low < 0.01 < check.high
    assert (check.state, check.remarks[-1].code) == ("ok", Detail.NOT_SHOWN_TO_FAIL)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"latency": (), "steady": False}, Cause.RATE_VARIES),
        ({"latency": ()}, Cause.NO_LATENCY),
        ({"latency": (samples([], []),)}, Cause.NO_LATENCY),
    ],
)
def test_a_latency_trend_without_latencies_is_not_judged(changes: dict[str, Any], code: Cause) -> None:
    """It is not called ok, and decides nothing, because only proven growth would count."""
    verdict = judge(evidence(**changes))
    check = check_of(verdict, "latency_trend")
    assert (check.state, check.ok, check.code, check.value) == ("not_judged", None, code, None)
    assert (verdict.value, verdict.cause) == ("sustained", Cause.ALL_CHECKS_HOLD)


CUT_BY_MEMORY = {"bound_cut_by_memory": True, "bound_s": 7.6}
LATE_GENERATORS = {"offered_per_s": np.full(60, RATE / 2), "schedule_delay_us_p99": 5e6}


@pytest.mark.parametrize("beside", [CUT_BY_MEMORY, LATE_GENERATORS, {"background_share": 0.85}, {"batches_ever": 0}])
def test_a_system_that_takes_a_hundredth_of_the_load_is_not_sustained(beside: dict[str, Any]) -> None:
    """Neither a small queue, nor late generators, nor what others used of the machine make a hundred of one."""
    verdict = judge(evidence(ingested_share=0.01, backlog=(samples([], []),), **beside))
    assert (verdict.value, verdict.decided_by) == ("not_sustained", ("backlog_trend",))
    assert verdict.deciding[0].remarks[0].code == Detail.HARDLY_READ


@pytest.mark.parametrize(
    ("beside", "value"),
    [
        ({"ingested_share": 0.25, "bound_cut_by_memory": True, "bound_s": 7.6}, "invalid"),
        ({"ingested_share": 0.1, "bound_cut_by_memory": True, "bound_s": 7.6, "background_share": 0.85}, "invalid"),
        ({"ingested_share": 0.01, "driver_reason": "generator 0 ended"}, "invalid"),
        ({"ingested_share": 0.01, "delivery_share": 0.6}, "invalid"),
        ({"ingested_share": 0.01, "interrupted": True}, "interrupted"),
    ],
)
def test_a_system_that_may_have_been_kept_from_more_is_not_called_far_behind(
    beside: dict[str, Any], value: str
) -> None:
    """It took a fifth or more of what was left of the machine, or the driver failed, or was what it waited for."""
    assert judge(evidence(**beside)).value == value


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.01),
        ({"measured_from_s": 50}, 1.0),
        ({"measured_from_s": 50, "earlier_trials": True}, 0.01),
        ({"interval_s": 15.0}, 1.0),
        ({"offered": 0}, 1.0),
    ],
)
def test_what_a_system_took_is_known_once_it_had_time_to_take_it(changes: dict[str, Any], share: float) -> None:
    """Forty seconds: not of a fresh engine in its warm-up, nor of one whose batches begin 15 s apart."""
    known = {"measured_from_s": 5, "earlier_trials": False, "interval_s": 1.0, "offered": 1000} | changes
    running = SimpleNamespace(offered_events=known["offered"], taken_events=lambda: known["offered"] // 100)
    trial_log = SimpleNamespace(running=running)
    spans = SimpleNamespace(start_us=0, measured_from_us=known["measured_from_s"] * US)
    done: Any = SimpleNamespace(
        trial_log=trial_log, spans=spans, earlier_trials=known["earlier_trials"], offered_until=lambda: 40 * US
    )
    assert ingested_share(done, known["interval_s"]) == share
