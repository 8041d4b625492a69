"""The whole path on Spark's DStreams: rows, updates and windows, all verified; a Spark that dies."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.trial import TrialSnapshot
from streamgauge.dataflow.builder import source
from streamgauge.engines.spark.session.reports import MS, DStreamProgress
from streamgauge.harness.start_processes import TestBedSettings
from streamgauge.metrics.records import RUNNER
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.child_processes import is_running, send_signal, wait_until
from streamgauge.trial.conductor import testbed_settings
from streamgauge.trial.trial_result import TrialResult
from tests import helpers_broker_trials as over_a_broker
from tests.helpers_broker_trials import WINDOW, check_answers, started, trial
from tests.helpers_verdicts import sentence_against

pytestmark = pytest.mark.spark
ENGINE = "spark-dstream"
BATCHES = {"batch_interval": "500ms"}
RECEIVED = BATCHES | {"block_interval": "50ms"}
OVER = {"memory": BATCHES, "socket": RECEIVED}
"""A transport to the options there."""
# (workload, parameters, options, fewest answers): rows, updates, and windows, also one behind the other
CASES: list[tuple[str, dict[str, str], dict[str, str], int]] = [
    ("filter", {"above": "50"}, {"source": "rows"}, 10_000),
    ("windowed_aggregation", WINDOW, {}, 1000),
    ("windowed_aggregation", WINDOW, {"lowering.aggregate": "window"}, 1000),
    ("stamped_text", {}, {}, 20_000),
    ("trending_topics", {"window": "2s", "frequency": "1s"}, {}, 10),
]
MAKE_TEST = CASES[1]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.long] * (case != MAKE_TEST)) for case in CASES],
    ids=lambda case: "-".join((case[0], *case[2].values())),
)
def test_every_answer_is_verified(tmp_path: Path, case: tuple[str, dict[str, str], dict[str, str], int]) -> None:
    """Of ranges of the queue: rows, updates of keys, and windows that close over several batches; what Spark says of
    its batches is kept.
    """
    workload, parameters, options, rows_least = case
    with started(
        tmp_path, workload, "5k", ENGINE, generators=2, transport="memory", options=BATCHES | options, **parameters
    ) as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder)
        progress = {one.batch: one for one in testbed.engine.batch_progress()}
    check_answers(judged, rows_least)
    check_evidence(judged, progress)
    assert judged.result.settings["batch_interval"] == "500ms"


def check_evidence(judged: TrialResult, progress: dict[int, BatchProgress]) -> None:
    """By the number under which a batch was read and committed; it was read and committed between its begin
    and its end, to the millisecond.
    """
    committed_us = {commit.batch: commit.committed_us for commit in judged.record.trial_log.commits}
    assert committed_us
    assert committed_us.keys() <= progress.keys()
    for one in progress.values():
        assert isinstance(one, DStreamProgress)
        assert one.start_us <= ended_us(one)
    for part in judged.record.trial_log.all_deliveries():
        assert progress[part.batch].start_us <= part.when_us
    for batch, when_us in committed_us.items():
        assert when_us <= ended_us(progress[batch]) + MS


def ended_us(progress: BatchProgress) -> int:
    assert progress.end_us is not None
    return progress.end_us


# (workload, parameters, generators, fewest answers): lines, and behind them what rows of the queue go through too
BY_RECEIVERS: list[tuple[str, dict[str, str], int, int]] = [
    ("stamped_text", {}, 1, 20_000),
    ("filter", {"above": "50"}, 2, 10_000),
    ("identity", {}, 1, 20_000),
    ("count", {"packs": "100"}, 1, 100),
    ("windowed_aggregation", WINDOW, 2, 1000),
]


@pytest.mark.long
@pytest.mark.parametrize("case", BY_RECEIVERS, ids=lambda case: case[0])
def test_what_receivers_take_is_verified(tmp_path: Path, case: tuple[str, dict[str, str], int, int]) -> None:
    """Lines of each generator by a receiver of Spark's own, taken apart natively; windows wait for the slowest."""
    workload, parameters, generators, rows_least = case
    options = RECEIVED | {"back_pressure": "on"}
    with started(
        tmp_path, workload, "5k", ENGINE, generators=generators, transport="socket", options=options, **parameters
    ) as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder)
    check_answers(judged, rows_least)
    assert judged.result.settings["block_interval"] == "50ms"
    assert judged.result.settings["spark.streaming.backpressure.enabled"] == "true"


@pytest.mark.long
def test_a_spark_that_is_killed_ends_the_trial(tmp_path: Path) -> None:
    """With a verdict, not with a defect of ours, and with nothing that runs on; receivers die with it. Over `memory`:
    `tests/engine_conformance/test_engines.py`.
    """
    with started(tmp_path, "identity", "5k", ENGINE, transport="socket", options=RECEIVED) as (
        resolved,
        testbed,
        folder,
    ):
        pids = testbed.engine.pids()

        def kill(_: TrialSnapshot) -> None:
            send_signal(signal.SIGKILL, pids[:1])

        judged = trial(resolved, testbed, folder, on_progress=kill)
        driver = [pid for name, role, pid in testbed.processes() if role == "driver" and name != RUNNER]
        assert driver
    assert "ended" in judged.record.engine_failed
    assert judged.record.engine_failed in sentence_against(judged.result.verdict, "connected")
    assert wait_until(lambda: not any(map(is_running, [*pids, *driver])), 20)


@pytest.mark.long
@pytest.mark.parametrize("transport", OVER)
def test_a_batch_that_fails_ends_the_trial(tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Spark's own reason in the verdict, and right answers until then; Spark itself would go on with the next."""
    monkeypatch.setattr(over_a_broker, "testbed_settings", with_an_overflow)
    with started(tmp_path, "stamped_text", "5k", ENGINE, transport=transport, options=OVER[transport]) as (
        resolved,
        testbed,
        folder,
    ):
        pids = [*testbed.engine.pids(), *(pid for name, _, pid in testbed.processes() if name != RUNNER)]
        judged = trial(resolved, testbed, folder)
    assert "ARITHMETIC_OVERFLOW" in judged.record.engine_failed
    assert "ARITHMETIC_OVERFLOW" in sentence_against(judged.result.verdict, "connected")
    found = judged.result.verification
    assert found is not None
    assert found.matched > 1000
    assert (found.extra, found.duplicate, found.wrong) == (0, 0, 0)
    assert wait_until(lambda: not any(map(is_running, pids)), 20)


def with_an_overflow(resolved: ResolvedExperiment) -> TestBedSettings:
    """The test bed of stamped text, whose system adds to the ids what is too much from the 25,000th on, after 5 s."""
    (records,) = resolved.streams(resolved.experiment.load.rate)
    much = 2**63 - 25_000
    parsed = source("records", records.schema).select(
        id="try_cast(substring(record, 1, 10) AS bigint)",
        created_us="try_cast(substring(record, 12, 12) AS bigint)",
        name="parser",
    )
    since = parsed.select(id="id", since_us=f"created_us + ((id + {much}) - {much}) - id", name="subtract")
    return replace(testbed_settings(resolved), flow=replace(resolved, flow=since.sink("times")).lineage_flow)
