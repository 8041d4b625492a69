"""verdict/verdict.py: planted faults, each found by its check; which verdict that is, what it says, and when to give
up.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.results.causes import Cause
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult
from streamgauge.results.verdict import Check
from streamgauge.stats.bootstrap import Interval
from streamgauge.verdict import verdict as verdict_module
from streamgauge.verdict.collect_evidence import ingested_share
from streamgauge.verdict.criteria import CHECKS, CheckSpec, make_check
from streamgauge.verdict.evidence import Evidence, Samples
from streamgauge.verdict.verdict import _advice_undecided, cannot_recover, judge
from tests.unit.verdict.helpers_evidence import LATENCY, LEVEL, RATE, RIGHT, SECONDS, check_of, evidence, lag, ramp

pytestmark = pytest.mark.usefixtures("quick_draws")


def first_falling_then_growing(every: int = 1) -> Samples:
    """A start-up backlog that drains, and then one that grows by 2 %: a straight line through both falls."""
    time_s = SECONDS[::every]
    return Samples(time_s, np.where(time_s < 30, 3 - 0.08 * time_s, 0.6 + 0.02 * (time_s - 30)))


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


def filling() -> tuple[Samples, ...]:
    """Batches of 2 s that seem to get longer, by 3 % of the time and with much noise."""
    return (ramp(0.02, noise_s=0.6),)


def of_latency(**changes: Any) -> Latencies:
    """The usual latency of event time, with changes."""
    return Latencies(event_time_us=LATENCY.model_copy(update=changes))


NOT_COMPARED = RIGHT.model_copy(update={"judged": False, "sentence": "DuckDB ran out of memory"})
ONE_SECOND_SHORT = np.where(SECONDS == 30, 0.98 * RATE, RATE)
FAULTS = [
    ("driver", "invalid", Cause.PLAN_NOT_KEPT, {"offered_per_s": ONE_SECOND_SHORT}),
    ("driver", "invalid", Cause.SCHEDULE_DELAY, {"schedule_delay_us_p99": 150_000}),
    ("driver", "invalid", Cause.DRIVER_STARVED, {"core_wait_us": 50_000.0}),
    ("driver", "invalid", Cause.NEGATIVE_LATENCY, {"negative_latencies": 1}),
    ("driver", "invalid", Cause.RECORDER_DISK_BUSY, {"disk_share": 0.6}),
    ("driver", "invalid", Cause.DELIVERY_BUSY, {"delivery_share": 0.6}),
    ("driver", "invalid", Cause.RECORDER_BUSY, {"receive_share": 0.6}),
    ("driver", "invalid", Cause.RECORDER_STALLED, {"recorder_stall_s": 0.7, "span_s": 60.0}),
    ("connected", "not_sustained", Cause.SUT_DIED, {"sut_alive": False}),
    ("connected", "not_sustained", Cause.READS_ABORTED, {"aborted_reads": 1}),
    ("connected", "not_sustained", Cause.TASKS_RETRIED, {"retried_tasks": 2}),
    ("backlog_trend", "not_sustained", Cause.BACKLOG_GROWS, {"backlog": ramp(0.05)}),
    ("backlog_trend", "undecided", Cause.TREND_UNDECIDED, {"backlog": ramp(0.01)}),
    ("backlog_trend", "undecided", Cause.TOO_FEW_OBSERVATIONS, {"backlog": Samples.of([0, 1, 2], [1, 1, 1])}),
    ("output_trend", "not_sustained", Cause.RESULTS_FALL_BEHIND, {"output_lag": lag(0.03)}),
    ("output_trend", "undecided", Cause.TOO_FEW_OBSERVATIONS, {"output_lag": Samples.of([], [])}),
    ("output_trend", "not_sustained", Cause.RESULTS_FALL_BEHIND, {"output_lag_at_commits": (lag(0.03),)}),
    ("latency_trend", "not_sustained", Cause.LATENCY_GROWS, {"latency": (ramp(0.03),)}),
    ("backlog_trend", "undecided", Cause.TREND_UNDECIDED, {"backlog": first_falling_then_growing()}),
    ("backlog_trend", "undecided", Cause.TREND_TURNED, {"backlog": first_falling_then_growing(every=5)}),
    ("queue_bound", "not_sustained", Cause.QUEUE_FULL, {"backlog_max_s": 30.0}),
    ("queue_bound", "invalid", Cause.QUEUE_CUT_BY_MEMORY, {"bound_s": 9.0, "bound_cut_by_memory": True}),
    ("queue_bound", "invalid", Cause.DRIVER_MEMORY_FULL, {"overflowed": True, "memory_full_s": 2.0}),
    ("queue_bound", "not_sustained", Cause.QUEUE_FULL, {"overflowed": True, "memory_full_s": 10.5}),
    ("queue_bound", "not_sustained", Cause.QUEUE_FULL, {"overflowed": True}),
    ("answers", "not_sustained", Cause.WRONG_ANSWERS, {"verification": RIGHT.model_copy(update={"missing": 1})}),
    ("answers", "not_sustained", Cause.WRONG_ANSWERS, {"verification": RIGHT.model_copy(update={"extra": 1})}),
    ("answers", "not_sustained", Cause.WRONG_ANSWERS, {"verification": RIGHT.model_copy(update={"duplicate": 1})}),
    ("answers", "not_sustained", Cause.WRONG_ANSWERS, {"verification": RIGHT.model_copy(update={"wrong": 1})}),
    ("answers", "not_sustained", Cause.WRONG_ANSWERS, {"verification": RIGHT.model_copy(update={"late": 1})}),
    ("answers", "undecided", Cause.NO_REFERENCE, {"verification": None}),
    ("answers", "undecided", Cause.NO_REFERENCE, {"verification": RIGHT.model_copy(update={"judged": False})}),
    ("evidence", "undecided", Cause.TOO_FEW_BATCHES, {"batches": 19}),
    ("evidence", "undecided", Cause.TOO_FEW_WINDOWS, {"windows_closed": 4}),
    ("evidence", "undecided", Cause.START_BACKLOG, {"draining_at_start": True}),
    ("event_time_p99", "not_sustained", Cause.LIMIT_EXCEEDED, {"levels": (LEVEL,)}),
    ("driver", "invalid", Cause.DRIVER_FAILED, {"driver_reason": "it ended"}),
    ("driver", "invalid", Cause.DISK_FULL, {"driver_reason": "full", "driver_disk_full": True}),
    ("connected", "not_sustained", Cause.DISK_FULL, {"sut_alive": False, "sut_disk_full": True}),
    ("output_trend", "undecided", Cause.BATCHES_FILL_INTERVAL, {"output_lag_at_commits": filling(), "interval_s": 3.0}),
    ("queue_bound", "undecided", Cause.QUEUE_FULL_AT_START, {"overflowed": True, "span_began": False}),
    ("answers", "undecided", Cause.ANSWERS_NOT_COMPARED, {"verification": NOT_COMPARED}),
    ("answers", "undecided", Cause.DISK_FULL, {"verification": NOT_COMPARED, "answers_disk_full": True}),
    ("answers", "undecided", Cause.NO_RESULT_DUE, {"verification": RIGHT.model_copy(update={"expected": 0})}),
    ("event_time_p99", "undecided", Cause.NO_LATENCY, {"levels": (LEVEL,), "latencies": Latencies()}),
    ("event_time_p99", "undecided", Cause.TOO_FEW_RESULTS, {"levels": (LEVEL,), "latencies": of_latency(p99=None)}),
    (
        "event_time_p99",
        "undecided",
        Cause.RESULTS_OUTSTANDING,
        {"levels": (LEVEL,), "latencies": of_latency(p99=1e6, lower_bounds=3)},
    ),
]


LIMITS = [
    ("driver", Cause.DRIVER_STARVED, {"core_wait_us": 9_900.0}, {"core_wait_us": 10_100.0}),
    (
        "driver",
        Cause.SCHEDULE_DELAY,
        {"schedule_delay_us_p99": 195_000, "latencies": of_latency(p50=10e6)},
        {"schedule_delay_us_p99": 205_000, "latencies": of_latency(p50=10e6)},
    ),
    (
        "backlog_trend",
        Cause.BACKLOG_GROWS,
        {"ingested_share": 0.21},
        {"ingested_share": 0.19},
    ),
]
"""Check, code, and evidence closely within and closely beyond a limit."""


@pytest.mark.parametrize(("name", "code", "within", "beyond"), LIMITS)
def test_a_limit_lies_where_it_is_said_to_lie(
    name: str, code: Cause, within: dict[str, Any], beyond: dict[str, Any]
) -> None:
    """Closely within it nothing is found, closely beyond it that check decides."""
    assert judge(evidence(**within)).value == "sustained"
    verdict = judge(evidence(**beyond))
    assert (verdict.decided_by, verdict.cause) == ((name,), code)


def test_a_new_check_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its declaration brings its advice, and says whether a slow system can fail it."""

    def salt(_: Evidence) -> Check:
        return make_check("salt", "failed", Cause.WRONG_ANSWERS, 1, 0, "grains", "there is no salt")

    for by_slowness, value in ((False, "not_sustained"), (True, "invalid")):
        new = CheckSpec("salt", salt, "add salt", by_slowness=by_slowness)
        monkeypatch.setattr(verdict_module, "CHECKS", (*CHECKS, new))
        found = judge(evidence(background_share=0.9))
        assert (found.value, found.decided_by) == (value, ("salt",))
        assert found.advice == "add salt" or by_slowness


ADVISED = {
    ("driver", "invalid"): "--isolation pinned",
    ("connected", "not_sustained"): "read the engine's log",
    ("backlog_trend", "not_sustained"): "`streamgauge sustain`",
    ("output_trend", "not_sustained"): "its results fall behind",
    ("latency_trend", "not_sustained"): "the job's state",
    ("queue_bound", "not_sustained"): "--bound",
    ("queue_bound", "invalid"): "--memory",
    ("answers", "not_sustained"): "verification.json",
    ("event_time_p99", "not_sustained"): "change a setting of the engine",
}
"""What the advice names where a check decides so, except where the disk is full."""


@pytest.mark.parametrize(("name", "value", "code", "fault"), FAULTS)
def test_a_check_brings_its_own_advice(name: str, value: str, code: Cause, fault: dict[str, Any]) -> None:
    """By what it decided; an undecided trial is advised by the evidence that it lacks."""
    if value != "undecided" and code != Cause.DISK_FULL:
        assert ADVISED[name, value] in judge(evidence(**fault)).advice


def test_what_became_of_the_system_is_told_though_the_driver_failed() -> None:
    """An invalid trial says nothing against it, and that it died as well, but not that it lived."""
    failed = {"schedule_delay_us_p99": 150_000}
    died = judge(evidence(**failed, sut_alive=False, sut_reason="out of memory")).sentence
    assert "connected: a process of the system under test died or does not answer: out of memory" in died
    assert "connected" not in judge(evidence(**failed)).sentence


@pytest.mark.parametrize(("half_width", "says"), [(0.02, "about 1.6 times as long"), (0.2, "so close to the limit")])
def test_how_much_longer_is_asked_for_goes_by_the_width_of_the_interval(half_width: float, says: str) -> None:
    """It narrows with the span's power 1.5; where that would take more than five times as long, another rate does."""
    check = make_check(
        "backlog_trend",
        "undecided",
        Cause.TREND_UNDECIDED,
        0.0,
        0.01,
        "s/s",
        "",
        Interval(0.0, -half_width, half_width, 0.95, 60),
    )
    assert says in _advice_undecided(check, evidence())


def test_a_recorder_that_stood_still_is_no_fault_of_the_system() -> None:
    """The sentence says how long and what it did to the figures; a hundredth of the span is allowed."""
    sentence = judge(evidence(recorder_stall_s=2.0, span_s=30.0)).sentence
    assert (
        "the recorder stood still for 2.0 s of 30 s (limit 1%), so results that arrived meanwhile have late timestamps"
        in sentence
    )
    for still_s, span_s in ((0.6, 60.0), (0.0, 0.0)):
        assert judge(evidence(recorder_stall_s=still_s, span_s=span_s)).value == "sustained"


SHARES = ("delivery_share", "receive_share", "disk_share")
TOO_SLOW: list[dict[str, Any]] = [
    {"backlog": ramp(0.05)}, {"backlog": ramp(0.01)}, {"output_lag": lag(0.03)}, {"latency": (ramp(0.03),)},
    {"overflowed": True}, {"levels": (LEVEL,)},
]  # fmt: skip


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("fault", TOO_SLOW, ids=lambda fault: next(iter(fault)))
def test_a_system_that_may_have_waited_for_the_driver_is_not_blamed(share: str, fault: dict[str, Any]) -> None:
    """From a quarter of the time on nobody can say whether it would have kept up; the driver's sentence says why, and
    what was seen of the system stands in its own checks. Below that it is the system's doing.
    """
    verdict = judge(evidence(**fault, **{share: 0.3}))
    assert (verdict.value, verdict.decided_by) == ("invalid", ("driver",))
    assert "30% of the time" in verdict.sentence
    assert "(limit 25% if the system did not keep up)" in verdict.sentence
    alone = judge(evidence(**fault))
    assert verdict.checks[1:] == alone.checks[1:]
    assert judge(evidence(**fault, **dict.fromkeys(SHARES, 0.24))) == alone
    assert alone.value in ("not_sustained", "undecided")


def test_who_keeps_up_beside_a_driver_that_takes_long_is_sustained() -> None:
    """In spite of it; up to the half beyond which latencies would be the driver's."""
    assert judge(evidence(**dict.fromkeys(SHARES, 0.45))).value == "sustained"


@pytest.mark.parametrize(
    "fault", [{"sut_alive": False}, {"retried_tasks": 1}, {"verification": RIGHT.model_copy(update={"missing": 1})}]
)
def test_no_slow_driver_excuses_what_slowness_does_not_bring_about(fault: dict[str, Any]) -> None:
    """Dead processes, retried tasks and wrong answers stay what they are, though a trend failed as well."""
    assert judge(evidence(**fault, backlog=ramp(0.05), delivery_share=0.4)).value == "not_sustained"


def test_a_full_disk_is_advised_on_as_such() -> None:
    """Neither processors nor other programs fill a disk, and a disk has no lower rate."""
    full = judge(evidence(driver_reason="the disk is full", driver_disk_full=True, background_share=0.7))
    assert full.value == "invalid"
    assert full.advice == "free some space, or set TMPDIR=DIR to a folder on a larger disk; then run it again"
    assert "isolation" in judge(evidence(driver_reason="it was killed")).advice


@pytest.mark.parametrize(("name", "value", "code", "fault"), FAULTS)
def test_each_planted_fault_is_found_by_its_check(name: str, value: str, code: Cause, fault: dict[str, Any]) -> None:
    """One fault in a good trial: that check alone decides, and says so with its code and what to do next."""
    verdict = judge(evidence(**fault))
    assert (verdict.value, verdict.decided_by, verdict.cause) == (value, (name,), code)
    assert check_of(verdict, name).code == code
    assert name in verdict.sentence
    assert verdict.advice


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("driver", {"planned_per_s": np.zeros(0), "offered_per_s": np.zeros(0)}),
        ("driver", {"schedule_delay_us_p99": "late"}),
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
    assert check_of(verdict, name).code == verdict.cause == Cause.CHECK_FAILED_TO_RUN


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


def test_slip_may_be_two_percent_of_a_long_latency() -> None:
    """150 ms are too much beside 1 s, and are not beside 10 s."""
    slow = Latencies(event_time_us=LATENCY.model_copy(update={"p50": 10e6}))
    assert judge(evidence(schedule_delay_us_p99=150_000, latencies=slow)).value == "sustained"


@pytest.mark.parametrize(("lag_s", "value"), [(10.0, "sustained"), (1.0, "invalid")])
def test_slip_is_measured_against_the_lag_where_no_latency_is_known(lag_s: float, value: str) -> None:
    """A trial that ended early has none, and its results were no sooner than its commits; latencies say it better."""
    assert judge(evidence(schedule_delay_us_p99=150_000, latencies=Latencies(), output_delay_s=lag_s)).value == value
    assert judge(evidence(schedule_delay_us_p99=150_000, output_delay_s=lag_s)).value == "invalid"


def test_what_is_not_windowed_needs_no_windows() -> None:
    """Row-wise results are judged by their batches alone."""
    assert judge(evidence(windows_closed=None)).value == "sustained"


SHORT = {
    "windows_closed": 4,
    "window_gap_s": 10.0,
    "span_s": 40.0,
    "output_lag": Samples.of([3, 13, 23, 33], [1, 1, 1, 1]),
}


@pytest.mark.parametrize("background", [0.0, 0.4])
def test_a_span_too_short_for_its_windows_is_not_blamed_on_the_machine(background: float) -> None:
    """No quiet machine makes it longer: the advice is its length, by the windows that were seen in the results."""
    verdict = judge(evidence(**SHORT, background_share=background))
    assert verdict.value == "undecided"
    assert check_of(verdict, "evidence").code == Cause.SPAN_TOO_SHORT
    assert "windows that end 10 s apart, so the span must be at least 50 s long" in verdict.sentence
    assert verdict.advice == "a longer span: --duration 50s or more"


@pytest.mark.parametrize("changes", [{"span_s": 60.0}, {"window_gap_s": 0.0}, {"backlog": ramp(0.05)}, {"batches": 3}])
def test_other_processes_may_be_why_too_few_windows_closed(changes: dict[str, Any]) -> None:
    """Where the span is long enough for them, where their width is not known, and where something else failed."""
    assert judge(evidence(**{**SHORT, **changes}, background_share=0.4)).value == "invalid"


@pytest.mark.parametrize(
    ("rows", "said"),
    [(0, "no result came and none was due, so there is no latency"), (3, "no answer could be checked")],
)
def test_a_job_that_gives_and_owes_nothing_is_not_asked_for_a_longer_trial(rows: int, said: str) -> None:
    """A longer one would give nothing too; its level says the same."""
    nothing = RIGHT.model_copy(update={"expected": 0, "matched": 0})
    none = Latencies(event_time_us=LATENCY.model_copy(update={"count": 0, "p99": None, "p50": None}))
    silent = SinkResult(name="results", rows=rows, latency=none, verification=nothing)
    verdict = judge(evidence(verification=nothing, sinks=(silent,), latencies=none, latency=(), levels=(LEVEL,)))
    assert (verdict.value, check_of(verdict, "answers").code) == ("undecided", Cause.NO_RESULT_DUE)
    assert said in verdict.sentence
    assert verdict.advice.startswith("check the job's conditions")
    assert "no result came in the span, so there is no latency" in check_of(verdict, LEVEL.name).sentence


@pytest.mark.parametrize(("share", "said"), [(0.103, "10.3%"), (0.12, "12%"), (0.1001, "10.01%")])
def test_a_share_above_its_limit_is_not_rounded_to_it(share: float, said: str) -> None:
    """ "Used 10%, at most 10% is allowed" is no reason."""
    sentence = judge(evidence(backlog=ramp(0.05), background_share=share)).sentence
    assert f"background processes used {said} of the CPU (limit 10%)" in sentence


def test_a_short_bound_of_the_users_own_is_the_suts_business() -> None:
    """Only memory makes a short bound the driver's fault."""
    assert judge(evidence(bound_s=5.0)).value == "sustained"


def test_a_sentence_names_number_and_limit() -> None:
    """What decided can be read without the table of checks."""
    sentence = judge(evidence(backlog=ramp(0.05))).sentence
    assert "grows by 4.98%" in sentence
    assert "limit 1 %" in sentence.replace("1%", "1 %")


def test_an_undecided_trend_says_how_much_longer() -> None:
    """A wide interval well below the limit asks for a longer trial, one at the limit for another rate."""
    assert "times as long" in judge(evidence(backlog=ramp(0.0, noise_s=1.0))).advice
    assert "lower the rate a little" in judge(evidence(backlog=ramp(0.01))).advice


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"core_wait_us": 50_000.0}, True),
        ({"driver_reason": "ended"}, True),
        ({"sut_alive": False}, False),
        ({"verification": None}, False),
        ({"verification": RIGHT.model_copy(update={"missing": 30})}, False),
        ({}, False),
    ],
)
def test_a_busy_machine_is_named_before_the_driver_is_blamed(changed: dict[str, Any], said: bool) -> None:
    """Invalid beside other processes: look at those first. Wrong answers, ones that nobody judged, and a system that
    died come of no neighbour, and a rate that held needs none.
    """
    assert ("background processes: they used 40%" in judge(evidence(background_share=0.4, **changed)).advice) is said
    assert "background processes" not in judge(evidence(background_share=0.1, **changed)).advice


@pytest.mark.parametrize(
    "fault", [{"core_wait_us": 50_000.0}, {"schedule_delay_us_p99": 150_000}, {"receive_share": 0.6}]
)
@pytest.mark.parametrize("besides", [{}, {"verification": RIGHT.model_copy(update={"wrong": 1})}])
def test_what_kept_the_driver_from_its_work_is_named_first(fault: dict[str, Any], besides: dict[str, Any]) -> None:
    """A driver that was late or starved beside busy neighbours did not fail by itself; its check says by how much."""
    quiet, beside = (judge(evidence(background_share=share, **fault, **besides)) for share in (0.1, 0.8))
    assert (quiet.cause, beside.cause) == (quiet.checks[0].code, Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD)
    assert (quiet.value, quiet.decided_by, quiet.checks) == ("invalid", beside.decided_by, beside.checks)
    assert "the driver failed" in quiet.sentence
    assert beside.sentence.startswith("invalid: background processes used 80% of the CPU (limit 10%)")
    assert "driver: " in beside.sentence
    assert "itself" not in beside.sentence


@pytest.mark.parametrize(
    "fault",
    [{"driver_reason": "ended"}, {"negative_latencies": 1}, {"bound_s": 9.0, "bound_cut_by_memory": True}],
)
def test_what_comes_of_no_neighbour_is_the_drivers_own_failure(fault: dict[str, Any]) -> None:
    """Ends, clocks and memory."""
    assert judge(evidence(background_share=0.8, **fault)).sentence.startswith("invalid: the driver failed")


SLOW_BESIDE_LOAD: list[dict[str, Any]] = [
    {"backlog": ramp(0.05)},
    {"output_lag": lag(0.03)},
    {"backlog_max_s": 30.0},
    {"overflowed": True},
    {"levels": (LEVEL,)},
    {"backlog": ramp(0.05), "overflowed": True, "verification": None},
]


@pytest.mark.parametrize("fault", SLOW_BESIDE_LOAD)
def test_what_was_too_slow_beside_others_is_no_proof(fault: dict[str, Any]) -> None:
    """A neighbour that takes a core makes any system slow: the trial is invalid, and says whose doing it may be."""
    assert judge(evidence(background_share=0.1, **fault)).value == "not_sustained"
    quiet, beside = judge(evidence(**fault)), judge(evidence(background_share=0.4, **fault))
    assert (quiet.value, beside.value, beside.cause) == ("not_sustained", "invalid", Cause.BACKGROUND_LOAD)
    assert (beside.decided_by, beside.checks) == (quiet.decided_by, quiet.checks)
    assert "background processes used 40% of the CPU (limit 10%)" in beside.sentence
    assert beside.decided_by[0] in beside.sentence
    assert "run it again" in beside.advice
    assert "driver" not in beside.sentence


@pytest.mark.parametrize("short", [{"backlog": ramp(0.0, noise_s=1.0)}, {"batches": 3}, {"draining_at_start": True}])
@pytest.mark.parametrize("judged", [{}, {"verification": None}])
def test_what_stayed_undecided_beside_others_is_made_again(short: dict[str, Any], judged: dict[str, Any]) -> None:
    """As what was too slow, whether or not its answers were looked at: a search would take it as its upper end."""
    quiet, beside = (judge(evidence(background_share=share, **short, **judged)) for share in (0.1, 0.4))
    assert (quiet.value, beside.value) == ("undecided", "invalid")
    assert (beside.decided_by, beside.checks) == (quiet.decided_by, quiet.checks)
    assert "background processes used 40% of the CPU (limit 10%)" in beside.sentence
    assert "open result" in beside.sentence


@pytest.mark.parametrize(
    ("fault", "value"), [({"backlog": ramp(0.05)}, "not_sustained"), ({"batches": 3}, "undecided")]
)
def test_a_burst_of_others_disturbs_as_well(fault: dict[str, Any], value: str) -> None:
    """Both cores for 2.9 s of 30 s are less than a tenth; what a virtual machine is denied is far below a half."""
    of_few_seconds, stolen = (
        judge(evidence(background_share=0.08, background_burst_share=n, **fault)) for n in (0.58, 0.08)
    )
    assert (of_few_seconds.value, stolen.value) == ("invalid", value)
    assert "background processes used 58% of the CPU for 5 s (limit 50%)" in of_few_seconds.sentence
    assert judge(evidence(background_burst_share=0.58)).value == "sustained"


WRONG = {"verification": RIGHT.model_copy(update={"wrong": 1})}


@pytest.mark.parametrize("fault", [{"sut_alive": False}, {"retried_tasks": 1}, WRONG])
def test_what_no_neighbour_brings_about_is_proof_beside_others(fault: dict[str, Any]) -> None:
    """A system that died, or answered wrongly, is not sustained on a busy machine too, however slow it was besides."""
    assert judge(evidence(background_share=0.4, **fault)).value == "not_sustained"
    assert judge(evidence(background_share=0.4, backlog=ramp(0.05), **fault)).value == "not_sustained"


def test_what_held_beside_others_has_held() -> None:
    """It did so in spite of them; and what nobody has judged was not judged because of them."""
    assert judge(evidence(background_share=0.4)).value == "sustained"
    assert judge(evidence(background_share=0.4, verification=None)).value == "undecided"
    assert (
        judge(evidence(background_share=0.4, verification=RIGHT.model_copy(update={"expected": 0}))).value
        == "undecided"
    )
    assert judge(evidence(background_share=0.4, backlog=ramp(0.05), interrupted=True)).value == "interrupted"


def test_waiting_for_a_core_that_is_not_known_is_said() -> None:
    """It passes no check in silence, and condemns nothing either; where it is known nothing is said."""
    driver = check_of(judge(evidence(core_wait_us=np.nan)), "driver")
    assert driver.ok
    assert "its wait for a core is unknown" in driver.sentence
    assert "unknown" not in check_of(judge(evidence()), "driver").sentence
    assert check_of(judge(evidence(core_wait_us=np.nan, schedule_delay_us_p99=150_000)), "driver").state == "invalid"


def test_each_look_is_at_a_corrected_level() -> None:
    """Three interim analyses share the 5 %; a fourth is refused, and so undecided."""
    assert evidence(interim_analysis=2).confidence == pytest.approx(1 - 0.05 / 3)
    assert "98.3" in check_of(judge(evidence()), "backlog_trend").sentence
    assert judge(evidence(interim_analysis=3)).value == "undecided"


# --- hopeless ---


def test_steady_growth_is_hopeless() -> None:
    """Half a minute of +20 % with ten seconds left cannot end as sustained."""
    assert "can no longer drain" in (cannot_recover(ramp(0.2), 30.0, 10.0) or "")


@pytest.mark.parametrize(("points", "ends"), [(17, False), (25, True)])
def test_what_is_hopeless_was_so_five_seconds_before(points: int, ends: bool) -> None:
    """17 s of steady growth tell enough now, and five seconds before 12 did not."""
    growth = Samples(SECONDS[:points], 0.4 * SECONDS[:points])
    assert (cannot_recover(growth, 30.0, 1.0) is not None) is ends


def test_the_bound_reached_is_hopeless_at_once() -> None:
    """No statistics are needed where the queue is full."""
    assert "bound" in (cannot_recover(Samples.of([1.0], [31.0]), 30.0, 100.0) or "")


def test_a_stall_that_can_be_caught_up_goes_on() -> None:
    """Twelve seconds without a delivery, half a minute left: the engine has shown no pace yet."""
    time_s = np.arange(30.0)
    stall = Samples(time_s, 1 + np.maximum(0, time_s - 17))
    assert cannot_recover(stall, 60.0, 30.0) is None


def test_growth_that_has_ended_goes_on() -> None:
    """A backlog that grew and now drains may still come back."""
    time_s = np.arange(40.0)
    hump = Samples(time_s, np.where(time_s < 25, 0.3 * time_s, 7.5 - 0.3 * (time_s - 25)))
    assert cannot_recover(hump, 60.0, 30.0) is None


def test_little_evidence_is_never_hopeless() -> None:
    """Ten samples of growth are a start, not a verdict."""
    assert cannot_recover(Samples.of(range(10), [float(t) for t in range(10)]), 60.0, 1.0) is None


CUT_BY_MEMORY = {"bound_cut_by_memory": True, "bound_s": 7.6}
LATE_GENERATORS = {"offered_per_s": np.full(60, RATE / 2), "schedule_delay_us_p99": 5e6}


@pytest.mark.parametrize("beside", [CUT_BY_MEMORY, LATE_GENERATORS, {"background_share": 0.85}, {"batches_ever": 0}])
def test_a_system_that_takes_a_hundredth_of_the_load_is_not_sustained(beside: dict[str, Any]) -> None:
    """Neither a small queue, nor late generators, nor what others used of the machine make a hundred of one."""
    verdict = judge(evidence(ingested_share=0.01, backlog=(Samples.of([], []),), **beside))
    assert (verdict.value, verdict.decided_by) == ("not_sustained", ("backlog_trend",))
    assert "the system read only 1.00% of the offered events" in verdict.sentence


@pytest.mark.parametrize(
    ("beside", "value"),
    [
        ({"ingested_share": 0.25, "bound_cut_by_memory": True, "bound_s": 7.6}, "invalid"),
        ({"ingested_share": 0.1, "bound_cut_by_memory": True, "bound_s": 7.6, "background_share": 0.85}, "invalid"),
        ({"ingested_share": 0.01, "driver_reason": "generator 0 ended"}, "invalid"),
        ({"ingested_share": 0.01, "delivery_share": 0.6}, "invalid"),
        ({"ingested_share": 0.01, "interrupted": True}, "interrupted"),
    ],
)
def test_a_system_that_may_have_been_kept_from_more_is_not_called_far_behind(
    beside: dict[str, Any], value: str
) -> None:
    """It took a fifth or more of what was left of the machine, or the driver failed, or was what it waited for."""
    assert judge(evidence(**beside)).value == value


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.01),
        ({"measured_from_s": 50}, 1.0),
        ({"measured_from_s": 50, "earlier_trials": True}, 0.01),
        ({"interval_s": 15.0}, 1.0),
        ({"offered": 0}, 1.0),
    ],
)
def test_what_a_system_took_is_known_once_it_had_time_to_take_it(changes: dict[str, Any], share: float) -> None:
    """Forty seconds: not of a fresh engine in its warm-up, nor of one whose batches begin 15 s apart."""
    known = {"measured_from_s": 5, "earlier_trials": False, "interval_s": 1.0, "offered": 1000} | changes
    trial_log = SimpleNamespace(
        offered_events=lambda: known["offered"], running=SimpleNamespace(taken_events=lambda: known["offered"] // 100)
    )
    spans = SimpleNamespace(start_us=0, measured_from_us=known["measured_from_s"] * US)
    done: Any = SimpleNamespace(
        trial_log=trial_log, spans=spans, earlier_trials=known["earlier_trials"], offered_until=lambda: 40 * US
    )
    assert ingested_share(done, known["interval_s"]) == share
