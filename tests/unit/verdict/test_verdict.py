"""verdict/verdict.py: how checks combine into a verdict."""

from typing import Any

import numpy as np
import pytest

from streamgauge.results.codes import Cause
from streamgauge.results.text.sentences import advice, check_sentence, longer, verdict_sentence
from streamgauge.verdict.verdict import CHECKS, judge
from tests.unit.verdict.helpers_evidence import RIGHT, check_of, evidence, ramp, samples


@pytest.mark.parametrize("name", ["output_lag_at_commits", "latency"])
@pytest.mark.parametrize("noise_s", [0.05, 5.0])
def test_what_may_only_fail_leaves_nothing_undecided(name: str, noise_s: float) -> None:
    """Batches differ in length, and their results in age; only growth that is sure counts."""
    assert judge(evidence(**{name: ramp(0.01, noise_s)})).value == "sustained"


def test_a_trial_with_nothing_wrong_is_sustained() -> None:
    """All checks are ok, and each says its number and its limit."""
    verdict = judge(evidence())
    assert (verdict.value, verdict.cause) == ("sustained", Cause.ALL_CHECKS_HOLD)
    assert {check.code for check in verdict.checks} == {Cause.OK}
    assert [check.name for check in verdict.checks] == [spec.name for spec in CHECKS]
    assert all(check.ok and check.value is not None and check.limit is not None for check in verdict.checks)


@pytest.mark.parametrize("failed", [{"schedule_delay_us_p99": 150_000}, {"delivery_share": 0.6}])
def test_a_death_is_reported_although_the_driver_failed_too(failed: dict[str, Any]) -> None:
    """An invalid trial says nothing against the system, and that it died as well, but not that it lived."""
    died = judge(evidence(**failed, sut_alive=False, sut_reason="out of memory"))
    assert (died.value, [check.name for check in died.died]) == ("invalid", ["connected"])
    assert not judge(evidence(**failed)).died


def test_verdicts_outrank_each_other_in_order() -> None:
    """Interrupted, invalid, not sustained, undecided, sustained."""
    faults: dict[str, Any] = {"batches": 1}
    assert judge(evidence(**faults)).value == "undecided"
    faults["sut_alive"] = False
    assert judge(evidence(**faults)).value == "not_sustained"
    faults["negative_latencies"] = 3
    assert judge(evidence(**faults)).value == "invalid"
    faults["interrupted"] = True
    stopped = judge(evidence(**faults))
    assert (stopped.value, stopped.cause) == ("interrupted", Cause.INTERRUPTED)


def test_each_look_is_at_a_corrected_level() -> None:
    """Three interim analyses share the 5 %."""
    assert check_of(judge(evidence()), "backlog_trend").remarks[0].facts["confidence"] == pytest.approx(1 - 0.05 / 3)


@pytest.mark.parametrize(
    ("half_width", "advice"), [(1.0, "1.2 times"), (8**0.5, "2.0 times"), (8.0, "4.0 times"), (12.0, "so close")]
)
def test_how_much_longer_follows_the_power_of_a_slopes_interval(half_width: float, advice: str) -> None:
    """It narrows with the span to the power of 1.5: eight times as wide takes four times as long; five is too long."""
    assert advice in longer(1.0, half_width)


def test_what_ended_a_trial_in_its_warm_up_is_its_cause() -> None:
    """Alone in the head, although trends and evidence are then missing too, and come in the list of checks."""
    none, no_seconds = samples([], []), np.zeros(0)
    ended: dict[str, Any] = {"overflowed": True, "span_began": False, "batches": 0, "backlog": none, "output_lag": none}
    ended |= {"planned_per_s": no_seconds, "offered_per_s": no_seconds}
    verdict = judge(evidence(**ended, verification=None))
    assert (verdict.value, verdict.cause, len(verdict.deciding)) == ("undecided", Cause.QUEUE_FULL_AT_START, 6)
    assert verdict_sentence(verdict).endswith(f": queue_bound: {check_sentence(verdict.deciding[0])}")


@pytest.mark.parametrize(
    ("fault", "option"),
    [
        ({}, "--queue-limit"), ({"span_began": False, "batches_ever": 5}, "--queue-limit"),
        ({"memory_full_s": 12.0}, "--queue-memory"), ({"span_began": False, "memory_full_s": 12.0}, "--queue-memory"),
        ({"backlog": ramp(0.05), "steady": False}, "--queue-limit"), ({"backlog": ramp(0.05)}, ""),
    ],
)  # fmt: skip
def test_a_larger_queue_is_advised_where_it_would_help(fault: dict[str, Any], option: str) -> None:
    """By the option that bounds it, and not for a backlog that grows at a constant rate."""
    advised = advice(judge(evidence(overflowed=True, **fault)))
    assert [word for word in ("--queue-limit", "--queue-memory") if word in advised] == [option] * bool(option)


WRONG_TOO = RIGHT.model_copy(update={"wrong": 2, "matched": RIGHT.matched - 2})


@pytest.mark.parametrize(
    ("others", "value"),
    [
        ({"core_wait_us": 50_000.0}, "invalid"),
        ({"core_wait_us": 50_000.0, "background_share": 0.8}, "invalid"),
        ({"backlog": ramp(0.05)}, "not_sustained"),
        ({"ingested_share": 0.01}, "not_sustained"),
        ({"interrupted": True}, "interrupted"),
    ],
)
def test_wrong_answers_are_named_beside_any_other_verdict(others: dict[str, Any], value: str) -> None:
    """Once, with their number and the file with examples; without wrong answers nothing is said."""
    verdict = judge(evidence(verification=WRONG_TOO, **others))
    sentence = verdict_sentence(verdict)
    assert (verdict.value, sentence.count("2 wrong"), sentence.endswith("see verification.json")) == (value, 1, True)
    assert "wrong too" not in verdict_sentence(judge(evidence(**others)))
