"""Numbers as people read them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config.experiment import Experiment
from streamgauge.core.formatting import (
    flatten,
    format_digits,
    format_duration,
    format_exact,
    format_quantity,
    format_rate,
    format_size,
    format_us,
)
from streamgauge.results.run import Operator, Verification
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.text import phrases
from streamgauge.results.verdict import Check


@pytest.mark.parametrize(("written", "text"), [
    *((format_us(us), text) for us, text in [
        (None, "-"), (0, "0 us"), (87, "87 us"), (185_000, "185 ms"), (3.1e6, "3.1 s"), (999_960, "1 s"),
        (3.6e9, "3,600 s"),
    ]),
    *((format_rate(rate, "events/s"), text) for rate, text in [
        (None, "-"), (0, "0 events/s"), (999.9, "1 k events/s"), (999_960, "1 M events/s"),
        (1_540_000, "1.54 M events/s"),
    ]),
    *((format_size(size), text) for size, text in [
        (None, "-"), (512, "512 B"), (1024, "1 KiB"), (2**30, "1 GiB"), (2**30 - 1, "1 GiB"), (1.5 * 2**20, "1.5 MiB"),
    ]),
    *((format_duration(seconds), text) for seconds, text in [
        (4.2, "4.2 s"), (59.7, "1 min"), (372, "6 min 12 s"), (3840, "1 h 4 min"),
    ]),
    *((phrases.slope(share), text) for share, text in [
        (None, "-"), (0.0004, "flat"), (0.041, "+4.1 %/s"), (-0.02, "-2.0 %/s"),
    ]),
    *((format_quantity(value, unit), text) for value, unit, text in [
        (None, "us", "-"), (0.0498, "s/s", "4.98 %"), (-0.0033, "s/s", "-0.33 %"),
        (0.999, "share of plan", "99.9 % of plan"), (0.12, "share of time", "12 % of time"),
    ]),
])  # fmt: skip
def test_quantities(written: str, text: str) -> None:
    """Times take the unit that reads best, also just below it; rates carry a prefix, never a power of ten; spans are in
    minutes and hours. Growth has a sign; next to none is called flat. Seconds a second are a share too: of the rate, or
    of the time.
    """
    assert written == text


def test_numbers_and_settings_in_full() -> None:
    """A setting's number is read back as the same; nested ones get dotted names, and an empty mapping stays a value."""
    assert Experiment(workload="w", load={"rate": format_exact(1_540_000.5)}).load.rate == 1_540_000.5
    assert flatten({"a": {"b": 1, "c": {}}, "d": 2}) == {"a.b": 1, "a.c": {}, "d": 2}


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_digits_are_close_and_never_in_powers_of_ten(value: float) -> None:
    """What is printed is within the third digit of the value, and people can read it."""
    text = format_digits(value)
    assert "e" not in text
    assert math.isclose(float(text.replace(",", "")), value, rel_tol=0.0051)


def test_bracket_says_what_is_not_known() -> None:
    """Where no rate held, or none failed, that is reported."""
    search = SearchResult(sustained_per_s=None, low=None, high=2e6, relative_width=None, confirmed=False)
    assert phrases.bracket(search) == "no rate was found that holds, 2 M does not"
    undecided = search.model_copy(update={"low": 1e6, "high_verdict": "undecided"})
    assert phrases.bracket(undecided) == "1 M holds, 2 M is undecided"
    assert phrases.bracket(undecided.model_copy(update={"high_verdict": "invalid"})) == "1 M holds, 2 M is invalid"


def test_what_was_not_judged_is_not_called_right() -> None:
    """Neither an absent nor a failed verification is ever a success, and an overload trial has no dash for a verdict; a
    check without a number has no interval. What is wrong is named, kind by kind.
    """
    trial = TrialSummary(number=1, purpose="overload", offered_per_s=1e6, verdict=None)
    assert phrases.trial_verdict(trial) == "not judged"
    unjudged = Verification(judged=False, independent=False, reference="", sentence="the reference crashed")
    assert phrases.verified(None) == phrases.verified(unjudged) == "answers: not judged"
    wrong = Verification(judged=True, independent=True, reference="x", expected=5, matched=3, missing=2, extra=1)
    assert phrases.verified(wrong) == "5 results expected, 3 matched; 2 missing, 1 extra"
    check = Check(name="x", value=None, limit=1, unit="us", ok=None, state="not_judged", sentence="nothing to compare")
    assert phrases.interval(check) == "-"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "holds"),
        ({"high": 0.02}, "not shown to fail"),
        ({"value": 0.015, "low": 0.012, "high": 0.02}, "not shown to fail"),
        ({"value": 0.015, "low": 0.012, "high": 0.02, "ok": False, "state": "failed"}, "failed"),
        ({"value": 0.015, "low": None, "high": None}, "holds"),
    ],
)
def test_a_check_that_may_be_beyond_its_limit_does_not_hold(changes: dict[str, Any], message: str) -> None:
    """Its number and its interval stand beside the word; other checks have limits from below, and no interval."""
    values: dict[str, Any] = {"value": 0.005, "limit": 0.01, "low": 0.0, "high": 0.01, "ok": True, "state": "ok"}
    assert phrases.state(Check(name="latency_trend", unit="s/s", sentence="", **(values | changes))) == message


@pytest.mark.parametrize(
    ("batches", "unknown", "message"),
    [
        (40, 0, ""), (None, None, ""), (4000, 1200, "1,200 of 4,000 batches not counted"),
        (40, 40, "its rows were not counted"),
    ],
)  # fmt: skip
def test_batches_that_were_not_counted_are_reported(batches: int | None, unknown: int | None, message: str) -> None:
    """Of how many; where it is of all there is no figure, and this is why."""
    assert phrases.not_counted(Operator(name="a", batches=batches, batches_unknown=unknown)) == message


def test_a_trial_of_updates_has_the_wait_of_every_event_behind_the_newest_one() -> None:
    """Of other results nothing is reported."""
    trial = TrialSummary(number=1, purpose="bisect", offered_per_s=1e6, verdict="sustained", event_time_p50_us=8e5)
    assert phrases.until_counted(trial) == ""
    counted = trial.model_copy(update={"until_counted_p50_us": 2.8e6})
    assert phrases.until_counted(counted) == ", newest event; until counted p50 2.8 s, p99 -"


def test_a_trials_reason_does_not_repeat_its_verdict() -> None:
    trial = TrialSummary(number=2, purpose="bracket", offered_per_s=1.0, verdict="not_sustained")
    trials = [trial.model_copy(update={"why": why}) for why in ("not sustained: slow", "slow")]
    assert [phrases.trial_reason(one) for one in trials] == ["slow", "slow"]
