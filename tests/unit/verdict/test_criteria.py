"""verdict/criteria.py: what the trends are read from, and what several sinks and queries come to."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from streamgauge.verdict.criteria import steps
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import RATE, RIGHT, SECONDS, check_of, evidence, lag, ramp, sink, staircase

pytestmark = pytest.mark.usefixtures("quick_draws")


def test_both_phases_mixed_are_no_trend() -> None:
    """Samples of both phases make a saw-tooth of half a second's height: the interval widens around 0."""
    mixed = Samples(SECONDS, 1 + 0.5 * (SECONDS % 2))
    check = check_of(judge(evidence(backlog=mixed)), "backlog_trend")
    assert check.state == "ok"
    assert (check.low or 0) < -0.002 < 0.002 < (check.high or 0)


# --- the frontier of windowed results is a staircase ---


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


def test_a_death_is_told_where_the_driver_failed_too() -> None:
    """The figure must not be used, and what became of the system is worth knowing all the same."""
    verdict = judge(evidence(sut_alive=False, sut_reason="OutOfMemoryError", delivery_share=0.6))
    assert verdict.value == "invalid"
    assert "OutOfMemoryError" in verdict.sentence


# --- several sinks ---


def about(samples: Samples, name: str) -> Samples:
    return dataclasses.replace(samples, about=name)


TREND_PAIRS = [
    ("backlog_trend", "failed", {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.05), "counts"))}),
    ("backlog_trend", "undecided", {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.01), "counts"))}),
    ("output_trend", "failed", {"output_lag": (about(lag(0.03), "counts"), about(lag(0.0), "dear"))}),
    ("output_trend", "undecided", {"output_lag": (about(lag(0.0), "dear"), about(Samples.of([], []), "counts"))}),
]


@pytest.mark.parametrize(("name", "state", "fault"), TREND_PAIRS)
def test_one_query_that_falls_behind_decides_and_is_named(name: str, state: str, fault: dict[str, Any]) -> None:
    """However well the others do; a sink that nothing came to is never a pass."""
    check = check_of(judge(evidence(**fault)), name)
    assert check.state == state
    assert check.sentence.startswith("counts: ")


def test_the_worst_of_queries_that_all_hold_is_shown() -> None:
    """The number is the largest slope, so that nothing looks better than it is."""
    both = (about(lag(0.002), "dear"), about(lag(0.005), "counts"))
    check = check_of(judge(evidence(output_lag=both)), "output_trend")
    assert (check.state, round(check.value or 0, 4)) == ("ok", 0.005)


def test_the_sink_that_is_wrong_is_named() -> None:
    """The count is the sum; the sentence says where the faults lie."""
    whole = RIGHT.model_copy(update={"expected": 20, "missing": 2})
    verdict = judge(evidence(verification=whole, sinks=(sink("dear"), sink("cheap", missing=2))))
    check = check_of(verdict, "answers")
    assert (check.state, check.value) == ("failed", 2)
    assert check.sentence.endswith("2 missing (wrong: cheap; right: 1 of 2 sinks)")
    assert "cheap" in verdict.sentence


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"delivery_share": 0.503}, "the generators delivered events for 50.3% of the time"),
        ({"delivery_share": 0.62}, "the generators delivered events for 62% of the time"),
        ({"offered_per_s": np.where(SECONDS == 30, 0.9897 * RATE, RATE)}, "the driver offered 98.97% of the plan"),
    ],
)
def test_a_share_is_shown_on_its_side_of_the_limit(changes: dict[str, Any], said: str) -> None:
    """Rounded onto the limit it would be no reason."""
    assert said in check_of(judge(evidence(**changes)), "driver").sentence
