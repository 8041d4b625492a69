"""How often the trend checks and the early end of a trial err, by simulation (verdict/trend_checks.py,
verdict/verdict.py).
"""

from typing import Any

import numpy as np
import pytest

from streamgauge.results.codes import Cause
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import CHECKS, cannot_recover, judge
from tests.statistics.helpers_stable_engines import STABLE, ends_early, fails, share, windowed
from tests.unit.verdict.helpers_evidence import SECONDS, check_of, evidence, staircase

pytestmark = pytest.mark.usefixtures("quick_draws")


@pytest.mark.parametrize(("growth", "message"), [(0.0, "sustained"), (0.015, "undecided"), (0.04, "not_sustained")])
@pytest.mark.parametrize("length_s", [0.8, 1.1])
def test_batches_that_grow_towards_their_interval(growth: float, message: str, length_s: float) -> None:
    """Batches of 1.4 s at most, in half a minute: what grows too slowly to be sure of it, but would fill the interval
    in another one, is no proof that the rate is held.
    """
    begun, seen = np.arange(0, 30, 1.4), []
    for seed in range(20):
        lengths = length_s + growth * begun + np.random.default_rng(seed).normal(0, 0.1, begun.size)
        at_commits = Samples(begun + lengths, lengths)
        seen.append(judge(evidence(output_lag_at_commits=at_commits, interval_s=1.4)).value)
    assert seen.count(message) >= 15
    if message == "undecided":
        assert judge(evidence(output_lag_at_commits=at_commits, interval_s=1.4)).cause == Cause.BATCHES_FILL_INTERVAL


# --- a backlog in batches of about a second ---


def saw_tooth(share: float, random: np.random.Generator) -> Samples:
    """Backlog (events) just before each delivery: batches of about a second, autocorrelated, over a minute.

    A second's batch leaves about a second of the rate behind; its length wanders by 10 % and resembles its neighbour's.
    """
    length_s = np.empty(60)
    length_s[0] = random.normal(0, 0.1)
    for i in range(1, 60):
        length_s[i] = 0.5 * length_s[i - 1] + random.normal(0, 0.1 * np.sqrt(0.75))
    time_s = np.cumsum(1 + length_s)
    return Samples(time_s, 1 + length_s + share * time_s)


def states(share: float, runs: int = 80) -> dict[str, float]:
    random, trend = np.random.default_rng(17), next(spec.check for spec in CHECKS if spec.name == "backlog_trend")
    found = [trend(evidence(backlog=saw_tooth(share, random))).state for _ in range(runs)]
    return {state: found.count(state) / runs for state in ("ok", "failed", "undecided")}


@pytest.mark.parametrize(
    ("share", "right", "least", "wrong", "most"),
    [
        (0.0, "ok", 0.9, "failed", 0.0),
        (0.005, "ok", 0.4, "failed", 0.02),
        (0.02, "failed", 0.8, "ok", 0.02),
        (0.03, "failed", 0.95, "ok", 0.0),
    ],
)
def test_the_trend_check_errs_seldom(share: float, right: str, least: float, wrong: str, most: float) -> None:
    """At 0, 0.5, 2 and 3 % a minute is called right mostly, undecided sometimes, wrong at most in 2 of 100."""
    found = states(share)
    assert found[right] >= least
    assert found[wrong] <= most


def test_at_the_limit_a_trend_is_seldom_passed_or_failed() -> None:
    """Growth of exactly 1 % is called ok or failed no more often than the level allows, with room for short series."""
    found = states(0.01)
    assert found["ok"] <= 0.05
    assert found["failed"] <= 0.05


IN_MAKE_TEST = "0.9"
"""The engine that is simulated each time; the others take as long each."""


def mostly_long(name: str, *values: float) -> Any:
    return pytest.param(name, *values, marks=[pytest.mark.long] * (name != IN_MAKE_TEST))


STATED = {"0.5": 0.0, "0.8": 0.05, "0.9": 0.09, "0.95": 0.10, "0.9, and noise of 0.5": 0.23}
STATED |= {"0.8, every 1.4 s": 0.0, "0.9, every 1.4 s": 0.10}
"""The share of their trials that docs/explanation/trust.md says is condemned; `python -m
tests.statistics.helpers_stable_engines` counts it.
"""


@pytest.mark.parametrize(("name", "stated"), [mostly_long(name, stated) for name, stated in STATED.items()])
def test_stable_engines_are_condemned_as_often_as_the_method_says(name: str, stated: float) -> None:
    """Where batches resemble their neighbours that is more often than 5 %, and nobody should be told otherwise."""
    trials = 150
    assert abs(share(fails, name, 30.0, trials) - stated) <= 3 * np.sqrt(max(stated, 0.01) / trials)


# --- batches that leave time over ---


def test_time_left_over_decides_what_slopes_do_not() -> None:
    with_it, without = windowed("80 %", 40), windowed("80 %", 40, spare_time=False)
    assert with_it["ok"] >= without["ok"] + 0.3
    assert with_it["failed"] == 0


@pytest.mark.parametrize("name", ["101 %", pytest.param("103 %", marks=pytest.mark.long)])
def test_it_acquits_no_engine_that_falls_behind(name: str) -> None:
    """One that the slopes alone do not acquit stays so."""
    assert windowed(name, 40)["ok"] <= windowed(name, 40, spare_time=False)["ok"] + 0.05


def test_slow_growth_is_seldom_acquitted() -> None:
    """An engine that fills its time within three spans. By its mean alone, two of three would be (one in
    eight if the rule on longer batches knows the interval)."""
    name = "60 %, and 1.2 % more each second"
    assert windowed(name, 60)["ok"] <= windowed(name, 60, spare_time=False)["ok"] + 0.08


# --- the frontier of windowed results is a staircase ---


@pytest.mark.parametrize(("slope", "right", "wrong"), [(0.0, "ok", "failed"), (0.08, "failed", "ok")])
def test_a_few_quiet_windows_decide(slope: float, right: str, wrong: str) -> None:
    """Eight windows with 30 ms of noise tell no growth from 8 %."""
    found = dict.fromkeys(("ok", "failed", "undecided"), 0)
    for seed in range(20):
        found[check_of(judge(evidence(output_lag=staircase(slope, 8, 0.03, seed))), "output_trend").state] += 1
    assert found[right] >= 15
    assert found[wrong] == 0


def test_a_few_noisy_windows_seldom_decide() -> None:
    """Six windows with half a second of noise growing at the limit: decided no more often than the level allows."""
    found = [
        check_of(judge(evidence(output_lag=staircase(0.01, 6, 0.5, seed))), "output_trend").state for seed in range(40)
    ]
    assert found.count("undecided") >= 37


# --- hopeless ---


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_that_may_still_be_sustained_goes_on(seed: int) -> None:
    """No growth, in every prefix of a minute: never ended early."""
    whole = saw_tooth(0.0, np.random.default_rng(seed))
    for n in range(1, 60, 3):
        assert cannot_recover(Samples(whole.time_s[:n], whole.value[:n]), 30.0, 60.0 - n) is None


def wandering(share: float, seed: int) -> Samples:
    """A backlog (events) whose seconds resemble their neighbours so much that it seems to grow or fall."""
    random, about_s = np.random.default_rng(seed), np.zeros(60)
    for i in range(1, 60):
        about_s[i] = 0.95 * about_s[i - 1] + random.normal(0, 0.3)
    return Samples(SECONDS, 8 + share * SECONDS + about_s)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2])
def test_what_is_hopeless_is_judged_so(share: float) -> None:
    """A trial is ended early only where its own verdict is that it was not sustained, however the backlog wanders."""
    ended = 0
    for seed in range(15):
        whole = wandering(share, seed)
        for n in (20, 40, 60):
            part = Samples(whole.time_s[:n], whole.value[:n])
            if cannot_recover(part, 60.0, 0.0) is not None:
                ended += 1
                assert check_of(judge(evidence(backlog=part)), "backlog_trend").state == "failed"
    assert ended or share < 0.2


@pytest.mark.parametrize("name", [mostly_long(name) for name in STABLE])
def test_a_stable_engine_is_seldom_given_up(name: str) -> None:
    """However much its batches resemble their neighbours: 1 in 100, asked at each of them."""
    assert share(ends_early, name, 30.0, 200) <= 0.01


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("apart_s", [0.25, 1.0])
def test_steady_growth_is_given_up_soon(share: float, apart_s: float) -> None:
    """Fifteen deliveries and ten seconds show it, and five seconds later it still is so."""
    random, time_s = np.random.default_rng(5), np.arange(0, 30, apart_s)
    backlog_s = 1.4 + share * time_s + random.normal(0, 0.05, time_s.size)
    seen = (Samples(time_s[:n], backlog_s[:n]) for n in range(1, time_s.size))
    ended_s = next(part.time_s[-1] for part in seen if cannot_recover(part, 60.0, 30 - part.time_s[-1]) is not None)
    enough_s = max(10.0, 15 * apart_s)
    assert enough_s + 4 <= ended_s <= enough_s + 7
