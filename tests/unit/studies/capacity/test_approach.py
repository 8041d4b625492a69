"""The overload trial of an engine that works in batches: approaches predict its limit."""

from typing import Any

import pytest

from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import FRESH_WARMUP_S
from streamgauge.studies.capacity import saturation_probe
from streamgauge.studies.capacity.constants import (
    APPROACH_FACTOR,
    BUSY_SHARE_MIN,
    FIRST_RATE_PER_S,
    FIRST_S,
    LAST_S,
    PACE_S,
    STEP_S,
)
from tests.unit.studies.capacity.helpers_saturation_probe import Stairs, drained_at


class BusyStairs(Stairs):
    """Stands for a test bed with an engine whose batches are full at the capacity."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capacity_per_s: float, **last: Any) -> None:
        super().__init__(monkeypatch, capacity_per_s, **last)
        self.interval_s = 1.4
        self.shares: dict[int, float | None] = {}
        """Shares of steps, by their number, that differ."""
        monkeypatch.setattr(saturation_probe, "busy_share", self.busy_share)

    def busy_share(self, resolved: Any, record: TrialRecord) -> float | None:
        return self.shares.get(len(self.steps), share_of(self.steps[-1][0] / self.capacity_per_s))


def share_of(load: float) -> float:
    """The busy share of an engine at a share of the rate at which its batches are full."""
    return NEAR_LIMIT.fixed + (NEAR_LIMIT.full - NEAR_LIMIT.fixed) * load


def test_busy_batches_lead_to_an_approach_that_predicts_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 6.4 M/s not to 51 M/s: below the limit, until the engine is warm, each after a drained backlog."""
    climbed = BusyStairs(monkeypatch, 1e7)
    result = climbed.climb(180e6)
    assert climbed.steps[:3] == [(1e5, FIRST_S), (8e5, STEP_S), (6.4e6, STEP_S)]
    assert climbed.steps[3:] == [
        (pytest.approx(APPROACH_FACTOR * 1e7), FRESH_WARMUP_S - FIRST_S - 2 * STEP_S),
        (pytest.approx(saturation_probe.APPROACH_FACTOR_WARM * 1e7), LAST_S),
    ]
    assert (climbed.drains, set(climbed.paces), result.holds) == (2, {PACE_S}, False)
    assert (result.limit_per_s, result.drained_per_s) == pytest.approx((1e7, 6.4e6))
    assert result.why == "its batches would be full at 10 M/s: looking around that"


def test_an_engine_that_falls_behind_is_approached_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not overloaded for longer: batches are then larger than any trial's, and none may end in the step."""
    climbed = BusyStairs(monkeypatch, 6e5)
    climbed.shares = {2: None}
    assert climbed.climb(180e6).limit_per_s == pytest.approx(6e5)
    assert climbed.rates == pytest.approx(
        [1e5, 8e5, APPROACH_FACTOR * 6e5, saturation_probe.APPROACH_FACTOR_WARM * 6e5]
    )


@pytest.mark.parametrize(
    ("loads", "rates", "limit"),
    [
        ([1.1, 0.8], [1.0, APPROACH_FACTOR], APPROACH_FACTOR / 0.8),  # too full: three quarters of what was drained
        ([None, 0.8], [1.0, APPROACH_FACTOR], APPROACH_FACTOR / 0.8),  # one batch lasted all the time
        (
            [0.8, 0.7],
            [1.0, saturation_probe.APPROACH_FACTOR_WARM / 0.8],
            saturation_probe.APPROACH_FACTOR_WARM / 0.8 / 0.7,
        ),  # the first warms the engine
        (
            [0.8, 0.5, 0.6],
            [1.0, saturation_probe.APPROACH_FACTOR_WARM / 0.8, saturation_probe.APPROACH_FACTOR_WARM**2 / 0.4],
            saturation_probe.APPROACH_FACTOR_WARM**2 / 0.4 / 0.6,
        ),  # the limit was far away
        ([0.1, 0.2, 0.3], [1.0, 3.0, 9.0], 9.0 / 0.3),  # at most three times as much, at most three times
        ([1.1, 1.1, 1.1], [1.0, APPROACH_FACTOR, APPROACH_FACTOR**2], None),
    ],
)
def test_an_approach_is_repeated_where_batches_are_too_full_or_too_idle(
    monkeypatch: pytest.MonkeyPatch, loads: list[float | None], rates: list[float], limit: float | None
) -> None:
    """Without a prediction the guess is what was drained before."""
    climbed = BusyStairs(monkeypatch, 1e8)
    climbed.shares = {1: None, 2: share_of(APPROACH_FACTOR)}
    climbed.shares |= {step: load and share_of(load) for step, load in enumerate(loads, start=3)}
    result = climbed.climb(180e6)
    assert [rate / 8e5 for rate in climbed.rates[2:]] == pytest.approx(rates)
    assert result.limit_per_s == (limit and pytest.approx(limit * 8e5))
    assert result.drained_per_s == pytest.approx(8e5)


@pytest.mark.parametrize(
    ("shares", "approached"),
    [
        (
            {1: 2.0, 2: BUSY_SHARE_MIN - 0.01, 3: 0.5},
            NEAR_LIMIT.rate_at(NEAR_LIMIT.full, 6.4e6, 0.5),
        ),  # cold, then idle, then neither
        ({1: 0.5, 2: 1.2}, 8e5),  # a backlog keeps batches full: no more than what was drained
    ],
)
def test_cold_and_idle_batches_predict_no_limit(
    monkeypatch: pytest.MonkeyPatch, shares: dict[int, float | None], approached: float
) -> None:
    """In the first step a fresh engine is slow, whatever its batches say; below a share, the limit is far away."""
    climbed = BusyStairs(monkeypatch, 1e8)
    climbed.shares = shares
    climbed.climb(180e6)
    assert climbed.steps[len(shares)][0] == pytest.approx(APPROACH_FACTOR * approached)


@pytest.mark.parametrize(
    ("interval_s", "to_the_end", "drained_per_s"), [(0.0, False, 2e6), (1.4, False, 8e5), (1.4, True, 2e6)]
)
def test_batches_without_an_interval_predict_nothing(
    monkeypatch: pytest.MonkeyPatch, interval_s: float, to_the_end: bool, drained_per_s: float
) -> None:
    """They follow each other, so they fill the time at any rate. A comparison measures the drain rate itself."""
    climbed = BusyStairs(monkeypatch, 2e6)
    climbed.interval_s = interval_s
    result = climbed.climb(50e6, to_the_end)
    assert (result.limit_per_s is None) is (drained_per_s == 2e6)
    assert result.drained_per_s == pytest.approx(drained_per_s)


def test_an_engine_that_keeps_up_to_the_ceiling_is_not_approached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit lies above all that can be offered."""
    climbed = BusyStairs(monkeypatch, 1e7)
    result = climbed.climb(7e6)
    assert climbed.rates == [1e5, 8e5, 6.4e6, 7e6]
    assert (result.holds, result.limit_per_s) == (True, None)


def test_the_predicted_limit_is_bounded_by_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit beyond it would be offered until the engine is out of memory."""
    climbed = BusyStairs(monkeypatch, 6e6)
    climbed.heap_per_s = 4e6
    climbed.shares = {2: 0.3, 3: 0.4, 4: 0.45, 5: 0.45}
    result = climbed.climb(50e6)
    assert climbed.rates == [1e5, 8e5, pytest.approx(3 * 8e5), 4e6]
    assert (result.limit_per_s, "engine's heap" in result.why, result.holds) == (4e6, True, False)


def test_what_approaches_drained_is_the_guess_if_they_predict_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step was kept up with by a few batches, and each approach shows that it was luck."""
    climbed = BusyStairs(monkeypatch, 1e6)
    climbed.shares = {2: 0.9, 3: 1.1, 4: 1.1, 5: 1.1}
    approaches = iter((3e5, 3e5 / 2, 3e5 / 4))
    climbed.changed = lambda record: record if len(climbed.steps) < 3 else drained_at(next(approaches))

    result = climbed.climb(50e6)
    assert (result.limit_per_s, result.drained_per_s) == (None, pytest.approx(3e5 / 4))


def test_a_limit_below_the_ceiling_is_no_keeping_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 96 % of all that can be offered, but its batches predict that they would be full there."""
    result = BusyStairs(monkeypatch, 6.8e6).climb(6.6e6)
    assert (result.holds, result.limit_per_s) == (False, pytest.approx(6.6e6))


def test_a_slow_first_step_is_measured_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold engine may drain a twentieth of what it will."""
    climbed = BusyStairs(monkeypatch, 4e4)
    result = climbed.climb(50e6)
    assert {rate for rate, _ in climbed.steps} == {FIRST_RATE_PER_S}
    assert (result.drained_per_s, result.limit_per_s) == (pytest.approx(4e4), None)


def test_a_failure_in_an_approach_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guess is what was drained before."""
    climbed = BusyStairs(monkeypatch, 1e7)
    failed = drained_at(1e6, engine_failed="it ended")
    climbed.changed = lambda record: failed if len(climbed.steps) == 4 else record
    result = climbed.climb(180e6)
    assert len(climbed.steps) == 4
    assert (result.drained_per_s, result.limit_per_s) == (pytest.approx(6.4e6), None)


def test_a_flow_that_keeps_rows_gets_steps_in_which_windows_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's join drained 1.4 M/s in a step of 8 s, before windows of 8 s ended, and sustained half of it."""
    climbed = BusyStairs(monkeypatch, 1e6)
    climbed.closing_s = 24.0
    climbed.climb(180e6)
    assert [seconds for _, seconds in climbed.steps] == [24.0, 24.0, 24.0, 36.0]
