"""A run before and around its trial."""

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
from streamgauge.config import experiment, experiment_file
from streamgauge.core.errors import InputError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.preflight import generator_ceiling
from streamgauge.report.documents.run import write_page
from streamgauge.report.terminal.console import show_result
from streamgauge.results.codes import Cause
from streamgauge.results.verdict import Verdict
from streamgauge.studies.run import run as run_module
from streamgauge.system import machine
from streamgauge.trial import conductor, progress
from tests.unit.helpers_requests import GOOD

pytestmark = pytest.mark.usefixtures("quiet")

OWN = """
from streamgauge.jobs import Key, job, stream

@job(stream("purchases", Key("user_id", 10)), reach="0s")
def all_of_them(spark, inputs):
    return inputs["purchases"]
"""


@pytest.fixture(autouse=True)
def machine_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process of git, Java and a generator."""
    monkeypatch.setattr(machine, "commit", str)
    monkeypatch.setattr(run_module, "require_machine", lambda resolved: None)
    monkeypatch.setattr(generator_ceiling, "measure_capacity", lambda *_: 1e9)


def test_a_run_of_an_own_job_can_be_repeated_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder has the whole path of the job, and what was in its files, from the beginning on."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(conductor, "testbed_settings", lambda _: 1 / 0)
    (tmp_path / "my_own.py").write_text(OWN)
    with pytest.raises(ZeroDivisionError):
        run_module.run_single(experiment.build({"workload": "my_own.py", "out": str(tmp_path / "runs")}))
    (folder,) = (tmp_path / "runs").iterdir()
    assert experiment_file.read(folder / "experiment.toml").workload == str(tmp_path / "my_own.py")
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
    monkeypatch.setattr(generator_ceiling, "measure_capacity", lambda *_: 40_000.0)
    values = {**GOOD, "out": str(tmp_path / "runs"), "load": {"rate": "100k", "generators": 1}}
    with pytest.raises(InputError, match=r"load\.rate: must be at most .*40 k/s.*100 k/s.*\n.*--rate 20k/s"):
        run_module.run_single(experiment.build(values))
    assert not (tmp_path / "runs").exists()


def test_a_run_stopped_at_its_start_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result says that it was stopped, no longer that it may still go on; and its page is there."""
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

    monkeypatch.setattr(run_module, "_conducted", conducted)
    result = run_module.run_single(experiment.build(GOOD | {"engine": "known", "out": str(tmp_path / "runs")}))
    assert result.verdict == judged
