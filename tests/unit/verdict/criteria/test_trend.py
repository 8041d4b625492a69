"""verdict/criteria/trend.py: slopes with their intervals, and the steps of a staircase."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.verdict.criteria.trend import steps
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import (
    SECONDS,
    check_of,
    evidence,
    lag,
    ramp,
    staircase,
)

pytestmark = pytest.mark.usefixtures("quick_draws")


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
    assert ("in the later half, results fall behind by 2.00%" in check.sentence) is (state == "undecided")


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"backlog": ramp(-0.0033)}, "backlog_trend", "the backlog shrinks by 0.3"),
        ({"backlog": ramp(0.05)}, "backlog_trend", "the backlog grows by 4.98% of the rate (+4.90% to "),
        ({"backlog": ramp(0.0, noise_s=0.0)}, "backlog_trend", "the backlog grows by 0.00% of the rate"),
        ({"backlog": ramp(-0.00001, noise_s=0.0)}, "backlog_trend", "the backlog grows by 0.00% of the rate"),
        ({"output_lag": lag(-0.03)}, "output_trend", "results catch up by 3."),
        ({"output_lag": lag(0.03)}, "output_trend", "results fall behind by 3."),
        ({"latency": (ramp(-0.02),)}, "latency_trend", "the latency falls by 2."),
    ],
)
def test_a_slope_below_0_is_not_called_growth(changes: dict[str, Any], name: str, said: str) -> None:
    """Nothing grows by less than 0, and what is shown as 0 has no sign."""
    assert check_of(judge(evidence(**changes)), name).sentence.startswith(said)


@pytest.mark.parametrize(("until_s", "kept"), [(40.9, 3), (41.1, 4)])
def test_a_stall_counts_from_where_not_even_the_largest_step_would_have_helped(until_s: float, kept: int) -> None:
    """Steps of 4, 16 and 4 s, each 1 s late: at 41 s another one of 16 s would leave more lag than the last did."""
    at_s, ends_s = np.array([5.0, 21.0, 25.0]), np.array([4.0, 20.0, 24.0])
    time_s = np.arange(0.0, until_s + 0.05, 0.1)
    frontier_s = np.concatenate([[0.0], ends_s])[np.searchsorted(at_s, time_s + 1e-9, side="right")]
    assert steps(Samples(time_s, time_s - frontier_s)).value.size == kept


def test_both_phases_mixed_are_no_trend() -> None:
    """Samples of both phases make a saw-tooth of half a second's height: the interval widens around 0."""
    mixed = Samples(SECONDS, 1 + 0.5 * (SECONDS % 2))
    check = check_of(judge(evidence(backlog=mixed)), "backlog_trend")
    assert check.state == "ok"
    assert (check.low or 0) < -0.002 < 0.002 < (check.high or 0)


def test_a_staircase_has_one_observation_a_window() -> None:
    """A hundred samples a second do not make more evidence out of seven windows."""
    assert steps(staircase(0.0, 7, 0.02)).value.size == 7


def test_the_phase_of_a_staircase_is_no_trend() -> None:
    """A span that ends in the middle of a step is judged like one that ends after it."""
    lags = staircase(0.0, 12, 0.02, until_s=51.9)
    assert check_of(judge(evidence(output_lag=lags)), "output_trend").ok


def test_an_engine_that_stops_giving_results_does_not_pass() -> None:
    """A frontier that stands still for 20 s leaves no steps behind, and is seen all the same."""
    stalled = staircase(0.0, 10, 0.02, until_s=62.0)
    assert check_of(judge(evidence(output_lag=stalled)), "output_trend").state == "undecided"
