"""When trials begin, and what is kept of one whose verification is stopped."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.operator_rows import OperatorCounts, OperatorRows
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary import resources
from streamgauge.metrics.summary.driver import driver_result
from streamgauge.preflight.validate import check
from streamgauge.report.documents.run import write_page
from streamgauge.results.causes import WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.system.machine import cpus
from streamgauge.transports.spi import Chunk
from streamgauge.trial import conclusion, interrupted, progress, stopping_rules
from streamgauge.trial import conductor as trial
from streamgauge.trial.conductor import START_LEAD_US, TrialConductor, next_start
from streamgauge.trial.events import EngineStarting, VerdictReached, Verifying
from streamgauge.trial.extension_policy import JudgedTrial, SearchTrial
from streamgauge.trial.interrupted import NOT_BEGUN, NOT_COUNTED, UNVERIFIED
from streamgauge.trial.progress import snapshot
from streamgauge.trial.result_builder import build_result, cautions
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_recording import append_and_return
from tests.unit.helpers_answers import ROWS, Case
from tests.unit.helpers_trials import START, cut_short, done_of, kinds_in

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


class LateTestBed:
    """A test bed whose sink commits one more batch at its n-th tick after the deadline; 0 for never."""

    def __init__(self, make: Any, at: int) -> None:
        self._make, self._at, self.ticks = make, at, 0

    def tick(self) -> Any:
        self.ticks += 1
        commits = [self._make.commit(99, NOW + 60 * US)] if self.ticks == self._at else []
        return self._make.tick([[], []], [[], []], commits)


@pytest.mark.parametrize(("at", "came"), [(3, True), (0, False)])
def test_results_after_the_deadline_are_late_and_not_lost(
    at: int, came: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while it is looked for is in the log; the look ends with it, or with its time."""
    monkeypatch.setattr(conclusion, "LATE_POLL_S", 0.0)
    monkeypatch.setattr(conclusion, "LATE_S", 0.05 if not at else 60.0)
    testbed: Any = LateTestBed(make, at)
    record = make.story().record()
    before = len(record.trial_log.commits)
    assert conclusion._late_results_came(testbed, record) is came
    assert len(record.trial_log.commits) == before + came
    assert not came or testbed.ticks == at


@pytest.mark.parametrize("state", [{"drained": False}, {"engine_failed": "gone"}])
def test_nothing_is_looked_for_where_more_is_owed_than_a_few_results(make: Any, state: dict[str, Any]) -> None:
    """An engine that died, or has not done with its input, is not late with some results."""
    testbed: Any = LateTestBed(make, 1)
    assert not conclusion._late_results_came(testbed, make.story().record(**state))
    assert testbed.ticks == 0


def test_a_machine_that_was_busy_besides_is_warned_of(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a tenth of it on, whatever the verdict is."""
    monkeypatch.setattr(resources, "machine_percent", lambda: 200.0)
    resolved, record = check(build({"workload": "identity"})), make.story().record()
    for percent, warned in ((20.0, False), (30.0, True)):
        record.trial_log.background = [(make.start + 6 * US, percent)]
        said = dict(cautions(resolved, record, 1000.0)).get(WarningCode.BACKGROUND_LOAD, "")
        assert said.startswith("background processes used 15% of the CPU") is warned
    record.trial_log.background = [(make.start + n * US, 200.0 if 6 <= n < 9 else 0.0) for n in range(3, 15)]
    monkeypatch.setattr(resources, "background_share", lambda _: 0.09)
    assert "used 60% of the CPU for 5 s" in dict(cautions(resolved, record, 1000.0))[WarningCode.BACKGROUND_LOAD]


@pytest.mark.parametrize(("processors", "warned"), [(2, True), (3, False)])
def test_more_generators_than_processors_are_warned_of(
    processors: int, warned: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for each other."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    resolved = check(build({"workload": "identity", "load": {"generators": 3}}))
    warnings = dict(cautions(resolved, make.story().record(), 1000.0))
    said = warnings.get(WarningCode.MORE_GENERATORS_THAN_CORES, "")
    assert said.startswith("3 generators, more than the 2 processors") is warned


@pytest.mark.parametrize(("memory", "warned"), [("1GiB", False), ("40MiB", True)])
def test_a_queue_cut_by_memory_is_warned_of(memory: str, warned: bool, make: Any) -> None:
    """With what restores it."""
    resolved = check(build({"workload": "identity", "load": {"memory": memory, "generators": 1}}))
    warnings = dict(cautions(resolved, make.story().record(), 100_000.0))
    said = warnings.get(WarningCode.QUEUE_CUT_BY_MEMORY, "")
    assert said.endswith("s of the rate (below 10 s the trial is invalid). More --memory restores it") is warned


@pytest.mark.parametrize(("slowed", "warned"), [(0.14, False), (0.16, True), (-0.5, False)])
def test_a_machine_that_became_slower_is_warned_of(
    slowed: float, warned: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the span; one that became faster makes no trend that speaks against the system."""
    monkeypatch.setattr(resources, "slowed_by", lambda _: slowed)
    warnings = dict(cautions(check(build({"workload": "identity"})), make.story().record(), 1000.0))
    said = warnings.get(WarningCode.MACHINE_SLOWED, "")
    assert said.startswith("the machine became 16% slower") is warned


def test_the_conductor_knows_how_far_apart_batches_are(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the engine that was asked for, by the option that is in force; else it waits too short for the last one."""
    told: list[float] = []

    def conductor(testbed: Any, plan: Any, spans: Any, chunk_us: int, policy: Any, observe: Any) -> Any:
        told.append(policy.interval_s)
        return SimpleNamespace(conduct=lambda: make.story().record(engine_failed="gone"))

    monkeypatch.setattr(trial, "PhaseRunner", conductor)
    monkeypatch.setattr(TrialConductor, "conclude", lambda *_: None)
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0)
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    of_known = {"workload": "filter", "engine": "known", "options": {"batch": "7s"}}
    of_spark = {"workload": "windowed_aggregation", "options": {"trigger": "10 seconds"}}
    for asked in (of_known, of_spark):
        resolved = check(build({**asked, "load": {"duration": "200s"}}))
        TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert told == [7.0, 10.0]


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
    said: list[str] = []
    record = make.story().record()
    record.interrupted = interrupted
    engine = SimpleNamespace(
        batch_progress=lambda timeout_s: append_and_return(said, f"evidence {timeout_s}", []),
        operator_row_counts=lambda timeout_s: append_and_return(said, f"rows {timeout_s}", []),
    )
    testbed: Any = SimpleNamespace(
        engine=engine, clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0, stop=lambda: said.append("stop")
    )
    monkeypatch.setattr(trial, "PhaseRunner", lambda *_, **__: SimpleNamespace(conduct=lambda: record))
    monkeypatch.setattr(TrialConductor, "conclude", lambda *_: said.append("judged"))
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert said == order


def test_a_trial_that_is_interrupted_while_the_engine_tells_is_kept(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may take half a minute, and nothing of the trial is written before it."""
    said: list[str] = []
    record = make.story().record()

    def evidence(timeout_s: float) -> Any:
        raise KeyboardInterrupt

    testbed: Any = SimpleNamespace(
        engine=SimpleNamespace(batch_progress=evidence, settings=dict), processes=list,
        clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0, stop=lambda: said.append("stop"),
    )  # fmt: skip
    monkeypatch.setattr(trial, "PhaseRunner", lambda *_, **__: SimpleNamespace(conduct=lambda: record))
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    judged = TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0))
    assert said == ["stop"]
    assert judged.result.verdict.value == "interrupted"
    assert folder.read_result().rate is not None
    assert folder.read_series().num_rows


def test_a_verification_says_what_it_does(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch run takes up to minutes, which were silent; the time goes on meanwhile."""
    monkeypatch.setattr(progress, "REPORT_INTERVAL_S", 0.0)
    heard: list[Verifying] = []
    running = Event()

    def hear(event: Any) -> None:
        heard.append(event)
        if event.note == "running the job in batch" and event.elapsed_s > heard[0].elapsed_s:
            running.set()

    def verified(resolved: Any, testbed: Any, record: Any, keep_in: Any, stage: Any) -> Any:
        stage.follow(lambda: "running the job in batch", "starting Spark for the batch run")
        assert running.wait(10)
        return SimpleNamespace(verification=SimpleNamespace(missing=0))

    monkeypatch.setattr(conclusion, "_verified", verified)
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    asked = JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0)
    conclusion.Conclusion(resolved, SimpleNamespace(), hear, None)._verified(folder, asked, make.story().record())
    assert {type(one) for one in heard} == {Verifying}
    assert heard[-1].elapsed_s > heard[0].elapsed_s >= 0


LOST = "the generators did not keep the plan"


def looked_at_once(
    schedule_delay_us: int, in_search: bool, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, RunFolder]:
    """A trial whose generators offer so late, seen by its conductor 12 s after its start; and its folder.

    As the real conductor, this one ends it there and then where it is told that it is hopeless.
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
    """It is made again, so nobody waits for its end; a run goes on, since its figures show what happened."""
    monkeypatch.setattr(TrialConductor, "conclude", lambda conductor, folder, trial, record, told: record)
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
    """Whatever the rates of other trials on its test bed are, or the rate that was asked for first."""
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=0)

    def conductor(testbed: Any, plan: Any, spans: Any, chunk_us: int, *_: Any) -> None:
        raise KeyboardInterrupt(chunk_us)

    monkeypatch.setattr(trial, "PhaseRunner", conductor)
    resolved, folder = check(build({"workload": "identity"})), RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    with pytest.raises(KeyboardInterrupt) as asked:
        TrialConductor(resolved, testbed).run(folder, JudgedTrial(resolved, rate_per_s, fresh=True, duration_s=10.0))
    assert asked.value.args == (chunk_us,)


def concluded(
    error: BaseException,
    make: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: conclusion.EngineReport | None = None,
) -> tuple[TrialResult, RunFolder]:
    """A steady trial whose verification ends with `error`, and its folder."""
    values: dict[str, Any] = {"workload": "windowed_aggregation", "load": {"rate": 1000, "duration": "10s"}}
    resolved = check(build(values))
    folder = RunFolder.create(tmp_path, "windowed_aggregation", "spark", datetime.now(UTC))
    testbed: Any = SimpleNamespace(
        engine=SimpleNamespace(settings=dict), clock=SimpleNamespace(now_us=lambda: NOW), processes=list,
        folder=tmp_path, append_latencies_us=lambda *_: [],
    )  # fmt: skip

    def ended(*_: Any) -> None:
        raise error

    monkeypatch.setattr(conclusion, "_verified", ended)
    asked, record = JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0), make.story().record()
    return TrialConductor(resolved, testbed).conclude(folder, asked, record, told or conclusion.EngineReport()), folder


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("Query interrupted"), duckdb.InterruptException()])
def test_stopping_the_verification_keeps_what_was_measured(
    stop: BaseException, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while answers are compared: interrupted, with the figures there are, and no stack of anybody's."""
    judged, folder = concluded(stop, make, tmp_path, monkeypatch)
    assert judged.result.verdict.value == folder.read_result().verdict.value == "interrupted"
    assert judged.result.environment["chunk_ms"] == 50
    assert judged.result.rate is not None
    assert judged.result.rate.ingested_per_s == pytest.approx(1000)


@pytest.mark.parametrize(
    "error",
    [
        duckdb.OutOfMemoryException("no memory left\nof 2 GiB"), duckdb.IOException("no space left"),
        OSError(5, "a broken disk"), MemoryError(),
    ],
)  # fmt: skip
def test_a_verification_that_cannot_be_done_leaves_the_trial_undecided(
    error: Exception, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures stand, the verdict says why the answers do not, and the page can be drawn."""
    judged, folder = concluded(error, make, tmp_path, monkeypatch)
    written = folder.read_result()
    reason = (str(error) or "MemoryError").splitlines()[0]
    assert judged.result.verdict.value == written.verdict.value == "undecided"
    assert f"answers: the answers could not be judged: {reason}" in written.verdict.sentence
    assert "no reference" not in written.verdict.advice
    assert written.verification is not None
    assert not written.verification.judged
    assert written.rate is not None
    write_page(folder, "")
    assert (folder.path / "report.html").exists()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), duckdb.IOException('file "a": No space left on device')]
)
def test_a_disk_that_is_full_is_said_once_with_the_way_out(
    error: Exception, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of temporary files and TMPDIR in the head; no advice on processors, and latencies do not repeat it."""
    judged, _ = concluded(error, make, tmp_path, monkeypatch)
    found = judged.result
    assert f"the disk that holds {tempfile.gettempdir()} is full (" in found.verdict.sentence
    assert found.verdict.advice.startswith("free some space, or set TMPDIR=DIR")
    assert "isolation" not in found.verdict.advice
    assert found.latency.notes == ("not counted, because the answers could not be judged",)


def test_an_engine_that_stopped_counting_is_said(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason, in what is kept too; of one that counts to the end, or not at all, nothing is said."""
    rows = [OperatorRows("", batch, "aggregate", 7) for batch in range(8)]
    told = conclusion.EngineReport(counts=OperatorCounts(rows, "Spark forgot it"))
    judged, folder = concluded(KeyboardInterrupt(), make, tmp_path, monkeypatch, told)
    written = folder.read_result()
    said = "rows of operators were not counted to the end: Spark forgot it"
    assert said in judged.result.warnings
    assert said in written.warnings
    silent, _ = concluded(KeyboardInterrupt(), make, tmp_path / "other", monkeypatch)
    assert not any("counted" in warning for warning in silent.result.warnings)


def test_a_defect_of_ours_is_not_hidden(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the machine lacks, or what the reference says, leaves answers unjudged."""
    with pytest.raises(RuntimeError, match="defect"):
        concluded(RuntimeError("a defect"), make, tmp_path, monkeypatch)


# --- what is left of a trial that was stopped ---


def of_one_batch(asked: Case) -> list[pa.Table]:
    """The right answers, all of them in a batch that is committed in the measured span."""
    return [*[asked.answer().slice(0, 0)] * 4, asked.answer()]


def stopped(
    asked: Case, tmp_path: Path, again: RunFolder | None = None, **settings: Any
) -> tuple[TrialResult, RunFolder]:
    """A trial that Ctrl-C ended, and its folder: a new one, or that of a trial which is made `again`."""
    folder = again or RunFolder.create(tmp_path / "runs", "a", "b", datetime.now(UTC))
    asked.record.interrupted, asked.record.drained = True, False
    clock = SimpleNamespace(now_us=lambda: NOW)
    testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=dict), clock=clock, folder=tmp_path, processes=list)
    asked_for = JudgedTrial(asked.resolved, 1000.0, fresh=True, duration_s=10.0, **settings)
    return TrialConductor(asked.resolved, testbed).conclude(
        folder, asked_for, asked.record, conclusion.EngineReport()
    ), folder


def test_a_stopped_trial_has_the_latencies_of_what_came(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """Ctrl-C in the measured span: in result.json, the series, the log and the page, said to be unverified; and the
    results, where they were asked for.
    """
    asked = case(ROWS)
    asked.receive(make, rows=of_one_batch(asked))
    judged, folder = stopped(asked, tmp_path, keep_results=True)
    written = folder.read_result()
    assert judged.result == written
    assert (written.verdict.value, judged.verified) == ("interrupted", None)
    assert written.latency.event_time_us is not None
    assert written.latency.event_time_us.mean == pytest.approx(US, rel=0.01)
    assert UNVERIFIED in written.latency.notes
    assert written.verification is not None
    assert not written.verification.judged
    assert folder.read_series()["results"].to_pylist().count(0) < folder.read_series().num_rows
    assert "event_time" in kinds_in(folder.read_hlog() or "")
    assert pq.read_metadata(folder.path / "results.parquet").num_rows == asked.answer().num_rows
    write_page(folder, "")
    assert "Latencies are unverified" in (folder.path / "report.html").read_text()


def test_a_trial_stopped_in_its_warm_up_says_so(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """No latency could be there, so its results are not looked at."""
    asked = case(ROWS)
    asked.receive(make, rows=of_one_batch(asked))
    cut_short(asked.record, 3 * US)
    judged, folder = stopped(asked, tmp_path)
    assert judged.result.latency == Latencies(notes=(NOT_BEGUN,)) == folder.read_result().latency
    assert folder.read_hlog() is None


def test_a_second_stop_ends_the_counting_and_loses_nothing_else(
    case: Callable[..., Case], make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is whole but for its latencies, and the report can be drawn."""

    def again(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupted, "latencies_without_verification", again)
    judged, folder = stopped(case(ROWS), tmp_path)
    assert judged.result == folder.read_result()
    assert judged.result.latency == Latencies(notes=(NOT_COUNTED,))
    assert judged.result.rate is not None


def test_a_trial_that_is_made_again_shows_nothing_of_the_one_before(
    case: Callable[..., Case], make: Any, tmp_path: Path
) -> None:
    """A search that goes on makes a stopped trial again in its folder, and that one may end before it has latencies."""
    asked = case(ROWS)
    asked.receive(make, rows=of_one_batch(asked))
    _, folder = stopped(asked, tmp_path, keep_results=True)
    assert folder.read_hlog()
    cut_short(asked.record, 3 * US)
    stopped(asked, tmp_path, again=folder)
    left = {path.name for path in folder.path.iterdir()}
    assert left == {"engine", "result.json", "series.parquet"}


@pytest.mark.parametrize("now_us", range(200_000, 8 * US, 333_000))
@pytest.mark.parametrize("chunk_us", [10_000, 50_000, 100_000])
def test_progress_shows_the_rate_of_whole_chunks(make: Any, now_us: int, chunk_us: int) -> None:
    """Of a steady plan it is the rate at any moment, wherever in a chunk that is; of two generators the sum."""
    record = TrialRecord(make.story().trial_log(), TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US))
    record.trial_log.chunks = [chunks_until(now_us, chunk_us) for _ in range(2)]
    assert snapshot(record, START + now_us, "measured").offered_per_s == pytest.approx(1000)


def test_progress_shows_that_a_generator_stands_still(make: Any) -> None:
    """Nothing for three seconds, of the five that are looked at; then for longer than these."""
    record = TrialRecord(make.story().trial_log(), TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US))
    record.trial_log.chunks = [chunks_until(6 * US, 50_000)]
    assert snapshot(record, START + 9 * US, "measured").offered_per_s == pytest.approx(1000 / (5.0 - 0.05 - 0.3))
    assert snapshot(record, START + 12 * US, "measured").offered_per_s == 0


def chunks_until(now_us: int, chunk_us: int) -> list[Chunk]:
    """Those of 500 events/s that were whole by then."""
    ends = range(chunk_us, now_us + 1, chunk_us)
    return [Chunk(START + end - chunk_us, START + end, chunk_us // 2000, START + end) for end in ends]


def test_progress_says_why_a_trial_takes_longer(make: Any) -> None:
    """Longer warm-up, extended span, Ctrl-C."""
    record = TrialRecord(make.story().trial_log(), TrialSpans(START, START + 5 * US, START + 35 * US, START + 40 * US))
    assert snapshot(record, START + US, "measured").note == ""
    record.prolong_warmup(10 * US, stopping_rules.FIRST_BATCH)
    record.prolong_warmup(5 * US, stopping_rules.DRAINING)
    assert (
        snapshot(record, START + US, "measured").note
        == "warm-up 15 s longer, because the engine's backlog was still draining"
    )
    record.extend_span(10 * US, "evidence")
    assert snapshot(record, START + US, "measured").note.endswith("; extended, because evidence was undecided")
    record.extend_span(10 * US, "backlog trend and output trend")
    both = "; extended, because backlog trend and output trend were undecided"
    assert snapshot(record, START + US, "measured").note.endswith(both)
    record.interrupted = True
    assert snapshot(record, START + US, "measured").note.startswith("stopping")


def test_progress_says_that_the_rate_still_rises(make: Any) -> None:
    """To what, as long as it is a warm-up and below that; else it looks as if the generators failed."""
    record = done_of(make, profile="ramp:9k")
    told = [snapshot(record, START + second * US, "measured").note for second in (1, 10)]
    assert told[0].startswith("rising to 1.")
    assert told[1] == ""
    assert snapshot(done_of(make), START + US, "measured").note == ""


def test_progress_shows_the_median_of_the_latest_batch(make: Any) -> None:
    """A few batches carry no p99, so none is shown that the result would not print."""
    record = TrialRecord(make.story().trial_log(), TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US))
    record.trial_log.commits = [
        make.commit(batch, START + 2 * US, latency_us_p50=late_us) for batch, late_us in enumerate((3e5, 9e5, None))
    ]
    assert snapshot(record, START + 3 * US, "measured").event_time_p50_us == 9e5


def test_a_trial_keeps_what_its_job_was(make: Any, tmp_path: Path) -> None:
    """The digests of a user job's files go into its result, as the experiment does."""
    resolved = check(build({"workload": "filter", "engine": "known"}))
    resolved = replace(resolved, workload=replace(resolved.workload, files={"job.py": "a" * 64}))
    testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=dict), processes=list)
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    record = make.story().record(engine_failed="gone")
    assert build_result(resolved, testbed, folder, record, 1000.0, None).job_files == {"job.py": "a" * 64}


@pytest.mark.parametrize(("asked", "in_force", "expected", "warned"), [
    ({}, {}, ([0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]), "share cores 0-3,"),
    ({"cpus": {"driver": "0", "sut": "1-3"}}, {}, ([0], [1, 2, 3], []), ""),
    ({"cpus": {"driver": "0", "sut": "1-3"}}, {7: {1, 2}, 8: {3}}, ([0], [1, 2, 3], []), ""),
    ({"cpus": {"driver": "0", "sut": "1"}}, {7: {1}, 8: {0, 1}}, ([0], [0, 1], [0]), "share core 0,"),
    ({"cpus": {"driver": "0-1", "sut": "1-3"}}, {7: {1, 2, 3}}, ([0, 1], [1, 2, 3], [1]), "share core 1,"),
])  # fmt: skip
def test_a_result_says_which_cores_both_sides_share(
    asked: dict[str, Any], in_force: dict[int, set[int]], expected: Any, warned: str, make: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As the system has them in force, executors of a cluster included; as planned, if the processes have ended."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: in_force.get(pid, {0, 1, 2, 3}))
    resolved = check(build({"workload": "filter", "engine": "known", **asked}))
    processes = [("runner", "driver", 1), *(("sut", "sut", pid) for pid in in_force)]
    testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=dict), processes=lambda: processes)
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    result = build_result(resolved, testbed, folder, make.story().record(engine_failed="gone"), 1000.0, None)
    assert tuple(result.environment[f"{side}_cpus"] for side in ("driver", "sut", "shared")) == expected
    assert [warned in warning for warning in result.warnings if "share core" in warning] == [True] * bool(warned)


def test_a_result_says_its_profile_and_what_is_not_the_engines_own(make: Any, tmp_path: Path) -> None:
    """Of the engine's settings; those of the transport are its own."""
    asked = {"workload": "filter", "tuning": "idiomatic", "transport": "kafka", "load": {"generators": 1}}
    resolved = check(build(asked))
    in_force = {"source": "rows", "trigger": "2 seconds", "spark.ui.enabled": "false"}
    testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=lambda: in_force), processes=list)
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    result = build_result(resolved, testbed, folder, make.story().record(engine_failed="gone"), 1000.0, None)
    assert (result.tuning, result.changed_settings) == ("idiomatic", ("trigger", "spark.ui.enabled"))
    assert "encoding=json" in result.settings["producer"]


def test_a_result_says_what_of_own_data_could_be_taken(make: Any, tmp_path: Path) -> None:
    """Counted in `data`, and in words in the notes, by what the trial offered."""
    file = tmp_path / "a.csv"
    file.write_text("user_id,gem_pack_id,price\n1,2,much\n1,2,3\n")
    resolved = check(build({"workload": "filter", "engine": "known", "parameters": {"data": str(file)}}))
    record = make.story().record(engine_failed="gone")
    record.trial_log.plan = replace(record.trial_log.plan, streams=resolved.streams(1000.0))
    testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=dict), processes=list)
    folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
    result = build_result(resolved, testbed, folder, record, 1000.0, None)
    (data,) = result.data
    assert data.rounds == record.trial_log.plan.planned_events(record.spans.start_us, record.offered_until()) / 2
    assert [(column.name, column.unreadable) for column in data.columns if column.unreadable] == [("price", 1)]
    assert "data of purchases: price is null in 1 of 2 rows (unreadable value: 1)" in result.notes


def asked_of_a_broker(make: Any, answer: Any, **record: Any) -> tuple[Result, TrialRecord]:
    """A result after the broker was asked when it had events."""

    def asked(*_: Any) -> list[int]:
        if isinstance(answer, BaseException):
            raise answer
        return list(answer)

    conducted = make.story().record(**record)
    testbed: Any = SimpleNamespace(append_latencies_us=asked)
    driver = driver_result(conducted)
    base = Result(
        run_id="r", start_time="", workload="identity", engine="spark", isolation="shared", experiment={},
        environment={}, settings={}, verdict=Verdict(value="interrupted", sentence=""), driver=driver,
    )  # fmt: skip
    return conclusion._with_appends(testbed, conducted, base), conducted


def test_when_the_broker_had_events_is_told(make: Any) -> None:
    """Of a trial that came to its end; a broker that does not say is a warning, and no figure."""
    told, _ = asked_of_a_broker(make, [1000, 3000])
    assert told.driver is not None
    assert told.driver.append_latency_us is not None
    assert told.driver.append_latency_us.p50 == 2000
    silent, _ = asked_of_a_broker(make, DriverError("no answer"))
    assert silent.driver is not None
    assert silent.driver.append_latency_us is None
    assert silent.warnings == ("the broker's append times are unknown: no answer",)
    failed, _ = asked_of_a_broker(make, AssertionError("asked all the same"), driver_failed="the broker ended")
    assert failed.warnings == ()


def test_stopping_while_the_broker_is_asked_is_an_interrupted_trial(make: Any) -> None:
    """With all that was measured."""
    told, record = asked_of_a_broker(make, KeyboardInterrupt())
    assert record.interrupted
    assert told.driver is not None
