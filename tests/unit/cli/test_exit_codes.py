"""cli: exit codes, and refusals that name everything wrong and start nothing."""

import errno
import re
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.cli import app
from streamgauge.cli.parameters import pairs
from streamgauge.core.errors import (
    DriverError,
    EngineError,
    InputError,
    Interrupted,
    JobError,
    MachineError,
    Problem,
    StreamgaugeError,
)
from streamgauge.core.exit_codes import ExitCode
from streamgauge.results.codes import Cause
from streamgauge.results.run import Result
from streamgauge.trial.conductor import record_start_failure
from tests.helpers_study_results import breakdown, breakdown_trial
from tests.unit.cli.helpers_commands import Invoke, call, command, result_of
from tests.unit.helpers_refusals import problem_of


@pytest.fixture
def run_as(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> Callable[[Callable[..., Any]], Any]:
    """`run identity --json --quiet` with another function instead of a trial."""

    def run(trial: Callable[..., Any]) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr("streamgauge.studies.run.run.run_single", trial)
        return invoke("run", "identity", "--json", "--quiet")

    return run


@pytest.mark.parametrize(
    ("value", "code"),
    [("sustained", 0), ("not_sustained", 1), ("undecided", 3), ("interrupted", 130), ("invalid", 4)],
)
def test_the_verdict_is_the_exit_code(run_as: Any, value: str, code: int) -> None:
    """0 the criterion holds, 1 it does not, 3 not known, 4 the figures must not be used."""
    done = run_as(lambda *_: result_of(value))
    assert (done.returncode, Result.model_validate_json(done.stdout).verdict.value) == (code, value)


def test_an_anatomy_ends_with_the_code_of_its_trials(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """That of the worst whose figures must not be used."""
    found = breakdown(breakdown_trial(verdict="invalid"))
    monkeypatch.setattr("streamgauge.studies.latency_breakdown.anatomy.anatomy", lambda *_: found)
    done = invoke("anatomy", "identity", "--json", "--quiet")
    assert (done.returncode, done.stderr) == (4, "")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (MachineError("Java 17 or later is needed"), 5, "Java 17"),
        (EngineError("spark did not start: no memory", "engine/spark.log"), 1, "whole log: engine/spark.log"),
        (DriverError("generator 0 ended"), 4, "generator 0 ended"),
        (Interrupted("stopped by hand"), 130, "stopped by hand"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (RuntimeError("Query interrupted"), 130, "stopped\n"),  # as DuckDB says it
        (RuntimeError("two\nlines"), 70, "a defect of streamgauge (RuntimeError: two lines)"),
        (EOFError(), 70, "a defect of streamgauge (EOFError: no message)"),
    ],
)
def test_errors_are_one_message_on_stderr(
    monkeypatch: pytest.MonkeyPatch, stand: Path, run_as: Any, error: BaseException, code: int, text: str
) -> None:
    """Each kind has its exit code, a defect not 1, which is a verdict; nothing on stdout, no traceback."""
    monkeypatch.delenv(app.TRACEBACK, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(stand))
    done = run_as(Mock(side_effect=error))
    assert (done.returncode, done.stdout, text in done.stderr, "Traceback" in done.stderr) == (code, "", True, False)
    assert not text.startswith("a defect") or len(done.stderr.splitlines()) == 1


def test_a_defect_shows_its_traceback_where_it_is_requested(monkeypatch: pytest.MonkeyPatch, run_as: Any) -> None:
    monkeypatch.setenv(app.TRACEBACK, "1")
    done = run_as(Mock(side_effect=RuntimeError("two\nlines")))
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (70, "", True)


def defect_in(folder: Path) -> RuntimeError:
    """An unexpected error within the trial of a run folder."""
    error = RuntimeError("out of order")
    vars(error)["folder"] = str(folder)
    return error


@pytest.mark.parametrize("in_run", [True, False])
def test_the_traceback_of_a_defect_is_kept(
    monkeypatch: pytest.MonkeyPatch, run_as: Any, stand: Path, in_run: bool
) -> None:
    """In the run folder, else in a temporary file, which the message names."""
    monkeypatch.delenv(app.TRACEBACK, raising=False)
    run, temporary = stand / "run", stand / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    if in_run:
        run.mkdir()
    done = run_as(Mock(side_effect=defect_in(run)))
    (file,) = (run if in_run else temporary).iterdir()
    assert (done.returncode, done.stdout, str(file) in done.stderr) == (70, "", True)
    assert file.read_text().startswith("Traceback (most recent call last):\n")
    assert file.read_text().endswith("RuntimeError: out of order\n")


def test_a_traceback_that_no_disk_takes_is_printed(monkeypatch: pytest.MonkeyPatch, run_as: Any) -> None:
    monkeypatch.delenv(app.TRACEBACK, raising=False)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", Mock(side_effect=OSError(errno.ENOSPC, "full")))
    done = run_as(Mock(side_effect=RuntimeError("out of order")))
    assert (done.returncode, "Traceback" in done.stderr, "with this traceback" in done.stderr) == (70, True, True)


@pytest.fixture
def usual_handlers() -> Iterator[None]:
    """The handlers of signals are those of a new process, and afterwards those of the tests again."""
    before = {number: signal.getsignal(number) for number in app.STOPS}
    for number in app.STOPS:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("usual_handlers")
@pytest.mark.parametrize(("number", "code"), app.STOPS.items(), ids=lambda one: one.name)
def test_a_stop_has_the_code_of_its_signal(run_as: Any, number: signal.Signals, code: ExitCode) -> None:
    """Whether the run was stopped before its verdict or is interrupted by it, also after a signal of another kind."""

    def stopped_in_its_span(*_: object) -> Result:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        return result_of("interrupted")

    done = run_as(lambda *_: signal.raise_signal(number))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "stopped\n")
    done = run_as(stopped_in_its_span)
    assert (done.returncode, "stopped" in done.stderr) == (code, False)
    assert Result.model_validate_json(done.stdout).verdict.value == "interrupted"


def test_a_stop_while_modules_load_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m streamgauge` takes most of its start for them."""

    class Stop:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "streamgauge.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "streamgauge.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Stop(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(app.__file__).parents[1] / "__main__.py"))
    assert ended.value.code == ExitCode.SIGINT


@pytest.mark.parametrize("error", [EngineError("spark did not start"), JobError(Problem("f()", "a rule", "a", "b"))])
def test_a_start_that_failed_names_its_folder_and_prints_its_result(
    run_as: Any, stand: Path, error: StreamgaugeError
) -> None:
    """A program that reads stdout gets what the folder holds; a person is shown where the engine's log is."""
    folder = RunFolder.create(stand / "runs", "identity", "spark", datetime.now(UTC))
    folder.write_result(result_of("invalid"))

    def fail(*_: object) -> None:
        with record_start_failure(folder):
            raise error

    done = run_as(fail)
    printed = Result.model_validate_json(done.stdout)
    assert printed.verdict.advice
    assert (printed.verdict.cause, printed.folder) == (Cause.START_FAILED, str(folder.path))
    assert (done.returncode, str(folder.path) in " ".join(done.stderr.split())) == (error.exit_code, True)


def test_python_without_docstrings_is_named() -> None:
    """Charts would fail at the end of a run, as a defect."""
    words = [sys.executable, "-OO", "-m", "streamgauge", "engines"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("error: PYTHONOPTIMIZE=2 (or -OO)")


@pytest.mark.parametrize(("before", "caught"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_stops_a_run_as_sigterm_does(
    monkeypatch: pytest.MonkeyPatch, before: Any, caught: bool
) -> None:
    """Unless the signal is ignored, as nohup does."""
    handlers = {signal.SIGHUP: before}
    monkeypatch.setattr(signal, "getsignal", handlers.get)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    assert call(monkeypatch, "engines", "--json") == 0
    assert (handlers[signal.SIGHUP] == handlers[signal.SIGTERM]) is caught


def test_a_refusal_names_everything_and_starts_nothing(stand: Path, invoke: Invoke) -> None:
    """Exit code 2; every problem with its value and its way out; nothing was made."""
    done = invoke("run", "identity", "--rate", "fast", "--duration", "soon", "--seed", "-1", "--set", "x", "--json")
    texts = (
        "error: --rate: ", "fast", "--rate 100k", "error: --duration: ", "soon", "error: --seed: ", "-1", "--set",
        "NAME=VALUE", "nothing was started",
    )  # fmt: skip
    assert [text for text in texts if text not in done.stderr] == []
    assert (done.returncode, done.stdout, done.stderr.count("try:")) == (2, "", 4)
    assert "Traceback" not in done.stderr
    assert list(stand.iterdir()) == []


def test_what_needs_a_flow_is_reported_where_none_can_be_built(stand: Path, invoke: Invoke) -> None:
    """Five slips of five kinds, reported at once."""
    done = invoke(
        "run", "windowed_aggregation", "--set", "slide=9s", "--rate", "100kb", "--duration", "5x", "--seed", "abc",
        "--option", "lowering.agg=window",
    )  # fmt: skip
    names = ("--rate", "--duration", "--seed", "slide", "option lowering.agg")
    assert [name for name in names if f"error: {name}: " not in done.stderr] == []
    assert (done.returncode, done.stdout, done.stderr.count("try:")) == (2, "", 5)


@pytest.mark.parametrize("flag", ["--set", "--option"])
def test_a_setting_that_is_given_twice_is_refused(flag: str) -> None:
    """Which of the two was meant is not known; the message shows both."""
    problem = problem_of(pairs, flag, ["range=4s", "other=1", " range =8s"])
    assert (problem.setting, problem.got, "'4s'" in problem.rule) == (flag, " range =8s", True)
    assert pairs(flag, ["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["sustain", "x", "--tolerance", "wide"], ["workload", "--tolerance", "--seed", "engine"]),
        (["sustain", "--tolerance", "2"], ["workload", "--tolerance", "--seed", "engine"]),
        (["sustain", "--resume", "missing"], ["--resume", "--seed", "engine"]),
        (["generate", "--out", "there", "--set", "x"], ["workload", "--set", "--seed", "engine"]),
    ],
)
def test_a_search_or_an_input_gets_all_its_problems(
    stand: Path, invoke: Invoke, words: list[str], named: list[str]
) -> None:
    """Also where no workload is named, or its run folder is not there; nothing is reported twice."""
    done = invoke(*words, "--seed", "-1", "--engine", "sprak")
    assert [name for name in named if f"{name}: " not in done.stderr] == []
    assert (done.returncode, done.stdout, done.stderr.count("try:")) == (2, "", len(named))
    assert list(stand.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["run", "identiti"],
        ["run", "identity", "--engine", "sprak"],
        ["run", "identity", "--set", "rang=8s"],
        ["run", "identity", "--option", "tirgger=1s"],
        ["run", "identity", "--bind", ""],
        ["run", "identity", "--limit", "p98<=2s"],
        ["run", "identity", "--queue-memory", "much"],
        ["run", "identity", "--generators", "none"],
        ["run", "identity", "--no-such-option"],
        ["run", "windowed_aggregation", "--set", "nope=3", "--print-toml"],
        ["run"],
        ["no-such-command"],
        ["generate", "identiti", "--out", "there"],
        ["experiment", "missing.toml"],
        ["report", "missing"],
        ["characterize", "identiti"],
        ["workloads", "identiti"],
        ["workloads", "identiti", "--json"],
        ["workloads", "--flow-json"],
        ["workloads", "windowed_aggregation", "--flow-json", "--set", "rang=8s"],
        ["workloads", "windowed_aggregation", "--set", "range=8s"],
        ["characterize", "identity", "--slices", "few"],
        ["compare", "missing"],
        ["compare", "missing", "missing"],
        ["compare", "missing", "missing", "--confidence", "high"],
    ],
    ids=" ".join,
)
def test_bad_words_are_refused(stand: Path, invoke: Invoke, words: list[str]) -> None:
    """Exit code 2, a message on stderr, nothing on stdout, no traceback, nothing made."""
    done = invoke(*words)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
    assert done.stderr.strip()
    assert list(stand.iterdir()) == []


@pytest.mark.parametrize("page", ["", "missing/page.html"])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, stand: Path, page: str
) -> None:
    """Nothing is computed for it: the sides are not looked at."""
    monkeypatch.setattr("streamgauge.studies.compare.compare.compare", lambda *_: pytest.fail("the sides were read"))
    with pytest.raises(InputError, match="--html"):
        app.compare("a", "b", html=stand / page)


def test_a_report_that_cannot_be_written_names_its_run(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, stand: Path
) -> None:
    """`report` has no --out, which a refusal must not advise."""
    (stand / "result.json").write_text(result_of("sustained").to_json())
    monkeypatch.setattr(tempfile, "mkstemp", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    done = invoke("report", str(stand))
    assert done.returncode == 2
    assert re.search(
        "RUN: must be a place that can be written to(.|\n)*try: a copy of the run folder in a folder you may write to",
        done.stderr,
    )


def test_a_machine_without_java_has_its_own_code(monkeypatch: pytest.MonkeyPatch, stand: Path) -> None:
    """The message says how to install it; no run folder is made."""
    for name in ("JAVA_HOME", "PATH"):
        monkeypatch.setenv(name, str(stand / "nowhere"))
    done = command("run", "identity", "--json")
    assert (done.returncode, done.stdout) == (5, "")
    refused = "JAVA_HOME: must lead to Java 17 or later, which spark needs(.|\n)*try: install(.|\n)*nothing was started"
    assert re.search(refused, done.stderr)
    assert list(stand.iterdir()) == []


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_page_that_finds_no_room_hides_no_result(
    stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke, words: tuple[str, ...]
) -> None:
    """The disk is full after the result was stored: it is printed, and the command that makes the page is named."""
    folder = RunFolder.create(stand / "runs", "identity", "spark", datetime.now(UTC))
    result = result_of("sustained").model_copy(update={"folder": str(folder.path)})
    folder.write_result(result)

    def run(_: object, __: object, on_result: Callable[..., object]) -> Result:
        monkeypatch.setattr("os.fsync", Mock(side_effect=OSError(errno.ENOSPC, "full")))
        on_result(folder, [])
        return result

    monkeypatch.setattr("streamgauge.studies.run.run.run_single", run)
    done = invoke("run", "identity", *words)
    assert (done.returncode, "said so" in done.stdout) == (0, True)
    assert "error:" not in done.stderr
    assert done.stderr.count(f"streamgauge report {folder.path}") == 1
    assert not any(line.startswith("report ") for line in done.stdout.splitlines())


def test_a_page_that_is_stopped_names_its_folder(
    stand: Path, monkeypatch: pytest.MonkeyPatch, run_as: Callable[..., Any]
) -> None:
    """A second Ctrl-C while the page is made: the result is stored, and the command that shows it is named."""
    folder = RunFolder.create(stand / "runs", "identity", "spark", datetime.now(UTC))
    monkeypatch.setattr("streamgauge.report.documents.run.write_page", Mock(side_effect=KeyboardInterrupt))
    done = run_as(lambda _, __, on_result: on_result(folder, []))
    assert (done.returncode, done.stdout) == (130, "")
    assert f"streamgauge report {folder.path}" in done.stderr
