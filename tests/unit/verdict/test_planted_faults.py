"""each planted fault is found by its check alone, with its code and limit."""

from typing import Any

import numpy as np
import pytest

from streamgauge.results.codes import Cause
from streamgauge.results.latency import Latencies
from streamgauge.results.text.sentences import advice
from streamgauge.results.verdict import Finding
from streamgauge.verdict import verdict as verdict_module
from streamgauge.verdict.check_spec import CheckSpec
from streamgauge.verdict.evidence import Evidence, Samples
from streamgauge.verdict.verdict import CHECKS, judge
from tests.unit.verdict.helpers_evidence import (
    LATENCY,
    LEVEL,
    RATE,
    RIGHT,
    SECONDS,
    check_of,
    evidence,
    lag,
    ramp,
    samples,
)


def first_falling_then_growing(every: int = 1) -> Samples:
    """A start-up backlog that drains, and then one that grows by 2 %: a straight line through both falls."""
    time_s = SECONDS[::every]
    return Samples(time_s, np.where(time_s < 30, 3 - 0.08 * time_s, 0.6 + 0.02 * (time_s - 30)))


def filling() -> tuple[Samples, ...]:
    """Batches of 2 s that seem to get longer, by 3 % of the time and with much noise."""
    return (ramp(0.02, noise_s=0.6),)


def of_latency(**changes: Any) -> Latencies:
    """The usual latency of event time, with changes."""
    return Latencies(event_time_us=LATENCY.model_copy(update=changes))


NOT_COMPARED = RIGHT.model_copy(update={"judged": False, "sentence": "DuckDB ran out of memory"})
ONE_SECOND_SHORT = np.where(SECONDS == 30, 0.98 * RATE, RATE)
FAULTS = [
    ("driver", "undecided", Cause.NO_EVENT_DUE, {"planned_per_s": np.zeros(0), "offered_per_s": np.zeros(0)}),
    ("driver", "invalid", Cause.PLAN_NOT_KEPT, {"offered_per_s": ONE_SECOND_SHORT}),
    ("driver", "invalid", Cause.SCHEDULE_DELAY, {"schedule_delay_us_p99": 150_000}),
    ("driver", "invalid", Cause.DRIVER_STARVED, {"core_wait_us": 50_000.0}),
    ("driver", "invalid", Cause.NEGATIVE_LATENCY, {"negative_latencies": 1}),
    ("driver", "invalid", Cause.LIMIT_REACHED, {"driver_reason": "killed", "limit_reached": True, "sut_alive": False}),
    ("driver", "invalid", Cause.RECORDER_DISK_BUSY, {"disk_share": 0.6}),
    ("driver", "invalid", Cause.DELIVERY_BUSY, {"delivery_share": 0.6}),
    ("driver", "invalid", Cause.RECORDER_BUSY, {"receive_share": 0.6}),
    ("driver", "invalid", Cause.RECORDER_STALLED, {"recorder_stall_s": 0.7, "span_s": 60.0}),
    ("connected", "not_sustained", Cause.SUT_DIED, {"sut_alive": False}),
    ("connected", "not_sustained", Cause.NO_RESULTS, {"sut_alive": False, "sut_rejected": True, "sut_reason": "none"}),
    (
        "connected",
        "invalid",
        Cause.PROGRESS_UNKNOWN,
        {"sut_alive": False, "sut_rejected": True, "sut_unobserved": True, "ingested_share": 0.0, "sut_reason": "none"},
    ),
    ("connected", "not_sustained", Cause.READS_ABORTED, {"aborted_reads": 1}),
    ("connected", "not_sustained", Cause.TASKS_RETRIED, {"retried_tasks": 2}),
    ("backlog_trend", "not_sustained", Cause.BACKLOG_GROWS, {"backlog": ramp(0.05)}),
    ("backlog_trend", "undecided", Cause.TREND_UNDECIDED, {"backlog": ramp(0.01)}),
    ("backlog_trend", "undecided", Cause.TOO_FEW_OBSERVATIONS, {"backlog": samples([0, 1, 2], [1, 1, 1])}),
    ("output_trend", "not_sustained", Cause.RESULTS_FALL_BEHIND, {"output_lag": lag(0.03)}),
    ("output_trend", "undecided", Cause.TOO_FEW_OBSERVATIONS, {"output_lag": samples([], [])}),
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
    ("driver", "invalid", Cause.DRIVER_SILENT, {"driver_reason": "no offers", "driver_silent": True}),
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
LIMITS: list[tuple[str, Cause, dict[str, Any], dict[str, Any]]] = [
    ("driver", Cause.RECORDER_STALLED, {}, {"recorder_stall_s": 2.0, "span_s": 30.0}),
    (
        "driver",
        Cause.RECORDER_STALLED,
        {"recorder_stall_s": 0.6, "span_s": 60.0},
        {"recorder_stall_s": 0.61, "span_s": 60.0},
    ),
    ("driver", Cause.SCHEDULE_DELAY, {"schedule_delay_us_p99": 99_000}, {"schedule_delay_us_p99": 110_000}),
    ("queue_bound", Cause.QUEUE_CUT_BY_MEMORY, {"bound_s": 5.0}, {"bound_s": 5.0, "bound_cut_by_memory": True}),
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
def test_a_limit_lies_where_it_is_set(name: str, code: Cause, within: dict[str, Any], beyond: dict[str, Any]) -> None:
    """Closely within it nothing is found, closely beyond it that check decides."""
    assert judge(evidence(**within)).value == "sustained"
    verdict = judge(evidence(**beyond))
    assert (verdict.decided_by, verdict.cause) == ((name,), code)


def test_what_a_guarantee_allows_is_no_wrong_answer() -> None:
    """The check counts it; one more of the same kind is a fault."""
    repeated = RIGHT.model_copy(update={"duplicate": 12, "delivery": "at_least_once", "allowed": {"duplicate": 12}})
    assert judge(evidence(verification=repeated)).value == "sustained"
    verdict = judge(evidence(verification=repeated.model_copy(update={"duplicate": 13})))
    assert (verdict.cause, check_of(verdict, "answers").value) == (Cause.WRONG_ANSWERS, 1)


def test_a_new_check_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says whether a slow system can fail the check."""

    def salt(_: Evidence) -> Finding:
        return Finding("salt", "failed", Cause.WRONG_ANSWERS, 1, 0, "grains")

    for by_slowness, value in ((False, "not_sustained"), (True, "invalid")):
        monkeypatch.setattr(verdict_module, "CHECKS", (*CHECKS, CheckSpec("salt", salt, by_slowness)))
        verdict = judge(evidence(background_share=0.9))
        assert (verdict.value, verdict.decided_by) == (value, ("salt",))


@pytest.mark.parametrize(("name", "value", "code", "fault"), FAULTS)
def test_each_planted_fault_is_found_by_its_check(name: str, value: str, code: Cause, fault: dict[str, Any]) -> None:
    """One fault in a good trial: that check alone decides, by its code, and there is something to do about it."""
    verdict = judge(evidence(**fault))
    assert (verdict.value, verdict.decided_by, verdict.cause) == (value, (name,), code)
    assert check_of(verdict, name).code == code
    assert advice(verdict)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
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
    assert check_of(verdict, name).code == verdict.cause == Cause.CHECK_FAILED_TO_RUN
