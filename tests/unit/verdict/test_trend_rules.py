"""verdict/criteria.py and verdict/verdict.py: the rules that trends, slip and advice are judged by, each from both
sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult
from streamgauge.verdict import verdict
from streamgauge.verdict.criteria import steps
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import LATENCY, check_of, evidence, lag, ramp

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


@pytest.mark.parametrize(
    ("half_width", "said"), [(1.0, "1.2 times"), (8**0.5, "2.0 times"), (8.0, "4.0 times"), (12.0, "so close")]
)
def test_how_much_longer_follows_the_power_of_a_slopes_interval(half_width: float, said: str) -> None:
    """It narrows with the span to the power of 1.5: eight times as wide takes four times as long; five is too long."""
    assert said in verdict._longer(1.0, half_width)


@pytest.mark.parametrize(("until_s", "kept"), [(40.9, 3), (41.1, 4)])
def test_a_stall_counts_from_where_not_even_the_largest_step_would_have_helped(until_s: float, kept: int) -> None:
    """Steps of 4, 16 and 4 s, each 1 s late: at 41 s another one of 16 s would leave more lag than the last did."""
    at_s, ends_s = np.array([5.0, 21.0, 25.0]), np.array([4.0, 20.0, 24.0])
    time_s = np.arange(0.0, until_s + 0.05, 0.1)
    frontier_s = np.concatenate([[0.0], ends_s])[np.searchsorted(at_s, time_s + 1e-9, side="right")]
    assert steps(Samples(time_s, time_s - frontier_s)).value.size == kept


def noisy(slope: float) -> Samples:
    """A second that grows by `slope` a second for a minute, with noise of 0.2 s."""
    time_s = np.arange(60.0)
    return Samples(time_s, 1 + slope * time_s + np.random.default_rng(1).normal(0, 0.2, time_s.size))


@pytest.mark.parametrize(("share", "state"), [(0.98, "failed"), (1.02, "ok")])
def test_latency_that_surely_grew_by_more_than_it_may_drift_fails(share: float, state: str) -> None:
    """What is sure is the lower end of the interval, and not its middle."""
    growing = noisy(0.03)
    sure = check_of(judge(evidence(latency=growing)), "latency_trend")
    assert sure.low is not None
    assert sure.value is not None
    assert 1.1 * sure.low < sure.value
    drift_s = share * sure.low * float(np.ptp(growing.time_s))
    assert check_of(judge(evidence(latency=growing, latency_drift_s=drift_s)), "latency_trend").state == state


@pytest.mark.parametrize(("interval_s", "state"), [(1.2, "ok"), (1.5, "undecided"), (2.2, "undecided"), (3.0, "ok")])
def test_batches_that_seem_to_grow_matter_where_they_end_in_time_and_soon_would_not(
    interval_s: float, state: str
) -> None:
    """Most take 1.4 s, the last 1.7, and after another such minute 2.4; of what most exceed the other trends tell."""
    found = evidence(output_lag_at_commits=noisy(0.012), interval_s=interval_s)
    assert check_of(judge(found), "output_trend").state == state


def of_p50(p50: float | None) -> Latencies:
    return Latencies(event_time_us=LATENCY.model_copy(update={"p50": p50}))


@pytest.mark.parametrize(
    ("p50", "schedule_delay_us", "state"),
    [(1e6, 99_000, "ok"), (1e6, 110_000, "invalid"), (10e6, 190_000, "ok"), (10e6, 250_000, "invalid")],
)
def test_schedule_delay_may_be_the_larger_of_its_two_limits(p50: float, schedule_delay_us: float, state: str) -> None:
    """100 ms, or 2 % of the latency; and not both together."""
    assert (
        check_of(judge(evidence(schedule_delay_us_p99=schedule_delay_us, latencies=of_p50(p50))), "driver").state
        == state
    )


@pytest.mark.parametrize(
    ("p50s", "delay_s", "state"),
    [
        ((10e6, 12e6), 1.0, "ok"),
        ((10e6, 1e6), 10.0, "invalid"),
        ((10e6, None), 1.0, "invalid"),
        ((1e6, None), 10.0, "ok"),
    ],
)
def test_schedule_delay_is_measured_against_the_soonest_sink(
    p50s: tuple[float | None, ...], delay_s: float, state: str
) -> None:
    """A late driver disturbs that one most; where the latency of one is not known, the lag of the commits stands in."""
    sinks = tuple(SinkResult(name=f"sink {n}", rows=10, latency=of_p50(p50)) for n, p50 in enumerate(p50s))
    assert (
        check_of(judge(evidence(schedule_delay_us_p99=150_000, sinks=sinks, output_delay_s=delay_s)), "driver").state
        == state
    )


def test_latency_whose_growth_is_not_sure_is_not_shown_to_fail() -> None:
    """Its number may be above the limit: the sentence says why it holds all the same."""
    found = check_of(judge(evidence(latency=noisy(0.0105))), "latency_trend")
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.01 < found.high
    assert (found.state, found.sentence.endswith("limit 1%: not shown to fail")) == ("ok", True)
