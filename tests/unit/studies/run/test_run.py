"""What a run looks at before it starts anything: this machine, and what generators can make."""

import hashlib
import io
import sys
from itertools import chain, repeat
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config import options_and_settings as experiment
from streamgauge.core.errors import InputError, MachineError
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.trial import TrialSnapshot
from streamgauge.engines.spi import EnginePlugin
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check as check_experiment
from streamgauge.report.documents.run import write_page
from streamgauge.report.terminal.console import show_result
from streamgauge.results.codes import Cause
from streamgauge.results.verdict import Verdict
from streamgauge.studies.run import run as run_module
from streamgauge.system import machine
from streamgauge.trial import conductor, progress
from streamgauge.workloads.registry import Workload
from tests.helpers_recording import append_and_return
from tests.unit.helpers_requests import GOOD

pytestmark = pytest.mark.usefixtures("quiet")

OWN = """
from streamgauge.jobs import Key, job, stream

@job(stream("purchases", Key("user_id", 10)), reach="0s")
def all_of_them(spark, inputs):
    return inputs["purchases"]
"""


@pytest.fixture(autouse=True)
def commit_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A new one for each call: git would be a process."""
    calls: list[str] = []
    monkeypatch.setattr(machine, "commit", lambda: append_and_return(calls, "commit", ""))
    return calls


def test_the_commit_is_that_of_the_start(commit_calls: list[str]) -> None:
    """What is committed, or changed, while a trial runs is not what it ran."""
    run_module.require_machine(resolved(engine="known"))
    assert commit_calls == ["commit"]


def resolved(**values: Any) -> ResolvedExperiment:
    return check_experiment(experiment.build(GOOD | values))


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))


@pytest.mark.usefixtures("no_java")
def test_missing_java_is_the_machines_lack() -> None:
    """Only for engines that need it. Nothing is made before Java is found, and the message says how to get it."""
    with pytest.raises(MachineError, match="Java 17 or later") as failure:
        run_module.run_single(experiment.build(GOOD))
    assert (failure.value.exit_code, "install" in str(failure.value)) == (ExitCode.ENVIRONMENT, True)
    run_module.require_machine(resolved(engine="known"))
    assert machine.environment()["java"] == "not installed"


def test_every_trial_of_a_study_needs_its_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that the cluster cannot give is refused before the first trial, and each level is looked at once."""
    monkeypatch.setattr(EnginePlugin, "require_master", require := Mock())
    run_module.require_machine(*(resolved(engine="known", parallelism=number) for number in (1, 2, 2)))
    assert [call.args for call in require.call_args_list] == [(None, {}, 1), (None, {}, 2)]


def test_what_a_workload_needs_is_looked_for_before_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all trials of it, such as the jars that a program's file names."""
    calls: list[str] = []
    monkeypatch.setattr(Workload, "require", lambda workload: calls.append(workload.name))
    built = [experiment.build(GOOD | {"engine": "known", "parallelism": number}) for number in (1, 2)]
    run_module.require_machine(*map(check_experiment, built))
    assert calls == [GOOD["workload"]]


def test_the_ceiling_is_of_the_columns_that_generators_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of fields that the flow does not read, and of ids where it needs them."""
    monkeypatch.setattr(run_module, "measure_capacity", measure := Mock(return_value=1.0))
    run_module.ceiling_of(resolved(), 1000.0)
    assert measure.call_args.args[1] == {"purchases": ("gem_pack_id", "price", "event_time")}


@pytest.mark.parametrize(("load", "rounds_per_s"), [
    ({"chunk": "500ms", "generators": 2}, 2.0), ({"chunk": "10ms", "generators": 1}, 20.0),
])  # fmt: skip
def test_the_ceiling_is_of_a_trials_batches(
    monkeypatch: pytest.MonkeyPatch, load: dict[str, Any], rounds_per_s: float
) -> None:
    """Those of a chunk, or of the 50 ms for which short chunks are made at once."""
    monkeypatch.setattr(run_module, "measure_capacity", measure := Mock(return_value=1.0))
    run_module.ceiling_of(check_experiment(experiment.build(GOOD | {"load": load})), 1000.0)
    assert measure.call_args.args[2] == rounds_per_s


def test_a_run_of_an_own_job_can_be_repeated_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder has the whole path of the job, and what was in its files, from the beginning on."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "require_machine", lambda resolved: None)
    monkeypatch.setattr(run_module, "measure_capacity", lambda *_: 1e9)
    monkeypatch.setattr(conductor, "testbed_settings", lambda _: 1 / 0)
    (tmp_path / "my_own.py").write_text(OWN)
    with pytest.raises(ZeroDivisionError):
        run_module.run_single(experiment.build({"workload": "my_own.py", "out": str(tmp_path / "runs")}))
    (folder,) = (tmp_path / "runs").iterdir()
    assert experiment.read(folder / "experiment.toml").workload == str(tmp_path / "my_own.py")
    result = RunFolder(folder).read_result()
    assert result.experiment["workload"] == str(tmp_path / "my_own.py")
    assert result.job_files == {"my_own.py": hashlib.sha256(OWN.encode()).hexdigest()}


def test_a_start_counts_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it takes, and no longer; what fails meanwhile goes through."""
    monkeypatch.setattr(progress, "REPORT_INTERVAL_S", 0.0)
    shown: list[TrialSnapshot] = []
    thrice = Event()

    def observe(snapshot: TrialSnapshot) -> None:
        shown.append(snapshot)
        if len(shown) == 3:
            thrice.set()

    def fail() -> None:
        assert thrice.wait(60)
        raise ValueError("gone")

    engine: Any = SimpleNamespace(stage=Mock(side_effect=chain(["", "up"], repeat("running"))))
    with (
        pytest.raises(ValueError, match="gone"),
        progress.report_start_progress(progress.snapshots(observe), "starting spark", engine.stage),
    ):
        fail()
    assert [(one.phase, one.note) for one in shown[:3]] == [
        ("start", note) for note in ("starting spark", "up", "running")
    ]
    seconds = [one.elapsed_s for one in shown]
    assert seconds == sorted(seconds)
    assert seconds[-1] > seconds[0]
    assert "reporter" not in {thread.name for thread in enumerate_threads()}


def test_a_rate_that_generators_cannot_make_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before there is a run folder: it could only be invalid."""
    monkeypatch.setattr(run_module, "require_machine", lambda resolved: None)
    monkeypatch.setattr(run_module, "measure_capacity", lambda *_: 40_000.0)
    values = {**GOOD, "out": str(tmp_path / "runs"), "load": {"rate": "100k", "generators": 1}}
    with pytest.raises(InputError, match=r"load\.rate: must be at most .*40 k/s.*100 k/s.*\n.*--rate 20k/s"):
        run_module.run_single(experiment.build(values))
    assert not (tmp_path / "runs").exists()


def test_a_run_stopped_at_its_start_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result says that it was stopped, no longer that it may still go on; and its page is there."""
    monkeypatch.setattr(run_module, "measure_capacity", lambda *_: 1e9)
    monkeypatch.setattr(conductor, "TestBed", Mock(side_effect=KeyboardInterrupt))
    result = run_module.run_single(
        experiment.build(GOOD | {"engine": "known", "out": str(tmp_path / "runs")}), on_result=write_page
    )
    (folder,) = (tmp_path / "runs").iterdir()
    assert RunFolder(folder).read_result() == result
    assert (result.verdict.value, result.verdict.sentence) == ("interrupted", run_module.STOPPED_AT_START)
    assert "do not use" not in result.verdict.advice
    console = Console(file=io.StringIO(), width=200)
    show_result(result, False, console)
    assert console.file.getvalue().splitlines()[-1].split() == ["report", str(folder / "report.html")]  # type: ignore[attr-defined]
    assert (folder / "report.html").exists()


@pytest.mark.parametrize("cause", [Cause.ALL_CHECKS_HOLD, Cause.UNJUDGED])
def test_a_run_stopped_after_its_span_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: Cause
) -> None:
    """Ctrl-C while the engine is stopped, or before the judgement, takes nothing away."""
    judged = Verdict(value="sustained", cause=cause, sentence="all checks hold")

    def conducted(resolved: Any, folder: RunFolder, *_: Any) -> None:
        folder.write_result(folder.read_result().model_copy(update={"verdict": judged}))
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "measure_capacity", lambda *_: 1e9)
    monkeypatch.setattr(run_module, "_conducted", conducted)
    result = run_module.run_single(experiment.build(GOOD | {"engine": "known", "out": str(tmp_path / "runs")}))
    assert result.verdict == judged
