"""run/verdict.py and run/criteria.py: planted faults, each found by its check; how often the trend checks err."""

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import InputError
from streamgauge.result import Check, Latencies, Latency, SinkResult, Verdict, Verification
from streamgauge.run.criteria import CHECKS, steps
from streamgauge.run.verdict import Evidence, Samples, hopeless, judge, parse_limit

RATE = 100_000.0
SECONDS = np.arange(60.0)
LATENCY = Latency(min=1e5, mean=1e6, p50=1e6, p99=3e6, max=4e6, count=10_000, effective_count=10_000)
RIGHT = Verification(judged=True, independent=True, reference="duckdb", expected=10, matched=10)


def ramp(share: float, noise_s: float = 0.05, seed: int = 1) -> Samples:
    """A backlog (events) that grows by `share` of the rate, with noise."""
    noise = np.random.default_rng(seed).normal(0, noise_s, SECONDS.size)
    return Samples(SECONDS, 2 + share * SECONDS + noise)


def lag(slope: float) -> Samples:
    """Output lag in seconds that grows by `slope` a second; the frontier moves at every sample."""
    return Samples(SECONDS, 1.5 + slope * SECONDS)


def first_falling_then_growing() -> Samples:
    """A start-up backlog that drains, and then one that grows by 2 %: a straight line through both falls."""
    return Samples(SECONDS, np.where(SECONDS < 30, 3 - 0.08 * SECONDS, 0.6 + 0.02 * (SECONDS - 30)))


def evidence(**changes: Any) -> Evidence:
    """A trial at which nothing is wrong, with `changes`."""
    good = Evidence(
        planned_per_s=np.full(60, RATE),
        offered_per_s=np.full(60, RATE),
        slip_us_p99=60_000,
        core_wait_us=200.0,
        sut_alive=True,
        backlog=(ramp(0.0),),
        output_lag=(lag(0.0),),
        output_lag_at_commits=(ramp(0.0),),
        latency=(ramp(0.0),),
        backlog_max_s=2.4,
        bound_s=30.0,
        verification=RIGHT,
        batches=40,
        latencies=Latencies(event_time_us=LATENCY),
        windows_closed=14,
    )
    each = {name: (value,) if isinstance(value, Samples) else value for name, value in changes.items()}
    return dataclasses.replace(good, **each)


def check_of(verdict: Verdict, name: str) -> Check:
    return next(check for check in verdict.checks if check.name == name)


@pytest.mark.parametrize("name", ["output_lag_at_commits", "latency"])
@pytest.mark.parametrize("noise_s", [0.05, 5.0])
def test_what_may_only_fail_leaves_nothing_undecided(name: str, noise_s: float) -> None:
    """Batches differ in length, and their results in age; only growth that is sure counts."""
    assert judge(evidence(**{name: ramp(0.01, noise_s)})).value == "sustained"


@pytest.mark.parametrize(("growth", "said"), [(0.0, "sustained"), (0.015, "undecided"), (0.04, "not_sustained")])
@pytest.mark.parametrize("length_s", [0.8, 1.1])
def test_batches_that_grow_towards_their_interval(growth: float, said: str, length_s: float) -> None:
    """Batches of 1.4 s at most, in half a minute: what grows too slowly to be sure of it, but would fill the interval
    in another one, is no proof that the rate is held.
    """
    begun, seen = np.arange(0, 30, 1.4), []
    for seed in range(20):
        lengths = length_s + growth * begun + np.random.default_rng(seed).normal(0, 0.1, begun.size)
        at_commits = Samples(begun + lengths, lengths)
        seen.append(judge(evidence(output_lag_at_commits=at_commits, interval_s=1.4)).value)
    assert seen.count(said) >= 15
    if said == "undecided":
        assert (
            "would fill the batches' interval"
            in judge(evidence(output_lag_at_commits=at_commits, interval_s=1.4)).sentence
        )


def test_a_trial_with_nothing_wrong_is_sustained() -> None:
    """All checks are ok, and each says its number and its limit."""
    verdict = judge(evidence())
    assert verdict.value == "sustained"
    assert [check.name for check in verdict.checks] == [name for name, _ in CHECKS]
    assert all(check.ok and check.value is not None and check.limit is not None for check in verdict.checks)


ONE_SECOND_SHORT = np.where(SECONDS == 30, 0.98 * RATE, RATE)
LEVEL = parse_limit("p99 <= 2s")
FAULTS = [
    ("driver", "invalid", {"offered_per_s": ONE_SECOND_SHORT}),
    ("driver", "invalid", {"slip_us_p99": 150_000}),
    ("driver", "invalid", {"core_wait_us": 50_000.0}),
    ("driver", "invalid", {"negative_latencies": 1}),
    ("driver", "invalid", {"disk_share": 0.6}),
    ("driver", "invalid", {"stood_still_s": 0.7, "span_s": 60.0}),
    ("connected", "not_sustained", {"sut_alive": False}),
    ("connected", "not_sustained", {"aborted_reads": 1}),
    ("connected", "not_sustained", {"retried_tasks": 2}),
    ("backlog_trend", "not_sustained", {"backlog": ramp(0.05)}),
    ("backlog_trend", "undecided", {"backlog": ramp(0.01)}),
    ("backlog_trend", "undecided", {"backlog": Samples.of([0, 1, 2], [1, 1, 1])}),
    ("output_trend", "not_sustained", {"output_lag": lag(0.03)}),
    ("output_trend", "undecided", {"output_lag": Samples.of([], [])}),
    ("output_trend", "not_sustained", {"output_lag_at_commits": (lag(0.03),)}),
    ("latency_trend", "not_sustained", {"latency": (ramp(0.03),)}),
    ("backlog_trend", "undecided", {"backlog": first_falling_then_growing()}),
    ("queue_bound", "not_sustained", {"backlog_max_s": 30.0}),
    ("queue_bound", "invalid", {"bound_s": 9.0, "bound_cut_by_memory": True}),
    ("queue_bound", "invalid", {"overflowed": True, "memory_full_s": 2.0}),
    ("queue_bound", "not_sustained", {"overflowed": True, "memory_full_s": 10.5}),
    ("queue_bound", "not_sustained", {"overflowed": True}),
    ("answers", "not_sustained", {"verification": RIGHT.model_copy(update={"missing": 1})}),
    ("answers", "not_sustained", {"verification": RIGHT.model_copy(update={"extra": 1})}),
    ("answers", "not_sustained", {"verification": RIGHT.model_copy(update={"duplicate": 1})}),
    ("answers", "not_sustained", {"verification": RIGHT.model_copy(update={"wrong": 1})}),
    ("answers", "not_sustained", {"verification": RIGHT.model_copy(update={"late": 1})}),
    ("answers", "undecided", {"verification": None}),
    ("answers", "undecided", {"verification": RIGHT.model_copy(update={"judged": False})}),
    ("evidence", "undecided", {"batches": 19}),
    ("evidence", "undecided", {"windows_closed": 4}),
    ("evidence", "undecided", {"draining_at_start": True}),
    ("event_time_p99", "not_sustained", {"levels": (LEVEL,)}),
]


def test_a_recorder_that_stood_still_is_no_fault_of_the_system() -> None:
    """The sentence says how long and what it did to the figures; a hundredth of the span is allowed."""
    sentence = judge(evidence(stood_still_s=2.0, span_s=30.0)).sentence
    assert "the recorder stood still for 2.0 s of 30 s, 1% is allowed: what arrived then was stamped late" in sentence
    for still_s, span_s in ((0.6, 60.0), (0.0, 0.0)):
        assert judge(evidence(stood_still_s=still_s, span_s=span_s)).value == "sustained"


@pytest.mark.parametrize(("name", "value", "fault"), FAULTS)
def test_each_planted_fault_is_found_by_its_check(name: str, value: str, fault: dict[str, Any]) -> None:
    """One fault in a good trial: that check alone decides, and says so with what to do next."""
    verdict = judge(evidence(**fault))
    assert (verdict.value, verdict.decided_by) == (value, (name,))
    assert name in verdict.sentence
    assert verdict.advice


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("driver", {"planned_per_s": np.zeros(0), "offered_per_s": np.zeros(0)}),
        ("driver", {"slip_us_p99": "late"}),
        ("backlog_trend", {"backlog": Samples(SECONDS, np.full(60, np.nan))}),
        ("output_trend", {"output_lag": Samples(SECONDS, np.zeros(3))}),
        ("queue_bound", {"backlog_max_s": None}),
        ("queue_bound", {"backlog_max_s": float("nan")}),
        ("answers", {"verification": "all right"}),
        ("evidence", {"batches": None}),
    ],
)
def test_a_check_that_crashes_is_undecided(name: str, fault: dict[str, Any]) -> None:
    """Evidence of the wrong kind is no evidence: never a pass, never a failure."""
    verdict = judge(evidence(**fault))
    assert (verdict.value, check_of(verdict, name).ok) == ("undecided", None)
    assert "could not be judged" in check_of(verdict, name).sentence


def test_verdicts_outrank_each_other_in_order() -> None:
    """Interrupted, invalid, not sustained, undecided, sustained."""
    faults: dict[str, Any] = {"batches": 1}
    assert judge(evidence(**faults)).value == "undecided"
    faults["sut_alive"] = False
    assert judge(evidence(**faults)).value == "not_sustained"
    faults["negative_latencies"] = 3
    assert judge(evidence(**faults)).value == "invalid"
    faults["interrupted"] = True
    assert judge(evidence(**faults)).value == "interrupted"


def test_slip_may_be_two_percent_of_a_long_latency() -> None:
    """150 ms are too much beside 1 s, and are not beside 10 s."""
    slow = Latencies(event_time_us=LATENCY.model_copy(update={"p50": 10e6}))
    assert judge(evidence(slip_us_p99=150_000, latencies=slow)).value == "sustained"


@pytest.mark.parametrize(("lag_s", "value"), [(10.0, "sustained"), (1.0, "invalid")])
def test_slip_is_measured_against_the_lag_where_no_latency_is_known(lag_s: float, value: str) -> None:
    """A trial that ended early has none, and its results were no sooner than its commits; latencies say it better."""
    assert judge(evidence(slip_us_p99=150_000, latencies=Latencies(), output_delay_s=lag_s)).value == value
    assert judge(evidence(slip_us_p99=150_000, output_delay_s=lag_s)).value == "invalid"


def test_what_is_not_windowed_needs_no_windows() -> None:
    """Row-wise results are judged by their batches alone."""
    assert judge(evidence(windows_closed=None)).value == "sustained"


def test_a_short_bound_of_the_users_own_is_the_suts_business() -> None:
    """Only memory makes a short bound the driver's fault."""
    assert judge(evidence(bound_s=5.0)).value == "sustained"


def test_a_sentence_names_number_and_limit() -> None:
    """What decided can be read without the table of checks."""
    sentence = judge(evidence(backlog=ramp(0.05))).sentence
    assert "+5.0" in sentence
    assert "limit 1 %" in sentence.replace("1%", "1 %")


def test_an_undecided_trend_says_how_much_longer() -> None:
    """A wide interval well below the limit asks for a longer trial, one at the limit for another rate."""
    assert "times as long" in judge(evidence(backlog=ramp(0.0, noise_s=1.0))).advice
    assert "rate a little lower" in judge(evidence(backlog=ramp(0.01))).advice


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"sut_alive": False}, True), ({"verification": None}, True), ({"driver_reason": "ended"}, True), ({}, False)],
)
def test_a_busy_machine_is_named_before_the_system_is_blamed(changed: dict[str, Any], said: bool) -> None:
    """Not sustained, not judged or invalid beside other processes: look at those first; a rate that held needs none."""
    assert ("other processes used 40%" in judge(evidence(others_share=0.4, **changed)).advice) is said
    assert "other processes" not in judge(evidence(others_share=0.1, **changed)).advice


TOO_SLOW: list[dict[str, Any]] = [
    {"backlog": ramp(0.05)},
    {"output_lag": lag(0.03)},
    {"backlog_max_s": 30.0},
    {"overflowed": True},
    {"levels": (LEVEL,)},
    {"backlog": ramp(0.05), "overflowed": True, "verification": None},
]


@pytest.mark.parametrize("fault", TOO_SLOW)
def test_what_was_too_slow_beside_others_is_no_proof(fault: dict[str, Any]) -> None:
    """A neighbour that takes a core makes any system slow: the trial is invalid, and says whose doing it may be."""
    assert judge(evidence(others_share=0.1, **fault)).value == "not_sustained"
    quiet, beside = judge(evidence(**fault)), judge(evidence(others_share=0.4, **fault))
    assert (quiet.value, beside.value) == ("not_sustained", "invalid")
    assert (beside.decided_by, beside.checks) == (quiet.decided_by, quiet.checks)
    assert "other processes used 40% of the machine, at most 10% is allowed" in beside.sentence
    assert beside.decided_by[0] in beside.sentence
    assert "run this again" in beside.advice
    assert "driver" not in beside.sentence


@pytest.mark.parametrize("short", [{"backlog": ramp(0.0, noise_s=1.0)}, {"batches": 3}, {"draining_at_start": True}])
@pytest.mark.parametrize("judged", [{}, {"verification": None}])
def test_what_stayed_undecided_beside_others_is_made_again(short: dict[str, Any], judged: dict[str, Any]) -> None:
    """As what was too slow, whether or not its answers were looked at: a search would take it as its upper end."""
    quiet, beside = (judge(evidence(others_share=share, **short, **judged)) for share in (0.1, 0.4))
    assert (quiet.value, beside.value) == ("undecided", "invalid")
    assert (beside.decided_by, beside.checks) == (quiet.decided_by, quiet.checks)
    assert "other processes used 40% of the machine, at most 10% is allowed" in beside.sentence
    assert "stayed undecided" in beside.sentence


@pytest.mark.parametrize(
    ("fault", "value"), [({"backlog": ramp(0.05)}, "not_sustained"), ({"batches": 3}, "undecided")]
)
def test_a_burst_of_others_disturbs_as_well(fault: dict[str, Any], value: str) -> None:
    """Both cores for 2.9 s of 30 s are less than a tenth; what a virtual machine is denied is far below a half."""
    of_few_seconds, stolen = (judge(evidence(others_share=0.08, others_burst_share=n, **fault)) for n in (0.58, 0.08))
    assert (of_few_seconds.value, stolen.value) == ("invalid", value)
    assert "other processes used 58% of the machine for 5 s, at most 50% is allowed" in of_few_seconds.sentence
    assert judge(evidence(others_burst_share=0.58)).value == "sustained"


WRONG = {"verification": RIGHT.model_copy(update={"wrong": 1})}


@pytest.mark.parametrize("fault", [{"sut_alive": False}, {"retried_tasks": 1}, WRONG])
def test_what_no_neighbour_brings_about_is_proof_beside_others(fault: dict[str, Any]) -> None:
    """A system that died, or answered wrongly, is not sustained on a busy machine too, however slow it was besides."""
    assert judge(evidence(others_share=0.4, **fault)).value == "not_sustained"
    assert judge(evidence(others_share=0.4, backlog=ramp(0.05), **fault)).value == "not_sustained"


def test_what_held_beside_others_has_held() -> None:
    """It did so in spite of them; and what nobody has judged was not judged because of them."""
    assert judge(evidence(others_share=0.4)).value == "sustained"
    assert judge(evidence(others_share=0.4, verification=None)).value == "undecided"
    assert judge(evidence(others_share=0.4, verification=RIGHT.model_copy(update={"expected": 0}))).value == "undecided"
    assert judge(evidence(others_share=0.4, backlog=ramp(0.05), interrupted=True)).value == "interrupted"


def test_waiting_for_a_core_that_is_not_known_is_said() -> None:
    """It passes no check in silence, and condemns nothing either; where it is known nothing is said."""
    driver = check_of(judge(evidence(core_wait_us=np.nan)), "driver")
    assert driver.ok
    assert "waited for a core is not known" in driver.sentence
    assert "not known" not in check_of(judge(evidence()), "driver").sentence
    assert check_of(judge(evidence(core_wait_us=np.nan, slip_us_p99=150_000)), "driver").state == "invalid"


def test_each_look_is_at_a_corrected_level() -> None:
    """Three looks share the 5 %; a fourth is refused, and so undecided."""
    assert evidence(look=2).confidence == pytest.approx(1 - 0.05 / 3)
    assert "98.3" in check_of(judge(evidence()), "backlog_trend").sentence
    assert judge(evidence(look=3)).value == "undecided"


# --- how often the trend check errs ---


def saw_tooth(share: float, random: np.random.Generator) -> Samples:
    """Backlog (events) just before each hand-out: batches of about a second, autocorrelated, over a minute.

    A second's batch leaves about a second of the rate behind; its length wanders by 10 % and resembles its neighbour's.
    """
    length_s = np.empty(60)
    length_s[0] = random.normal(0, 0.1)
    for i in range(1, 60):
        length_s[i] = 0.5 * length_s[i - 1] + random.normal(0, 0.1 * np.sqrt(0.75))
    time_s = np.cumsum(1 + length_s)
    return Samples(time_s, 1 + length_s + share * time_s)


def states(share: float, runs: int = 80) -> dict[str, float]:
    random, trend = np.random.default_rng(17), dict(CHECKS)["backlog_trend"]
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


def test_both_phases_mixed_would_not_pass_as_proof() -> None:
    """Samples of both phases make a saw-tooth of half a second's height; the interval widens and no trend is failed."""
    mixed = Samples(SECONDS, 1 + 0.5 * (SECONDS % 2))
    assert check_of(judge(evidence(backlog=mixed)), "backlog_trend").state != "failed"


# --- the frontier of windowed results is a staircase ---


def staircase(slope: float, windows: int, noise_s: float, seed: int = 1, until_s: float | None = None) -> Samples:
    """Lag every 10 ms, of windows of 4 s that close 1 s late, later by `slope` a second."""
    random = np.random.default_rng(seed)
    ends = 4.0 * np.arange(1, windows + 1)
    closed_at = ends + 1 + slope * ends + random.normal(0, noise_s, windows)
    time_s = np.arange(0, until_s or closed_at[-1] + 0.011, 0.01)
    frontier_s = np.concatenate([[0.0], ends])[np.searchsorted(closed_at, time_s, side="right")]
    return Samples(time_s, time_s - frontier_s)


def test_a_staircase_has_one_observation_a_window() -> None:
    """A hundred samples a second do not make more evidence out of seven windows."""
    assert steps(staircase(0.0, 7, 0.02)).value.size == 7


def test_the_phase_of_a_staircase_is_no_trend() -> None:
    """A span that ends in the middle of a step is judged like one that ends after it."""
    lags = staircase(0.0, 12, 0.02, until_s=51.9)
    assert check_of(judge(evidence(output_lag=lags)), "output_trend").ok


@pytest.mark.parametrize(("slope", "right", "wrong"), [(0.0, "ok", "failed"), (0.08, "failed", "ok")])
def test_a_few_quiet_windows_decide(slope: float, right: str, wrong: str) -> None:
    """Eight windows with 30 ms of noise tell no growth from 8 %."""
    found = dict.fromkeys(("ok", "failed", "undecided"), 0)
    for seed in range(20):
        check = check_of(judge(evidence(output_lag=staircase(slope, 8, 0.03, seed))), "output_trend")
        found[check.state] += 1
    assert found[right] >= 15
    assert found[wrong] == 0


def test_a_few_noisy_windows_seldom_decide() -> None:
    """Six windows with half a second of noise growing at the limit: decided no more often than the level allows."""
    found = [
        check_of(judge(evidence(output_lag=staircase(0.01, 6, 0.5, seed))), "output_trend").state for seed in range(40)
    ]
    assert found.count("undecided") >= 37


def test_an_engine_that_stops_giving_results_does_not_pass() -> None:
    """A frontier that stands still for 20 s leaves no steps behind, and is seen all the same."""
    stalled = staircase(0.0, 10, 0.02, until_s=62.0)
    assert check_of(judge(evidence(output_lag=stalled)), "output_trend").state != "ok"


# --- hopeless ---


def test_steady_growth_is_hopeless() -> None:
    """Half a minute of +20 % with ten seconds left cannot end as sustained."""
    assert "can no longer drain" in (hopeless(ramp(0.2), 30.0, 10.0) or "")


def test_the_bound_reached_is_hopeless_at_once() -> None:
    """No statistics are needed where the queue is full."""
    assert "bound" in (hopeless(Samples.of([1.0], [31.0]), 30.0, 100.0) or "")


@pytest.mark.parametrize("seed", range(20))
def test_a_trial_that_may_still_be_sustained_goes_on(seed: int) -> None:
    """No growth, in every prefix of a minute: never ended early."""
    whole = saw_tooth(0.0, np.random.default_rng(seed))
    for n in range(1, 60, 3):
        assert hopeless(Samples(whole.time_s[:n], whole.value[:n]), 30.0, 60.0 - n) is None


def test_a_stall_that_can_be_caught_up_goes_on() -> None:
    """Twelve seconds without a hand-out, half a minute left: the engine has shown no pace yet."""
    time_s = np.arange(30.0)
    stall = Samples(time_s, 1 + np.maximum(0, time_s - 17))
    assert hopeless(stall, 60.0, 30.0) is None


def test_growth_that_has_ended_goes_on() -> None:
    """A backlog that grew and now drains may still come back."""
    time_s = np.arange(40.0)
    hump = Samples(time_s, np.where(time_s < 25, 0.3 * time_s, 7.5 - 0.3 * (time_s - 25)))
    assert hopeless(hump, 60.0, 30.0) is None


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
            if hopeless(part, 60.0, 0.0) is not None:
                ended += 1
                assert check_of(judge(evidence(backlog=part)), "backlog_trend").state == "failed"
    assert ended or not share


def test_little_evidence_is_never_hopeless() -> None:
    """Ten samples of growth are a start, not a verdict."""
    assert hopeless(Samples.of(range(10), [float(t) for t in range(10)]), 60.0, 1.0) is None


# --- service levels ---


@pytest.mark.parametrize(
    ("text", "name", "limit_us"),
    [
        ("event_time_p99 <= 2s", "event_time_p99", 2e6),
        ("p99.9<=250ms", "event_time_p99_9", 250e3),
        ("closing_delay_max <= 1m", "closing_delay_max", 60e6),
        (" processing_time_mean<=0.5 ", "processing_time_mean", 0.5e6),
    ],
)
def test_limits_are_read_as_people_write_them(text: str, name: str, limit_us: float) -> None:
    """Kind, statistic and time, with the short form for event time."""
    level = parse_limit(text)
    assert (level.name, level.limit_us) == (name, limit_us)


@pytest.mark.parametrize(
    "text", ["", "p99", "p98 <= 2s", "p99 >= 2s", "p99 <= fast", "p99 <= 0s", "throughput_p99 <= 2s"]
)
def test_nonsense_limits_are_refused(text: str) -> None:
    """The message names the setting, what was got and a way out."""
    with pytest.raises(InputError) as caught:
        parse_limit(text, "limits.0")
    assert "limits.0" in str(caught.value)
    assert "try:" in str(caught.value)


@given(st.text(max_size=30))
def test_no_text_makes_the_parser_crash(text: str) -> None:
    """Any text is a limit above nothing, or a plain refusal."""
    with contextlib.suppress(InputError):
        assert parse_limit(text).limit_us > 0


@pytest.mark.parametrize(
    ("text", "change", "state"),
    [
        ("p99 <= 3s", {}, "ok"),
        ("p99 <= 2.9s", {}, "failed"),
        ("p99 <= 3s", {"p99": None}, "undecided"),
        ("p99 <= 3s", {"lower_bounds": 1}, "undecided"),
        ("p99 <= 2s", {"lower_bounds": 1}, "failed"),
        ("processing_time_p99 <= 3s", {}, "undecided"),
    ],
)
def test_service_levels_are_judged_on_what_was_measured(text: str, change: dict[str, Any], state: str) -> None:
    """A figure that is not there, or is only a lower bound, cannot pass."""
    level = parse_limit(text)
    latencies = Latencies(event_time_us=LATENCY.model_copy(update=change))
    assert check_of(judge(evidence(levels=(level,), latencies=latencies)), level.name).state == state


# --- several sinks ---


def sink(name: str, p99: float = 1e6, **found: int) -> SinkResult:
    latency = LATENCY.model_copy(update={"p99": p99})
    return SinkResult(
        name=name, rows=10, latency=Latencies(event_time_us=latency), verification=RIGHT.model_copy(update=found)
    )


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


def test_a_service_level_holds_for_every_sink() -> None:
    """The slow one decides, by name."""
    level = parse_limit("p99 <= 2s")
    check = check_of(judge(evidence(levels=(level,), sinks=(sink("dear"), sink("slow", 3e6)))), "event_time_p99")
    assert (check.state, check.value) == ("failed", 3e6)
    assert check.sentence.startswith("slow: ")
    closing = parse_limit("closing_delay_p99 <= 2s")
    one = sink("revenue").model_copy(update={"latency": Latencies(event_time_us=LATENCY, closing_delay_us=LATENCY)})
    found = check_of(judge(evidence(levels=(closing,), sinks=(sink("dear"), one))), "closing_delay_p99")
    assert (found.state, found.value) == ("failed", 3e6)
