"""verdict/verdict.py: how checks combine into a verdict, what it says and what it advises."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.results.codes import Cause
from streamgauge.stats.bootstrap import Interval
from streamgauge.verdict import verdict
from streamgauge.verdict.check_spec import make_check
from streamgauge.verdict.verdict import CHECKS, _advice_undecided, judge
from tests.unit.verdict.helpers_evidence import RIGHT, check_of, evidence, ramp


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
    assert (died.value, "out of memory" in died.sentence) == ("invalid", True)
    assert "connected" not in judge(evidence(**failed)).sentence


def test_a_full_disk_is_advised_on_as_such() -> None:
    """Neither processors nor other programs fill a disk, and a disk has no lower rate."""
    full = judge(evidence(driver_reason="the disk is full", driver_disk_full=True, background_share=0.7))
    assert full.value == "invalid"
    assert full.advice == "free some space, or set TMPDIR=DIR to a folder on a larger disk; then run it again"
    assert "logs: engine/" in judge(evidence(driver_reason="it was killed")).advice


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


@pytest.mark.parametrize(("share", "text"), [(0.103, "10.3%"), (0.12, "12%"), (0.1001, "10.01%")])
def test_a_share_above_its_limit_is_not_rounded_to_it(share: float, text: str) -> None:
    """ "Used 10%, at most 10% is allowed" is no reason."""
    sentence = judge(evidence(backlog=ramp(0.05), background_share=share)).sentence
    assert f"background processes used {text} of the CPU (limit 10%)" in sentence


def test_a_short_bound_of_the_users_own_is_the_suts_business() -> None:
    """Only memory makes a short bound the driver's fault."""
    assert judge(evidence(bound_s=5.0)).value == "sustained"


def test_an_undecided_trend_says_how_much_longer() -> None:
    """A wide interval well below the limit needs a longer trial, one at the limit another rate."""
    assert "times as long" in judge(evidence(backlog=ramp(0.0, noise_s=1.0))).advice
    assert "lower the rate a little" in judge(evidence(backlog=ramp(0.01))).advice


def test_each_look_is_at_a_corrected_level() -> None:
    """Three interim analyses share the 5 %; a fourth is refused, and so undecided."""
    assert evidence(interim_analysis=2).confidence == pytest.approx(1 - 0.05 / 3)
    assert "98.3" in check_of(judge(evidence()), "backlog_trend").sentence
    assert judge(evidence(interim_analysis=3)).value == "undecided"


@pytest.mark.parametrize(
    ("half_width", "advice"), [(1.0, "1.2 times"), (8**0.5, "2.0 times"), (8.0, "4.0 times"), (12.0, "so close")]
)
def test_how_much_longer_follows_the_power_of_a_slopes_interval(half_width: float, advice: str) -> None:
    """It narrows with the span to the power of 1.5: eight times as wide takes four times as long; five is too long."""
    assert advice in verdict._longer(1.0, half_width)
    interval = Interval(0.0, -0.01 * half_width, 0.01 * half_width, 0.95, 60)
    check = make_check("backlog_trend", "undecided", Cause.TREND_UNDECIDED, 0.0, 0.01, "s/s", "", interval)
    assert advice in _advice_undecided(check, evidence())


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
    """With their number and the file with examples; without wrong answers nothing is said."""
    verdict = judge(evidence(verification=WRONG_TOO, **others))
    assert verdict.value == value
    assert "answers are wrong too" in verdict.sentence
    assert verdict.sentence.count("2 wrong") == 1
    assert verdict.sentence.endswith("see verification.json")
    assert "answers are wrong" not in judge(evidence(**others)).sentence


def test_who_is_to_correct_wrong_answers_depends_on_who_wrote_the_job() -> None:
    """The user corrects a user job; of a built-in workload, a report is wanted."""
    own, built_in = (judge(evidence(verification=WRONG_TOO, user_job=user_job)) for user_job in (True, False))
    assert own.sentence == built_in.sentence
    assert own.advice.startswith("correct the job first: verification.json has examples")
    assert "correct the job" not in built_in.advice
    assert "the engine, its lowering or streamgauge is at fault: report it" in built_in.advice


def test_what_a_guarantee_allows_stands_beside_the_verdict() -> None:
    """A program that may lose results sustains any rate."""
    lossy = RIGHT.model_copy(update={"matched": 1, "missing": 9, "delivery": "at_most_once", "allowed": {"missing": 9}})
    verdict = judge(evidence(verification=lossy))
    assert verdict.value == "sustained"
    assert verdict.sentence == "sustained: every check holds; 9 missing of 10 results, as its guarantee allows"
