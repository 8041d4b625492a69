"""the worst of several queries or sinks decides and is named."""

import dataclasses
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from streamgauge.results.codes import Detail
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import cannot_recover, judge
from tests.unit.verdict.helpers_evidence import (
    RIGHT,
    SECONDS,
    check_of,
    evidence,
    lag,
    ramp,
    samples,
    sink,
)


def about(samples: Samples, name: str) -> Samples:
    return dataclasses.replace(samples, about=name)


TREND_PAIRS: list[tuple[str, str, dict[str, Any]]] = [
    ("backlog_trend", "failed", {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.05), "counts"))}),
    ("backlog_trend", "undecided", {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.01), "counts"))}),
    ("output_trend", "failed", {"output_lag": (about(lag(0.03), "counts"), about(lag(0.0), "dear"))}),
    (
        "output_trend",
        "undecided",
        {"output_lag": (about(lag(0.0), "dear"), about(samples([], []), "counts"))},
    ),
]


TREND_PAIRS += [
    ("backlog_trend", "failed", {"backlog": pair})
    for pair in permutations((about(ramp(0.01), "dear"), about(ramp(0.05), "counts")))
]
"""One undecided and one failed, in both orders."""


@pytest.mark.parametrize(("name", "state", "fault"), TREND_PAIRS)
def test_one_query_that_falls_behind_decides_and_is_named(name: str, state: str, fault: dict[str, Any]) -> None:
    """However well the others do; a sink that nothing came to is never a pass."""
    check = check_of(judge(evidence(**fault)), name)
    assert check.state == state
    assert check.remarks[0].facts["about"] == "counts"


@pytest.mark.parametrize("order", [1, -1])
def test_the_worst_of_queries_that_all_hold_is_shown(order: int) -> None:
    """The number is the largest slope, so that nothing looks better than it is."""
    both = (about(lag(0.002), "dear"), about(lag(0.005), "counts"))
    check = check_of(judge(evidence(output_lag=both[::order])), "output_trend")
    assert (check.state, round(check.value or 0, 4)) == ("ok", 0.005)


@pytest.mark.parametrize(("rows", "silent"), [(10, ()), (0, ("cheap",))])
def test_the_sink_that_is_wrong_is_named(rows: int, silent: tuple[str, ...]) -> None:
    """The count is the sum; the facts are where the faults lie, and whether a sink is silent."""
    whole, cheap = RIGHT.model_copy(update={"expected": 20, "missing": 2}), sink("cheap", missing=2)
    sinks = (sink("dear"), cheap.model_copy(update={"rows": rows}))
    check = check_of(judge(evidence(verification=whole, sinks=sinks)), "answers")
    assert (check.state, check.value) == ("failed", 2)
    assert check.remarks[0].facts.items() >= {"wrong": ("cheap",), "silent": silent, "right": 1, "sinks": 2}.items()


MINUTE, HALF = np.arange(40.0), np.arange(30.0)
HUMP = Samples(MINUTE, np.where(MINUTE < 25, 0.3 * MINUTE, 7.5 - 0.3 * (MINUTE - 25)))
STALL = Samples(HALF, 1 + np.maximum(0, HALF - 17))


@pytest.mark.parametrize(("waiting", "bound_s", "left_s", "code"), [
    (ramp(0.2), 30.0, 10.0, Detail.CANNOT_DRAIN),  # half a minute of +20 % with ten seconds left
    (samples([1.0], [31.0]), 30.0, 100.0, Detail.BOUND_REACHED),  # no statistics are needed there
    (Samples(SECONDS[:25], 0.4 * SECONDS[:25]), 30.0, 1.0, Detail.CANNOT_DRAIN),
    (Samples(SECONDS[:17], 0.4 * SECONDS[:17]), 30.0, 1.0, None),  # five seconds before, 12 s said too little
    (STALL, 60.0, 30.0, None),  # twelve seconds without a delivery: the engine has shown no pace yet
    (HUMP, 60.0, 30.0, None),  # a backlog that grew and now drains may still come back
    (samples(range(10), [float(t) for t in range(10)]), 60.0, 1.0, None),  # too little evidence
])  # fmt: skip
def test_growth_that_can_no_longer_drain_ends_a_trial(
    waiting: Samples, bound_s: float, left_s: float, code: Detail | None
) -> None:
    reason = cannot_recover(waiting, bound_s, left_s)
    assert (reason.code if reason else None) == code
