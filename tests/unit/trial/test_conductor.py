"""When trials begin, what the conductor starts and stops, and what it reports."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import OperatorCounts
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.validate import check
from streamgauge.system.machine import cpus
from streamgauge.trial import conductor as trial
from streamgauge.trial.conductor import START_LEAD_US, TrialConductor, next_start
from streamgauge.trial.events import EngineStarting, VerdictReached
from streamgauge.trial.policies import JudgedTrial, SearchTrial
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_recording import append_and_return
from tests.unit.helpers_trials import START, cut_short, done_of

NOW = 1_700_000_000 * US + 300_000


@pytest.mark.parametrize(
    ("reached_us", "gap_us", "start_us"),
    [
        (0, 0, 1_700_000_001 * US),
        (NOW - 2 * US, 12 * US, 1_700_000_011 * US),
        (NOW - 60 * US, 12 * US, 1_700_000_001 * US),
        (NOW - 2 * US, 0, 1_700_000_001 * US),
    ],
)
def test_trials_of_a_test_bed_lie_a_reach_apart(reached_us: int, gap_us: int, start_us: int) -> None:
    """Else a window would hold events of two of them, and the answers of neither would be right."""
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=reached_us)
    assert next_start(testbed, gap_us) == start_us
    assert start_us >= NOW + START_LEAD_US
    assert start_us - reached_us >= gap_us


def test_the_conductor_knows_how_far_apart_batches_are(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the engine that was requested, by the option that is in force; else it waits too short for the last one."""
    intervals: list[float] = []

    def conductor(testbed: Any, plan: Any, spans: Any, chunk_us: int, policy: Any, observe: Any) -> Any:
        intervals.append(policy.interval_s)
        return SimpleNamespace(conduct=lambda: make.story().record(engine_failed="gone"))

    monkeypatch.setattr(trial, "PhaseRunner", conductor)
    monkeypatch.setattr(TrialConductor, "conclude", lambda *_: None)
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0)
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    of_known = {"workload": "filter", "engine": "known", "options": {"batch": "7s"}}
    of_spark = {"workload": "windowed_aggregation", "options": {"trigger": "10 seconds"}}
    for values in (of_known, of_spark):
        resolved = check(build({**values, "load": {"duration": "200s"}}))
        TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert intervals == [7.0, 10.0]


@pytest.mark.skipif(len(cpus()) < 2, reason="there is nothing to choose from")
@pytest.mark.parametrize("isolation", ["pinned", "shared"])
def test_the_runner_of_a_pinned_trial_keeps_off_the_engines_processors(
    isolation: str, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it conducts; what it starts, says of the machine and judges before and after has them all."""
    there, seen = cpus(), []

    def conduct() -> Any:
        seen.append(tuple(cpus()))
        return make.story().record(engine_failed="gone")

    def conclude(*_: Any) -> None:
        seen.append(tuple(cpus()))

    monkeypatch.setattr(trial, "PhaseRunner", lambda *_, **__: SimpleNamespace(conduct=conduct))
    monkeypatch.setattr(TrialConductor, "conclude", conclude)
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0)
    resolved = check(build({"workload": "filter", "engine": "known", "isolation": isolation}))
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert seen == [resolved.driver_cpus or tuple(there), tuple(there)]
    assert isolation == "shared" or set(there) > set(seen[0])


def test_observers_hear_of_start_and_verdict(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start before the processes are up, its end after; the verdict while they still stand, once it is written."""
    heard: list[Any] = []
    record = make.story().record(engine_failed="gone")
    testbed: Any = SimpleNamespace(
        clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0, stage=lambda: "", start=lambda plan: heard.append("up")
    )
    monkeypatch.setattr(trial, "PhaseRunner", lambda *_: SimpleNamespace(conduct=lambda: record))
    judged = TrialResult(make_believe := object(), record, None)
    monkeypatch.setattr(TrialConductor, "conclude", lambda *_: append_and_return(heard, "written", judged))
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    conductor = TrialConductor(resolved, testbed, heard.append)
    conductor.start(1000.0, "starting spark", folder)
    conductor.run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert [one if isinstance(one, str) else type(one) for one in heard if not isinstance(one, EngineStarting)] == [
        "up", "written", VerdictReached,
    ]  # fmt: skip
    assert any(isinstance(one, EngineStarting) and one.note == "starting spark" for one in heard)
    assert (heard[-1].trial.result, heard[-1].testbed) == (make_believe, testbed)
    assert conductor.last_log is record.trial_log


def test_nothing_is_imported_for_a_look() -> None:
    """Four seconds of a core in mid-span once made the second-long batches that left a trial undecided."""
    code = (
        "import sys, numpy; from streamgauge.trial import conductor as trial; from streamgauge.stats import bootstrap\n"
        "trial.prepare(); there = set(sys.modules); times = numpy.arange(50.0)\n"
        "bootstrap.slope_interval(times, numpy.cos(times), 0.983); bootstrap.independent_slope_interval(times, times)\n"
        "print(sorted(set(sys.modules) - there))"
    )
    record = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert record.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("interrupted", "order"),
    [(True, ["evidence 1.5", "stop", "judged"]), (False, ["evidence 30.0", "rows 30.0", "judged"])],
)
def test_a_trial_that_is_interrupted_stops_its_engine_before_all_else(
    interrupted: bool, order: list[str], make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says at once is kept; to wait for it, to judge and to draw beside a busy engine would take long."""
    message: list[str] = []
    record = make.story().record()
    record.interrupted = interrupted
    engine = SimpleNamespace(
        batch_progress=lambda timeout_s: append_and_return(message, f"evidence {timeout_s}", []),
        operator_row_counts=lambda timeout_s: append_and_return(message, f"rows {timeout_s}", []),
    )
    testbed: Any = SimpleNamespace(
        engine=engine, clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0, stop=lambda: message.append("stop")
    )
    monkeypatch.setattr(trial, "PhaseRunner", lambda *_, **__: SimpleNamespace(conduct=lambda: record))
    monkeypatch.setattr(TrialConductor, "conclude", lambda *_: message.append("judged"))
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert message == order


def test_a_trial_that_is_interrupted_while_the_engine_tells_is_kept(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may take half a minute, and nothing of the trial is written before it."""
    message: list[str] = []
    record = make.story().record()

    def evidence(timeout_s: float) -> Any:
        raise KeyboardInterrupt

    testbed: Any = SimpleNamespace(
        engine=SimpleNamespace(batch_progress=evidence, settings=dict), processes=list,
        clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0, stop=lambda: message.append("stop"),
    )  # fmt: skip
    monkeypatch.setattr(trial, "PhaseRunner", lambda *_, **__: SimpleNamespace(conduct=lambda: record))
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    judged = TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert message == ["stop"]
    assert judged.result.verdict.value == "interrupted"
    assert folder.read_result().rate is not None
    assert folder.read_series().num_rows


LOST = "the generators did not keep the plan"


def looked_at_once(
    schedule_delay_us: int, in_search: bool, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, RunFolder]:
    """A trial whose generators offer so late, seen by its conductor 12 s after its start; and its folder.

    As the real conductor, this one ends it there and then where it is reported that it is hopeless.
    """
    record = cut_short(done_of(make, schedule_delay_us=schedule_delay_us), 12 * US)

    def conductor(testbed: Any, plan: Any, spans: Any, chunk_us: int, policy: Any, observe: Any) -> Any:
        def conduct() -> TrialRecord:
            record.early_stop = policy.early_stop_reason(record, START + 12 * US) or ""
            return record

        return SimpleNamespace(conduct=conduct)

    monkeypatch.setattr(trial, "PhaseRunner", conductor)
    engine = SimpleNamespace(
        settings=dict, batch_progress=lambda timeout_s: [], operator_row_counts=lambda timeout_s: OperatorCounts()
    )
    testbed: Any = SimpleNamespace(
        engine=engine, clock=SimpleNamespace(now_us=lambda: START + 12 * US), reached_us=0, folder=tmp_path,
        processes=list,
    )  # fmt: skip
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    kind = SearchTrial if in_search else JudgedTrial
    return TrialConductor(resolved, testbed).run(folder, kind(resolved, 1000.0, fresh=True, duration_s=30.0)), folder


@pytest.mark.parametrize(
    ("schedule_delay_us", "in_search", "early_stop"), [(250_000, True, LOST), (0, True, ""), (250_000, False, "")]
)
def test_a_search_ends_an_invalid_trial_at_once(
    schedule_delay_us: int, in_search: bool, early_stop: str, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search repeats it and does not wait for its end; a run goes on, since its figures show what happened."""
    monkeypatch.setattr(TrialConductor, "conclude", lambda conductor, folder, trial, record, report: record)
    record, _ = looked_at_once(schedule_delay_us, in_search, make, tmp_path, monkeypatch)
    assert record.early_stop == early_stop


def test_a_trial_that_was_ended_as_invalid_is_judged_so(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short, it has too few batches and no answers as well; but a search makes only an invalid trial again."""
    judged, folder = looked_at_once(250_000, True, make, tmp_path, monkeypatch)
    verdict = folder.read_result().verdict
    assert (judged.result.verdict, judged.verified) == (verdict, None)
    assert (verdict.value, verdict.decided_by) == ("invalid", ("driver",))
    assert f"ended early: {LOST}" in folder.read_result().warnings


@pytest.mark.parametrize(("rate_per_s", "chunk_us"), [(1e6, 50_000), (1e5, 10_000)])
def test_each_trial_has_chunks_for_its_own_rate(
    rate_per_s: float, chunk_us: int, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the rates of other trials on its test bed are, or the rate that was requested first."""
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0)

    def conductor(testbed: Any, plan: Any, spans: Any, chunk_us: int, *_: Any) -> None:
        raise KeyboardInterrupt(chunk_us)

    monkeypatch.setattr(trial, "PhaseRunner", conductor)
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    with pytest.raises(KeyboardInterrupt) as caught:
        TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, rate_per_s, fresh=True, duration_s=10.0))
    assert caught.value.args == (chunk_us,)
