"""The end of a trial: the engine's report, the comparison of answers, late results, and failures on the way."""

import errno
import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress, OperatorCounts, OperatorRows, SeriesSample
from streamgauge.core.errors import DriverError
from streamgauge.engines.registry import entry
from streamgauge.metrics.resources import driver_result
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.settings_checks import check
from streamgauge.report.documents.run import write_page
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.trial import conclusion, interrupted, progress
from streamgauge.trial.events import StepProgress, ignore
from streamgauge.trial.policies import JudgedTrial
from tests.unit.helpers_answers import ROWS, Case
from tests.unit.helpers_trials import cut_short, done_of, kinds_in

NOW = 1_700_000_000 * US + 300_000


def late_testbed(make: Any, at: int) -> Any:
    """A test bed whose sink commits one more batch at its n-th tick after the deadline; 0 for never."""
    late = make.tick([[], []], [[], []], [make.commit(99, NOW + 60 * US)])
    ticks = chain(repeat(make.tick([[], []], [[], []], []), at - 1), [late] if at else [])
    return SimpleNamespace(tick=Mock(side_effect=chain(ticks, repeat(make.tick([[], []], [[], []], [])))))


@pytest.mark.parametrize(("at", "came"), [(3, True), (0, False)])
def test_results_after_the_deadline_are_late_and_not_lost(
    at: int, came: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while it is looked for is in the log; the look ends with it, or with its time."""
    monkeypatch.setattr(conclusion, "LATE_S", 0.05 if not at else 60.0)
    testbed, record = late_testbed(make, at), make.story().record()
    before = len(record.trial_log.commits)
    assert conclusion._late_results_came(testbed, record) is came
    assert len(record.trial_log.commits) == before + came
    assert not came or testbed.tick.call_count == at


@pytest.mark.parametrize("state", [{"drained": False}, {"engine_failed": "gone"}])
def test_nothing_is_looked_for_where_more_is_owed_than_a_few_results(make: Any, state: dict[str, Any]) -> None:
    """An engine that died, or has not done with its input, is not late with some results."""
    testbed = late_testbed(make, 1)
    assert not conclusion._late_results_came(testbed, make.story().record(**state))
    assert testbed.tick.call_count == 0


def test_a_verification_shows_its_progress(make: Any, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch run takes up to minutes, which were silent; the time goes on meanwhile."""
    monkeypatch.setattr(progress, "REPORT_INTERVAL_S", 0.0)
    events, running = list[StepProgress](), Event()

    def observe(event: Any) -> None:
        events.append(event)
        if event.note == "running the job in batch" and event.elapsed_s > events[0].elapsed_s:
            running.set()

    def verified(resolved: Any, testbed: Any, record: Any, folder: Any, stage: Any) -> Any:
        stage.follow(lambda: "running the job in batch", "starting Spark for the batch run")
        assert running.wait(10)
        return SimpleNamespace(verification=SimpleNamespace(missing=0))

    monkeypatch.setattr(conclusion, "_verified", verified)
    resolved = check(build({"workload": "identity"}))
    policy = JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0)
    nothing: Any = SimpleNamespace()
    conclusion._verified_in_steps(resolved, nothing, observe, folder, policy, make.story().record())
    assert {type(one) for one in events} == {StepProgress}
    assert events[-1].elapsed_s > events[0].elapsed_s >= 0


@pytest.fixture
def concluded(make: Any, tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """(the result of a steady trial whose verification fails, what its folder has)."""
    values: dict[str, Any] = {"workload": "windowed_aggregation", "load": {"rate": 1000, "duration": "10s"}}
    testbed: Any = SimpleNamespace(
        engine=SimpleNamespace(settings=dict), clock=SimpleNamespace(now_us=lambda: NOW), processes=list,
        restarted=False, folder=tmp_path, append_latencies_us=lambda *_: [],
    )  # fmt: skip

    def conclude(error: BaseException, report: conclusion.EngineReport | None = None) -> tuple[Any, Any]:
        resolved = check(build(values))
        monkeypatch.setattr(conclusion, "_verified", Mock(side_effect=error))
        policy, record = JudgedTrial(resolved, 1000.0, fresh=True, duration_s=10.0), make.story().record()
        report = report or conclusion.EngineReport()
        trial_result = conclusion.conclude(resolved, testbed, ignore, None, folder, policy, record, report)
        return trial_result.result, folder.read_result()

    return conclude


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("Query interrupted"), duckdb.InterruptException()])
def test_stopping_the_verification_keeps_what_was_measured(stop: BaseException, concluded: Callable[..., Any]) -> None:
    """Ctrl-C while answers are compared: interrupted, with the figures there are, and no stack."""
    result, written = concluded(stop)
    assert result.verdict.value == written.verdict.value == "interrupted"
    assert (result.environment["chunk_ms"], result.rate.ingested_per_s) == (50, pytest.approx(1000))


@pytest.mark.parametrize(
    "error",
    [
        duckdb.OutOfMemoryException("no memory left\nof 2 GiB"), duckdb.IOException("no space left"),
        OSError(5, "a broken disk"), MemoryError(),
    ],
)  # fmt: skip
def test_a_verification_that_cannot_be_done_leaves_the_trial_undecided(
    error: Exception, concluded: Callable[..., Any], folder: RunFolder
) -> None:
    """The figures stand, the verdict says why the answers do not, and the page can be drawn."""
    result, written = concluded(error)
    reason = (str(error) or "MemoryError").splitlines()[0]
    assert result.verdict.value == written.verdict.value == "undecided"
    assert f"answers: the answers could not be judged: {reason}" in written.verdict.sentence
    assert "no reference" not in written.verdict.advice
    assert (written.verification.judged, written.rate is None) == (False, False)
    if isinstance(error, MemoryError):
        write_page(folder, "")
        assert (folder.path / "report.html").exists()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), duckdb.IOException('file "a": No space left on device')]
)
def test_a_disk_that_is_full_is_reported_once_with_the_way_out(error: Exception, concluded: Callable[..., Any]) -> None:
    """The folder of temporary files and TMPDIR in the head; no advice on processors, and latencies do not repeat it."""
    result, _ = concluded(error)
    assert f"the disk that holds {tempfile.gettempdir()} is full (" in result.verdict.sentence
    assert result.verdict.advice.startswith("free some space, or set TMPDIR=DIR")
    assert "isolation" not in result.verdict.advice
    assert result.latency.notes == ("not counted, because the answers could not be judged",)


def test_an_engine_that_stopped_counting_is_reported(concluded: Callable[..., Any]) -> None:
    """With the reason, in the folder too; of one that counts to the end, or not at all, nothing is reported."""
    rows = [OperatorRows("", batch, "aggregate", 7) for batch in range(8)]
    report = conclusion.EngineReport(counts=OperatorCounts(rows, "Spark forgot it"))
    message = "rows of operators were not counted to the end: Spark forgot it"
    assert [message in one.warnings for one in concluded(KeyboardInterrupt(), report)] == [True, True]
    silent, _ = concluded(KeyboardInterrupt())
    assert not any("counted" in warning for warning in silent.warnings)


def test_steps_and_series_are_the_engines_own(
    concluded: Callable[..., Any], folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its files and on the page, by the engine's names; a declared step has a label and a column in any case."""
    plugin, start_us = entry("spark"), NOW // US * US
    steps = {"sort": "sorting", "merge": "merging runs"}
    monkeypatch.setattr(plugin, "capabilities", replace(plugin.capabilities, batch_steps=steps))
    times = [start_us + second * US for second in range(8)]
    took_us = {"write_out": 100_000, "merge": 500_000}
    batches = [BatchProgress("", number, at, at + 900_000, took_us) for number, at in enumerate(times)]
    series = [SeriesSample(at, "watermark behind", "s", 2.5, "aggregate") for at in times]
    concluded(KeyboardInterrupt(), conclusion.EngineReport(batches, series=series))
    columns = pq.read_schema(folder.path / "engine" / "batches.parquet").names
    assert [name for name in columns if name.endswith("_ms")] == ["sort_ms", "merge_ms", "write_out_ms", "trigger_ms"]
    assert folder.read_engine_table("series")["value"].to_pylist() == [2.5] * 8
    page = write_page(folder, None).read_text()
    assert all(text in page for text in ("merging runs", "write out", "watermark behind (s)", "aggregate"))
    assert "sorting" not in page


def test_a_defect_of_ours_is_not_hidden(concluded: Callable[..., Any]) -> None:
    """Only what the machine lacks, or what the reference says, leaves answers unjudged."""
    with pytest.raises(RuntimeError, match="defect"):
        concluded(RuntimeError("a defect"))


# --- what is left of a trial that was stopped ---


def of_one_batch(trial: Case) -> list[pa.Table]:
    """The right answers, all of them in a batch that is committed in the measured span."""
    return [*[trial.answer().slice(0, 0)] * 4, trial.answer()]


def stopped(trial: Case, tmp_path: Path, folder: RunFolder, **settings: Any) -> Any:
    """A trial that Ctrl-C ended, in its folder; `Any`, because its figures may be None."""
    trial.record.interrupted, trial.record.drained = True, False
    clock = SimpleNamespace(now_us=lambda: NOW)
    testbed: Any = SimpleNamespace(
        engine=SimpleNamespace(settings=dict), clock=clock, folder=tmp_path, processes=list, restarted=False
    )
    policy = JudgedTrial(trial.resolved, 1000.0, fresh=True, duration_s=10.0, **settings)
    report = conclusion.EngineReport()
    return conclusion.conclude(trial.resolved, testbed, ignore, None, folder, policy, trial.record, report)


@pytest.fixture
def trial(case: Callable[..., Case], make: Any) -> Case:
    """With all its results in one batch."""
    trial = case(ROWS)
    trial.receive(make, rows=of_one_batch(trial))
    return trial


def test_a_stopped_trial_has_the_latencies_of_what_came(trial: Case, tmp_path: Path, folder: RunFolder) -> None:
    """Ctrl-C in the measured span: in result.json, the series, the log and the page, marked as unverified; and the
    results, where they were requested.
    """
    judged = stopped(trial, tmp_path, folder, keep_results=True)
    written: Any = folder.read_result()
    assert (judged.result, judged.verified) == (written, None)
    assert (written.verdict.value, written.verification.judged) == ("interrupted", False)
    assert written.latency.event_time_us.mean == pytest.approx(US, rel=0.01)
    assert interrupted.UNVERIFIED in written.latency.notes
    assert folder.read_series()["results"].to_pylist().count(0) < folder.read_series().num_rows
    assert "event_time" in kinds_in(folder.read_hlog() or "")
    assert pq.read_metadata(folder.path / "results.parquet").num_rows == trial.answer().num_rows
    write_page(folder, "")
    assert "Latencies are unverified" in (folder.path / "report.html").read_text()


def test_a_trial_stopped_in_its_warm_up_says_so(trial: Case, tmp_path: Path, folder: RunFolder) -> None:
    """No latency could be there, so its results are not looked at."""
    cut_short(trial.record, 3 * US)
    judged = stopped(trial, tmp_path, folder)
    assert judged.result.latency == Latencies(notes=(interrupted.NOT_BEGUN,)) == folder.read_result().latency
    assert folder.read_hlog() is None


def test_a_second_stop_ends_the_counting_and_loses_nothing_else(
    case: Callable[..., Case], tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is whole except its latencies, and the report can be drawn."""
    monkeypatch.setattr(interrupted, "latencies_without_verification", Mock(side_effect=KeyboardInterrupt))
    result = stopped(case(ROWS), tmp_path, folder).result
    assert result == folder.read_result()
    assert (result.latency, result.rate is None) == (Latencies(notes=(interrupted.NOT_COUNTED,)), False)


def test_a_trial_that_is_made_again_shows_nothing_of_the_one_before(
    trial: Case, tmp_path: Path, folder: RunFolder
) -> None:
    """A search that goes on makes a stopped trial again in its folder, and that one may end before it has latencies."""
    stopped(trial, tmp_path, folder, keep_results=True)
    assert folder.read_hlog()
    cut_short(trial.record, 3 * US)
    stopped(trial, tmp_path, folder)
    assert {path.name for path in folder.path.iterdir()} == {"engine", "result.json", "series.parquet"}


def result_with_broker_times(make: Any, answer: Any, **record: Any) -> tuple[Any, TrialRecord]:
    """A result after the broker reported when it had events, or failed to."""
    conducted = make.story().record(**record)
    testbed: Any = SimpleNamespace(append_latencies_us=Mock(side_effect=[answer]))
    base = Result(
        run_id="r", start_time="", workload="identity", engine="spark", isolation="shared", experiment={},
        environment={}, settings={}, verdict=Verdict(value="interrupted", sentence=""), driver=driver_result(conducted),
    )  # fmt: skip
    return conclusion._with_appends(testbed, conducted, base), conducted


def test_when_the_broker_had_events_is_reported(make: Any) -> None:
    """Of a trial that came to its end; a broker that does not say is a warning, and no figure."""
    result, _ = result_with_broker_times(make, [1000, 3000])
    assert result.driver.append_latency_us.p50 == 2000
    silent, _ = result_with_broker_times(make, DriverError("no answer"))
    assert silent.driver.append_latency_us is None
    assert silent.warnings == ("the broker's append times are unknown: no answer",)
    failed, _ = result_with_broker_times(make, AssertionError("called"), driver_failed="the broker ended")
    assert failed.warnings == ()


def test_stopping_while_the_broker_reports_is_an_interrupted_trial(make: Any) -> None:
    """With all that was measured."""
    result, record = result_with_broker_times(make, KeyboardInterrupt())
    assert (record.interrupted, result.driver is None) == (True, False)


def reporting(record: Any, at: float) -> tuple[Any, list[BatchProgress], int]:
    """(report, requests, commits) of an engine that reports its last batch at the n-th request only."""
    commits = record.trial_log.commits
    whole = [
        BatchProgress(query=one.query, batch=one.batch, start_us=0, late_rows=one.batch)
        for one in sorted(commits, key=lambda one: one.batch)
    ]
    progress = Mock(side_effect=(whole if number >= at else whole[:-1] for number in count(1)))
    engine = SimpleNamespace(batch_progress=progress, operator_row_counts=lambda timeout_s: OperatorCounts())
    return conclusion.engine_report(SimpleNamespace(engine=engine), record).progress, whole, progress.call_count


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "LATE_POLL_S", 0.0)


@pytest.mark.parametrize(("drained", "requests"), [(True, 3), (False, 1)])
def test_the_report_of_the_last_batch_is_awaited(make: Any, drained: bool, requests: int) -> None:
    """Rows that it dropped as late would else be called missing without a reason."""
    record = done_of(make)
    record.drained = drained
    progress, whole, calls = reporting(record, at=3)
    assert (calls, progress == whole) == (requests, drained)


def test_an_engine_is_asked_for_the_reports_that_it_has(make: Any) -> None:
    """One without any is not awaited."""
    engine = SimpleNamespace(
        batch_progress=Mock(return_value=[]), operator_row_counts=lambda timeout_s: OperatorCounts()
    )
    testbed: Any = SimpleNamespace(engine=engine)
    report = conclusion.engine_report(testbed, done_of(make))
    assert (report.progress, report.series, engine.batch_progress.call_count) == ([], [], 1)
    engine.series = Mock(return_value=[SeriesSample(1, "rows", "1/s", 2.0)])
    assert conclusion.engine_report(testbed, done_of(make)).series == engine.series.return_value


def test_a_report_that_never_comes_ends_the_wait(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "LAST_BATCH_S", 0.0)
    progress, whole, _ = reporting(done_of(make), at=math.inf)
    assert progress == whole[:-1]
