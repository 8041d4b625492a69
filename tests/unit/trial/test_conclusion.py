"""The end of a trial: the engine's report, the comparison of answers, late results, and failures on the way."""

from __future__ import annotations

import errno
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
from streamgauge.core.engine_reports import BatchProgress, OperatorCounts, OperatorRows, SeriesSample
from streamgauge.core.errors import DriverError
from streamgauge.engines.registry import entry
from streamgauge.metrics.resources import driver_result
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.validate import check
from streamgauge.report.documents.run import write_page
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.trial import conclusion, interrupted, progress
from streamgauge.trial.conclusion import engine_report
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.events import Verifying
from streamgauge.trial.interrupted import NOT_BEGUN, NOT_COUNTED, UNVERIFIED
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.trial_result import TrialResult
from tests.unit.helpers_answers import ROWS, Case
from tests.unit.helpers_trials import cut_short, done_of, kinds_in

NOW = 1_700_000_000 * US + 300_000


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
    policy = JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0)
    conclusion.Conclusion(resolved, SimpleNamespace(), hear, None)._verified(folder, policy, make.story().record())
    assert {type(one) for one in heard} == {Verifying}
    assert heard[-1].elapsed_s > heard[0].elapsed_s >= 0


def concluded(
    error: BaseException,
    make: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: conclusion.EngineReport | None = None,
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
    policy, record = JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0), make.story().record()
    return TrialConductor(resolved, testbed).conclude(
        folder, policy, record, report or conclusion.EngineReport()
    ), folder


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
    if isinstance(error, MemoryError):
        write_page(folder, "")
        assert (folder.path / "report.html").exists()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), duckdb.IOException('file "a": No space left on device')]
)
def test_a_disk_that_is_full_is_reported_once_with_the_way_out(
    error: Exception, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of temporary files and TMPDIR in the head; no advice on processors, and latencies do not repeat it."""
    judged, _ = concluded(error, make, tmp_path, monkeypatch)
    found = judged.result
    assert f"the disk that holds {tempfile.gettempdir()} is full (" in found.verdict.sentence
    assert found.verdict.advice.startswith("free some space, or set TMPDIR=DIR")
    assert "isolation" not in found.verdict.advice
    assert found.latency.notes == ("not counted, because the answers could not be judged",)


def test_an_engine_that_stopped_counting_is_reported(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason, in what is kept too; of one that counts to the end, or not at all, nothing is reported."""
    rows = [OperatorRows("", batch, "aggregate", 7) for batch in range(8)]
    report = conclusion.EngineReport(counts=OperatorCounts(rows, "Spark forgot it"))
    judged, folder = concluded(KeyboardInterrupt(), make, tmp_path, monkeypatch, report)
    written = folder.read_result()
    message = "rows of operators were not counted to the end: Spark forgot it"
    assert message in judged.result.warnings
    assert message in written.warnings
    silent, _ = concluded(KeyboardInterrupt(), make, tmp_path / "other", monkeypatch)
    assert not any("counted" in warning for warning in silent.result.warnings)


def test_steps_and_series_are_the_engines_own(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its files and on the page, by the engine's names; a declared step has a label and a column in any case."""
    plugin, start_us = entry("spark"), NOW // US * US
    steps = {"sort": "sorting", "merge": "merging runs"}
    monkeypatch.setattr(plugin, "capabilities", replace(plugin.capabilities, batch_steps=steps))
    times = [start_us + second * US for second in range(8)]
    took_us = {"write_out": 100_000, "merge": 500_000}
    batches = [BatchProgress("", number, at, at + 900_000, took_us) for number, at in enumerate(times)]
    series = [SeriesSample(at, "watermark behind", "s", 2.5, "aggregate") for at in times]
    report = conclusion.EngineReport(batches, series=series)
    _, folder = concluded(KeyboardInterrupt(), make, tmp_path, monkeypatch, report)
    columns = pq.read_schema(folder.path / "engine" / "batches.parquet").names
    assert [name for name in columns if name.endswith("_ms")] == ["sort_ms", "merge_ms", "write_out_ms", "trigger_ms"]
    assert folder.read_engine_table("series")["value"].to_pylist() == [2.5] * 8
    page = write_page(folder, None).read_text()
    assert all(text in page for text in ("merging runs", "write out", "watermark behind (s)", "aggregate"))
    assert "sorting" not in page


def test_a_defect_of_ours_is_not_hidden(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the machine lacks, or what the reference says, leaves answers unjudged."""
    with pytest.raises(RuntimeError, match="defect"):
        concluded(RuntimeError("a defect"), make, tmp_path, monkeypatch)


# --- what is left of a trial that was stopped ---


def of_one_batch(trial: Case) -> list[pa.Table]:
    """The right answers, all of them in a batch that is committed in the measured span."""
    return [*[trial.answer().slice(0, 0)] * 4, trial.answer()]


def stopped(
    trial: Case, tmp_path: Path, again: RunFolder | None = None, **settings: Any
) -> tuple[TrialResult, RunFolder]:
    """A trial that Ctrl-C ended, and its folder: a new one, or that of a trial which is made `again`."""
    folder = again or RunFolder.create(tmp_path / "runs", "a", "b", datetime.now(UTC))
    trial.record.interrupted, trial.record.drained = True, False
    clock = SimpleNamespace(now_us=lambda: NOW)
    testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=dict), clock=clock, folder=tmp_path, processes=list)
    policy = JudgedTrial(trial.resolved, 1000.0, fresh=True, duration_s=10.0, **settings)
    return TrialConductor(trial.resolved, testbed).conclude(
        folder, policy, trial.record, conclusion.EngineReport()
    ), folder


def test_a_stopped_trial_has_the_latencies_of_what_came(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """Ctrl-C in the measured span: in result.json, the series, the log and the page, said to be unverified; and the
    results, where they were requested.
    """
    trial = case(ROWS)
    trial.receive(make, rows=of_one_batch(trial))
    judged, folder = stopped(trial, tmp_path, keep_results=True)
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
    assert pq.read_metadata(folder.path / "results.parquet").num_rows == trial.answer().num_rows
    write_page(folder, "")
    assert "Latencies are unverified" in (folder.path / "report.html").read_text()


def test_a_trial_stopped_in_its_warm_up_says_so(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """No latency could be there, so its results are not looked at."""
    trial = case(ROWS)
    trial.receive(make, rows=of_one_batch(trial))
    cut_short(trial.record, 3 * US)
    judged, folder = stopped(trial, tmp_path)
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
    trial = case(ROWS)
    trial.receive(make, rows=of_one_batch(trial))
    _, folder = stopped(trial, tmp_path, keep_results=True)
    assert folder.read_hlog()
    cut_short(trial.record, 3 * US)
    stopped(trial, tmp_path, again=folder)
    left = {path.name for path in folder.path.iterdir()}
    assert left == {"engine", "result.json", "series.parquet"}


def result_with_broker_times(make: Any, answer: Any, **record: Any) -> tuple[Result, TrialRecord]:
    """A result after the broker was requested when it had events."""

    def append_latencies(*_: Any) -> list[int]:
        if isinstance(answer, BaseException):
            raise answer
        return list(answer)

    conducted = make.story().record(**record)
    testbed: Any = SimpleNamespace(append_latencies_us=append_latencies)
    driver = driver_result(conducted)
    base = Result(
        run_id="r", start_time="", workload="identity", engine="spark", isolation="shared", experiment={},
        environment={}, settings={}, verdict=Verdict(value="interrupted", sentence=""), driver=driver,
    )  # fmt: skip
    return conclusion._with_appends(testbed, conducted, base), conducted


def test_when_the_broker_had_events_is_reported(make: Any) -> None:
    """Of a trial that came to its end; a broker that does not say is a warning, and no figure."""
    result, _ = result_with_broker_times(make, [1000, 3000])
    assert result.driver is not None
    assert result.driver.append_latency_us is not None
    assert result.driver.append_latency_us.p50 == 2000
    silent, _ = result_with_broker_times(make, DriverError("no answer"))
    assert silent.driver is not None
    assert silent.driver.append_latency_us is None
    assert silent.warnings == ("the broker's append times are unknown: no answer",)
    failed, _ = result_with_broker_times(make, AssertionError("asked all the same"), driver_failed="the broker ended")
    assert failed.warnings == ()


def test_stopping_while_the_broker_is_asked_is_an_interrupted_trial(make: Any) -> None:
    """With all that was measured."""
    result, record = result_with_broker_times(make, KeyboardInterrupt())
    assert record.interrupted
    assert result.driver is not None


class SlowReports:
    """A test bed whose engine reports its last batch at the n-th request only."""

    def __init__(self, numbers: list[int], query: str, at: int) -> None:
        self._numbers, self._query, self._at, self.requests = numbers, query, at, 0
        self.engine = SimpleNamespace(
            batch_progress=self._progress, operator_row_counts=lambda timeout_s: OperatorCounts()
        )

    def _progress(self, timeout_s: float) -> list[BatchProgress]:
        self.requests += 1
        numbers = self._numbers if self.requests >= self._at else self._numbers[:-1]
        return [BatchProgress(query=self._query, batch=number, start_us=0, late_rows=number) for number in numbers]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "LATE_POLL_S", 0.0)


@pytest.mark.parametrize(("drained", "requests"), [(True, 3), (False, 1)])
def test_the_report_of_the_last_batch_is_awaited(make: Any, drained: bool, requests: int) -> None:
    """Rows that it dropped as late would else be called missing without a reason."""
    record = done_of(make)
    record.drained = drained
    commits = record.trial_log.commits
    testbed: Any = SlowReports(sorted(commit.batch for commit in commits), commits[0].query, at=3)
    report = engine_report(testbed, record)
    assert testbed.requests == requests
    assert (report.progress[-1].batch == commits[-1].batch) is drained


def test_series_come_from_engines_that_have_some(make: Any) -> None:
    testbed: Any = SlowReports([], "", at=1)
    assert engine_report(testbed, done_of(make)).series == []
    samples = [SeriesSample(1, "rows", "1/s", 2.0)]
    testbed.engine.series = lambda timeout_s: samples
    assert engine_report(testbed, done_of(make)).series == samples


def test_an_engine_without_reports_is_not_awaited(make: Any) -> None:
    record = done_of(make)
    record.drained = True
    testbed: Any = SlowReports([], "", at=1)
    assert engine_report(testbed, record).progress == []
    assert testbed.requests == 1


def test_a_report_that_never_comes_ends_the_wait(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "LAST_BATCH_S", 0.0)
    record = done_of(make)
    record.drained = True
    commits = record.trial_log.commits
    testbed: Any = SlowReports(sorted(commit.batch for commit in commits), commits[0].query, at=1000)
    assert engine_report(testbed, record).progress[-1].batch == commits[-1].batch - 1
