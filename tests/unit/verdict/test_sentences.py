"""What verdicts and checks say: one file of sentences, of trials with one fault each and of some with more."""

from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.config.limits import parse_limit
from streamgauge.results.codes import WarningCode
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.text.sentences import WARNINGS, in_words, sentence
from streamgauge.results.verdict import BackgroundLoad, Remark, Verdict
from streamgauge.verdict.verdict import judge
from tests.helpers_golden import assert_golden
from tests.unit.verdict.helpers_evidence import (
    LATENCY,
    LEVEL,
    RATE,
    RIGHT,
    SECONDS,
    evidence,
    lag,
    ramp,
    samples,
    sink,
)
from tests.unit.verdict.test_limit_checks import SHORT, of_updates
from tests.unit.verdict.test_planted_faults import FAULTS
from tests.unit.verdict.test_several_sinks import about
from tests.unit.verdict.test_spare_time import batches, undecided
from tests.unit.verdict.test_trend_checks import falling_then_growing
from tests.unit.verdict.test_verdict import WRONG_TOO

GUARANTEED = {"matched": 1, "missing": 9, "delivery": "at_most_once", "allowed": {"missing": 9}}
WRONG_SINK = {"verification": RIGHT.model_copy(update={"expected": 20, "missing": 2, "wrong": 35, "wrong_columns": {
    "price": 35}}), "sinks": (sink("dear"), sink("cheap", missing=2).model_copy(update={"rows": 0}))}  # fmt: skip
NOTHING = RIGHT.model_copy(update={"expected": 0, "matched": 0})
SPARE = undecided((batches(1.4),))
MORE: dict[str, dict[str, Any]] = {
    "nothing wrong": {},
    "interrupted": {"interrupted": True},
    "no latency judged": {"latency": ()},
    "a rate that varies": {"latency": (), "steady": False},
    "a guarantee": {"verification": RIGHT.model_copy(update=GUARANTEED)},
    "wrong answers of a built-in workload": {"verification": WRONG_TOO, "user_job": False},
    "wrong answers too": {"verification": WRONG_TOO, "core_wait_us": 50_000.0},
    "a wrong sink": WRONG_SINK,
    "driver failed and system died": {"delivery_share": 0.6, "sut_alive": False, "sut_reason": "out of memory"},
    "full in the warm-up": {"overflowed": True, "span_began": False, "batches": 0, "backlog": samples([], []),
                            "planned_per_s": np.zeros(0)},
    "full by a backlog that grows": {"overflowed": True, "backlog": ramp(0.05)},
    "full by a jump of the rate": {"overflowed": True, "backlog": ramp(0.05), "steady": False, "latency": ()},
    "two faults of the driver": {"schedule_delay_us_p99": 150_000, "receive_share": 0.6},
    "no wait for a core known": {"core_wait_us": np.nan},
    "slow beside a busy driver": {"backlog": ramp(0.05), "delivery_share": 0.3},
    "slow beside background load": {"backlog": ramp(0.05), "background_share": 0.4},
    "open beside background load": {"backlog": ramp(0.01), "background_share": 0.103},
    "slow beside a burst": {"backlog": ramp(0.05), "background_share": 0.08, "background_burst_share": 0.58},
    "driver slowed by background load": {"core_wait_us": 50_000.0, "background_share": 0.8},
    "rejected program beside background load and a late driver": {
        "sut_alive": False, "sut_rejected": True, "sut_reason": "no message came", "core_wait_us": 50_000.0,
        "background_share": 0.8},
    "driver ended beside background load": {"driver_reason": "ended", "background_share": 0.4},
    "silent generator beside background load": {
        "driver_reason": "the driver offered nothing to partition 0", "driver_silent": True, "background_share": 0.4},
    "hardly read": {"ingested_share": 0.01},
    "a span too short": SHORT,
    "start-up backlog and little evidence": {"draining_at_start": True, "batches": 3, "windows_closed": 4},
    "two aborted reads and a retried task": {"aborted_reads": 2, "retried_tasks": 1},
    "shrinking": {"backlog": ramp(-0.0033), "output_lag": lag(-0.03), "latency": (ramp(-0.02),)},
    "a longer trial decides": {"backlog": ramp(0.0, noise_s=1.0)},
    "no trial decides": {"backlog": ramp(0.01)},
    "a lag that turned": {"output_lag": falling_then_growing(12, 0.02)},
    "time left over": {"backlog": SPARE.backlog, "work": SPARE.work},
    "latency within its drift": {"latency": (ramp(0.03),), "latency_drift_s": 5.0},
    "latency not shown to fail": {"latency": (ramp(0.01),)},
    "one of two queries": {"backlog": (about(ramp(0.0), "dear"), about(ramp(0.05), "counts"))},
    "one of two queries without results": {
        "output_lag": (about(lag(0.0), "dear"), about(samples([], []), "counts"))},
    "results fall behind at commits": {"output_lag_at_commits": (lag(0.03),)},
    "nothing due and nothing came": {"verification": NOTHING, "sinks": (sink("results").model_copy(
        update={"rows": 0}),)},
    "a silent sink": {"silent_sinks": ("counts",)},
    "a check that crashed": {"schedule_delay_us_p99": "late"},
    "a number that is unknown": {"backlog_max_s": float("nan")},
    "limits of two sinks": {"levels": (LEVEL,), "sinks": (sink("dear"), sink("slow", 3e6))},
    "a limit without such a latency": {"levels": (parse_limit("closing_delay_p99 <= 2s"),)},
    "a limit without results": {"levels": (LEVEL,), "latencies": Latencies(event_time_us=Latency())},
    "a limit and a lower percentile": {"levels": (parse_limit("p99 <= 0.9s"),), "latencies": Latencies(
        event_time_us=LATENCY.model_copy(update={"p99": None}))},
    "a limit on the largest": {"levels": (parse_limit("max <= 2s"),), "latencies": Latencies(
        event_time_us=LATENCY.model_copy(update={"max": None}))},
    "limits on updates": {"latencies": of_updates(), "levels": tuple(
        map(parse_limit, ("p50 <= 3s", "p90 <= 1s", "p99 <= 1s", "p99_9 <= 3s")))},
    "limits on updates that did not all arrive": {"latencies": of_updates(lower_bounds=7), "levels": (
        parse_limit("p50 <= 3s"),)},
    "a limit on updates of unknown batches": {"levels": (LEVEL,), "latencies": of_updates().model_copy(
        update={"until_counted_us": Latency(note="not known: no batch is")})},
    "seconds below the plan": {"offered_per_s": np.where(SECONDS == 30, 0.9897 * RATE, RATE)},
}  # fmt: skip


WARNED: dict[WarningCode, dict[str, Any]] = {
    WarningCode.SHARED_CORES: {"cores": "cores 0-3"},
    WarningCode.QUEUE_CUT_BY_MEMORY: {"bound_s": 8.0, "least_s": 10},
    WarningCode.MORE_GENERATORS_THAN_CORES: {"generators": "3 generators, more than the 2 processors"},
    WarningCode.ENDED_EARLY: {"reason": "the queue's bound was reached"},
    WarningCode.WENT_ON: {"reason": "the backlog grows by 40.0% of the rate"},
    WarningCode.WARMUP_EXTENDED: {"extended_s": 5, "reasons": "the engine was still getting faster"},
    WarningCode.BACKGROUND_LOAD: {"load": BackgroundLoad(0.15, 0.1)},
    WarningCode.MACHINE_SLOWED: {"slowed": 0.16},
    WarningCode.PARTITIONS_WITHOUT_KEYS: {
        "empty": 2, "partitions": 8, "stream": "clicks", "key": "user_id", "shown": ("1", "7")},
    WarningCode.PARTITIONS_APART: {"skew_s": 5.04, "delay_s": 2.0},
    WarningCode.READ_TWICE: {"stream": "clicks", "times": 2.0, "n": 2, "sinks": "a, b; c"},
    WarningCode.DONE_TWICE: {
        "operators": ("sound", "dear"), "several": True, "times": "twice", "queries": "q0 (a, b), q1 (c)"},
    WarningCode.SPAN_EXTENDED: {"times": "once", "checks": "backlog trend and evidence"},
    WarningCode.LAG_UNKNOWN: {"text": "the group has committed no offset"},
    WarningCode.FOREIGN_MESSAGES: {"text": "3 messages are no results"},
    WarningCode.OPERATOR_ROWS_INCOMPLETE: {"reason": "Spark forgot it"},
    WarningCode.BROKER_TIMES_UNKNOWN: {"reason": "no answer"},
    WarningCode.ROWS_DROPPED_AS_LATE: {"rows": 1234, "skew_s": 0.73, "delay_s": 0.8, "is_user_job": True},
    WarningCode.RESULTS_NOT_STORED: {"reason": "no space left"},
    WarningCode.TRIAL_BACKGROUND_LOAD: {"trials": (2, 3, 4, 7), "shares": (0.101, 0.4), "limit": 0.1},
    WarningCode.MACHINE_CHANGED: {"fast": 1, "fast_us": 1000.0, "slow": 2, "slow_us": 1200.0},
}  # fmt: skip


def test_every_warning_has_a_sentence() -> None:
    """In the order of their table."""
    assert list(WARNED) == list(WARNINGS)
    assert set(WARNINGS) == set(WarningCode)
    text = "".join(f"{code}: {sentence(Remark(code, facts))}\n" for code, facts in WARNED.items())
    assert_golden(Path(__file__).parent / "golden" / "warnings.txt", text)


def test_sentences() -> None:
    """Each verdict with its advice, and the checks that say something else than in a trial with nothing wrong."""
    usual = {check.name: check.sentence for check in in_words(judge(evidence())).checks}
    scenes = [*((f"{name}: {code}", fault) for name, _, code, fault in FAULTS), *MORE.items()]
    text = "\n".join(_scene(name, in_words(judge(evidence(**fault))), usual) for name, fault in scenes)
    assert_golden(Path(__file__).parent / "golden" / "sentences.txt", text)


def _scene(name: str, verdict: Verdict, usual: dict[str, str]) -> str:
    checks = [
        f"  {check.name} {check.state} {check.code}: {check.sentence}\n"
        for check in verdict.checks
        if name == "nothing wrong" or check.sentence != usual.get(check.name)
    ]
    return f"{name}\n  {verdict.sentence}\n  next: {verdict.advice}\n{''.join(checks)}"
