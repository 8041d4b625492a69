"""the worst of several queries or sinks decides and is named."""

from __future__ import annotations

import dataclasses
from itertools import permutations
from typing import Any

import pytest

from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import RIGHT, check_of, evidence, lag, ramp, sink


def about(samples: Samples, name: str) -> Samples:
    return dataclasses.replace(samples, about=name)


TREND_PAIRS: list[tuple[str, str, dict[str, Any]]] = [
    ("backlog_trend", "failed", {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.05), "counts"))}),
    ("backlog_trend", "undecided", {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.01), "counts"))}),
    ("output_trend", "failed", {"output_lag": (about(lag(0.03), "counts"), about(lag(0.0), "dear"))}),
    (
        "output_trend",
        "undecided",
        {"output_lag": (about(lag(0.0), "dear"), about(Samples.from_values([], []), "counts"))},
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
    assert check.sentence.startswith("counts: ")


@pytest.mark.parametrize("order", [1, -1])
def test_the_worst_of_queries_that_all_hold_is_shown(order: int) -> None:
    """The number is the largest slope, so that nothing looks better than it is."""
    both = (about(lag(0.002), "dear"), about(lag(0.005), "counts"))
    check = check_of(judge(evidence(output_lag=both[::order])), "output_trend")
    assert (check.state, round(check.value or 0, 4)) == ("ok", 0.005)


@pytest.mark.parametrize(("rows", "ending"), [
    (10, "(wrong: cheap; right: 1 of 2 sinks)"), (0, "(wrong: cheap; right: 1 of 2 sinks; no result came on cheap)"),
])  # fmt: skip
def test_the_sink_that_is_wrong_is_named(rows: int, ending: str) -> None:
    """The count is the sum; the sentence says where the faults lie, and whether a sink is silent."""
    whole, cheap = RIGHT.model_copy(update={"expected": 20, "missing": 2}), sink("cheap", missing=2)
    sinks = (sink("dear"), cheap.model_copy(update={"rows": rows}))
    verdict = judge(evidence(verification=whole, sinks=sinks))
    check = check_of(verdict, "answers")
    assert (check.state, check.value) == ("failed", 2)
    assert check.sentence.endswith(ending)
    assert "cheap" in verdict.sentence


def test_a_rejected_program_did_not_die() -> None:
    """The figure and the advice are about what it wrote."""
    verdict = judge(evidence(sut_alive=False, sut_rejected=True, sut_reason="no message came"))
    assert check_of(verdict, "connected").unit == "rejected programs"
    assert verdict.advice.startswith("correct the program or its file")
