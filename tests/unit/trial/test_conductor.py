"""When trials begin, what the conductor starts and stops, and what it reports."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import OperatorCounts
from streamgauge.core.errors import EngineError
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.system.cpu_pinning import cpus
from streamgauge.trial import conductor as trial
from streamgauge.trial import progress
from streamgauge.trial.conductor import START_LEAD_US, TrialConductor, next_start
from streamgauge.trial.events import StepProgress, VerdictReached
from streamgauge.trial.policies import JudgedTrial, SearchTrial
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_recording import append_and_return
from tests.unit.helpers_trials import START, cut_short, done_of

NOW = 1_700_000_000 * US + 300_000


def fake_testbed(reached_us: int = 0, now_us: int = NOW, **more: Any) -> Any:
    """A test bed of no process."""
    clock = SimpleNamespace(now_us=lambda: now_us)
    return SimpleNamespace(clock=clock, reached_us=reached_us, restarted=False, **more)


def resolved_of(**values: Any) -> ResolvedExperiment:
    return check(build({"workload": "identity", **values}))


Run = Callable[..., Any]


@pytest.fixture
def run(folder: RunFolder, make: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a trial whose phases are `conduct(plan, spans, chunk_us, policy)`, or those of `record`."""

    def one(
        testbed: Any = None, resolved: Any = None, conduct: Any = None, record: Any = None, kind: Any = JudgedTrial,
        rate_per_s: float = 1000.0, duration_s: float = 10.0,
    ) -> Any:  # fmt: skip
        record = record or make.story().record(engine_failed="gone")

        def runner(testbed: Any, *given: Any) -> Any:
            return SimpleNamespace(conduct=lambda: conduct(*given[:4]) if conduct else record)

        monkeypatch.setattr(trial, "PhaseRunner", runner)
        conductor = TrialConductor(resolved or resolved_of(), testbed or fake_testbed())
        return conductor.run(folder, kind(conductor.resolved, rate_per_s, fresh=True, duration_s=duration_s))

    return one


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
    assert next_start(fake_testbed(reached_us), gap_us) == start_us
    assert start_us >= NOW + START_LEAD_US
    assert start_us - reached_us >= gap_us


@pytest.mark.skipif(len(cpus()) < 2, reason="there is nothing to choose from")
@pytest.mark.parametrize("isolation", ["pinned", "shared"])
def test_the_runner_of_a_pinned_trial_keeps_off_the_engines_processors(
    isolation: str, run: Run, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it conducts; what it starts, says of the machine and judges before and after has them all."""
    allowed, used = tuple(cpus()), list[Any]()
    record = make.story().record(engine_failed="gone")
    monkeypatch.setattr(trial, "conclude", lambda *_: used.append(tuple(cpus())))
    resolved = resolved_of(workload="filter", engine="known", isolation=isolation)
    run(resolved=resolved, conduct=lambda *_: append_and_return(used, tuple(cpus()), record))
    assert used == [resolved.driver_cpus or allowed, allowed]
    assert isolation == "shared" or set(allowed) > set(used[0])


def test_observers_see_start_and_verdict(make: Any, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start before the processes are up, and what loads after them; the verdict while they still stand, once it is
    written.
    """
    events, notes, reported = list[Any](), set[str](), Event()
    loading = "loading the statistics of the verdict"
    record = make.story().record(engine_failed="gone")

    def report(event: Any) -> None:
        events.append(event)
        if isinstance(event, StepProgress):
            notes.add(event.note)
            reported.set()

    def wait_for(note: str) -> None:
        for _ in range(1000):
            if note in notes or not reported.wait(5):
                return
            reported.clear()

    def start(plan: object) -> None:
        events.append("up")
        wait_for("starting spark")

    testbed = fake_testbed(stage=lambda: "", start=start)
    monkeypatch.setattr(trial, "prepare", lambda: wait_for(loading))
    monkeypatch.setattr(progress, "REPORT_INTERVAL_S", 0.001)
    monkeypatch.setattr(trial, "PhaseRunner", lambda *_: SimpleNamespace(conduct=lambda: record))
    result = TrialResult(make_believe := object(), record, None)
    monkeypatch.setattr(trial, "conclude", lambda *_: append_and_return(events, "written", result))
    conductor = TrialConductor(resolved_of(), testbed, report)
    conductor.start(1000.0, "starting spark", folder)
    conductor.run(folder, JudgedTrial(conductor.resolved, 1000.0, fresh=True, duration_s=10.0))
    starts = [one for one in events if isinstance(one, StepProgress)]
    assert [one if isinstance(one, str) else type(one) for one in events if one not in starts] == [
        "up", "written", VerdictReached,
    ]  # fmt: skip
    assert notes == {"starting spark", loading}
    assert (events[-1].trial.result, events[-1].testbed) == (make_believe, testbed)
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
    interrupted: bool, order: list[str], run: Run, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its report is not awaited; to wait for it, to judge and to draw beside a busy engine would take long."""
    calls: list[str] = []
    engine = SimpleNamespace(
        batch_progress=lambda timeout_s: append_and_return(calls, f"evidence {timeout_s}", []),
        operator_row_counts=lambda timeout_s: append_and_return(calls, f"rows {timeout_s}", []),
    )
    monkeypatch.setattr(trial, "conclude", lambda *_: calls.append("judged"))
    run(
        fake_testbed(engine=engine, stop=lambda: calls.append("stop")),
        record=make.story().record(interrupted=interrupted),
    )
    assert calls == order


def test_a_trial_that_is_interrupted_while_the_engine_reports_is_written(
    run: Run, make: Any, folder: RunFolder
) -> None:
    """That may take half a minute, and nothing of the trial is written before it."""
    engine, stop = SimpleNamespace(batch_progress=Mock(side_effect=KeyboardInterrupt), settings=dict), Mock()
    trial_result = run(fake_testbed(engine=engine, processes=list, stop=stop), record=make.story().record())
    assert (stop.call_count, trial_result.result.verdict.value) == (1, "interrupted")
    assert folder.read_result().rate is not None
    assert folder.read_series().num_rows


LOST = "the generators did not keep the plan"


def looked_at_once(run: Run, make: Any, tmp_path: Path, schedule_delay_us: int, kind: Any) -> Any:
    """A trial whose generators offer so late, seen by its conductor 12 s after its start.

    As the real conductor, this one ends it there and then where it is hopeless.
    """
    record = cut_short(done_of(make, schedule_delay_us=schedule_delay_us), 12 * US)

    def conduct(plan: Any, spans: Any, chunk_us: int, policy: Any) -> TrialRecord:
        record.early_stop = policy.early_stop_reason(record, START + 12 * US) or ""
        return record

    engine = SimpleNamespace(
        settings=dict, batch_progress=lambda timeout_s: [], operator_row_counts=lambda timeout_s: OperatorCounts()
    )
    testbed = fake_testbed(now_us=START + 12 * US, engine=engine, folder=tmp_path, processes=list)
    return run(testbed, conduct=conduct, kind=kind, duration_s=30.0)


@pytest.mark.parametrize(
    ("schedule_delay_us", "kind", "early_stop"),
    [(250_000, SearchTrial, LOST), (0, SearchTrial, ""), (250_000, JudgedTrial, "")],
)
def test_a_search_ends_an_invalid_trial_at_once(
    schedule_delay_us: int, kind: Any, early_stop: str, run: Run, make: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A search repeats it and does not wait for its end; a run goes on, since its figures show what happened."""
    monkeypatch.setattr(trial, "conclude", lambda *given: given[-2])
    assert looked_at_once(run, make, tmp_path, schedule_delay_us, kind).early_stop == early_stop


def test_a_trial_that_was_ended_as_invalid_is_judged_so(run: Run, make: Any, tmp_path: Path, folder: RunFolder) -> None:
    """Cut short, it has too few batches and no answers as well; but a search makes only an invalid trial again."""
    judged, written = looked_at_once(run, make, tmp_path, 250_000, SearchTrial), folder.read_result()
    assert (judged.result.verdict, judged.verified) == (written.verdict, None)
    assert (written.verdict.value, written.verdict.decided_by) == ("invalid", ("driver",))
    assert f"ended early: {LOST}" in written.warnings


@pytest.mark.parametrize(("rate_per_s", "chunk_us"), [(1e6, 50_000), (1e5, 10_000)])
def test_each_trial_has_chunks_for_its_own_rate(rate_per_s: float, chunk_us: int, run: Run) -> None:
    """Whatever the rates of other trials on its test bed are, or the rate that was requested first."""
    conduct = Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run(conduct=conduct, rate_per_s=rate_per_s)
    assert conduct.call_args.args[2] == chunk_us


@pytest.mark.parametrize(("error", "folder"), [(RuntimeError("a"), "there"), (EngineError("a"), "")])
def test_a_defect_names_the_folder_of_its_trial(monkeypatch: pytest.MonkeyPatch, error: Exception, folder: str) -> None:
    """The command line keeps its traceback there. Other errors have a folder only if it holds their reason."""
    monkeypatch.setattr(trial, "TestBed", lambda *_: nullcontext(fake_testbed()))
    with (
        pytest.raises(type(error)) as raised,
        TrialConductor.on_test_bed(resolved_of(), Mock(), Path("there")),
    ):
        raise error
    assert vars(raised.value).get("folder", "") == folder
