"""The driver's side of Spark's process: why it did not start, and what is made of its answers. None is started here."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import EngineError, InputError, JobError, Problem, SettingError
from streamgauge.engines.spark import engine, launch, main
from streamgauge.engines.spark.engine import DSTREAM, MICRO_BATCH, REAL_TIME, ExecutionMode, SparkEngine
from streamgauge.engines.spark.launch import started
from streamgauge.engines.spark.session import python_workers
from streamgauge.engines.spark.session.python_workers import HOME_NOTICE, view_of_spark_home
from streamgauge.engines.spark.session.reports import DStreamProgress, progress_of
from streamgauge.engines.spark.session.session import RUNNING, UP
from streamgauge.engines.spi import Edges
from streamgauge.system.child_processes import ChildFailed, ChildSilent
from streamgauge.transports.spi import Edge

NO_HEAP = "WARNING: an unusual start\nError occurred during initialization of VM\n  Too small maximum heap\nmore\n"


class Failing:
    """A child that answers nothing but an error."""

    def __init__(self, log: Path, error: ChildFailed) -> None:
        self.log, self._error, self.stage = log, error, ""

    def ask(self, request: str, timeout_s: float) -> Any:
        assert request == "start"
        raise self._error


def engine_of(child: Any, mode: ExecutionMode = MICRO_BATCH) -> SparkEngine:
    made = SparkEngine(mode=mode)
    made._child = child
    return made


@pytest.fixture
def failing(tmp_path: Path) -> Failing:
    """Its JVM never came up."""
    log = tmp_path / "spark.log"
    log.write_text(NO_HEAP)
    return Failing(log, ChildFailed("JAVA_GATEWAY_EXITED"))


def test_the_reason_of_a_jvm_that_never_came_up_is_reported(failing: Failing) -> None:
    """It stands in the log alone: two lines of it, after Spark's own message."""
    with pytest.raises(EngineError) as caught:
        started(failing)
    assert str(caught.value) == (
        "spark did not start: JAVA_GATEWAY_EXITED\n"
        "  Error occurred during initialization of VM: Too small maximum heap\n"
        f"  whole log: {failing.log}"
    )
    assert caught.value.log == str(failing.log)


def test_what_is_done_to_every_start_stands_among_the_settings(tmp_path: Path) -> None:
    """The home is a view without the zip, workers are spared, and Spark logs less than it would: no option says so."""
    child = SimpleNamespace(ask=lambda request, timeout_s: {"spark.x": "1"})
    assert started(child) == {
        "spark.x": "1",
        "spark home": HOME_NOTICE,
        "python workers": python_workers.WORKERS_NOTICE,
        "log level": "WARN",
    }
    assert "without pyspark.zip" in HOME_NOTICE
    view = view_of_spark_home(tmp_path)
    assert (view / "jars").is_dir()
    assert not (view / "python" / "lib" / "pyspark.zip").exists()


def test_workers_that_are_left_to_spark_have_its_own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told so by a variable; among the settings nothing is said to be done for them."""
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(launch, "Child", lambda *given: environments.append(given[-1]))
    for options in ({}, {"python_workers": "spark", "worker_start": "zip"}, {"worker_start": "zip"}):
        launch.spark_process("module", {}, tmp_path, tmp_path / "log", options=options)
    ours, sparks, at_start = environments
    assert ours["SPARK_HOME"] == str(tmp_path / "spark-home")
    assert python_workers.VARIABLE not in ours
    assert (Path(sparks["SPARK_HOME"]) / "python" / "lib" / "pyspark.zip").exists()
    assert sparks[python_workers.VARIABLE] == "spark"
    assert (at_start["SPARK_HOME"], python_workers.VARIABLE in at_start) == (sparks["SPARK_HOME"], False)
    child = SimpleNamespace(ask=lambda request, timeout_s: {})
    assert started(child, options={"python_workers": "spark", "worker_start": "zip"}) == {"log level": "WARN"}
    assert started(child, options={"worker_start": "zip"}).keys() == {"python workers", "log level"}
    assert started(child, options={"python_workers": "spark"}).keys() == {"spark home", "log level"}


@pytest.mark.parametrize(
    ("kind", "error"), [("SettingError", SettingError), ("JobError", JobError), ("Other", InputError)]
)
def test_what_is_refused_is_the_users(tmp_path: Path, kind: str, error: type[InputError]) -> None:
    """With the problems as they were, and the kind of error that it was in there."""
    problem = Problem("option spark.x", "is not known to Spark", "1", "leave it out")
    with pytest.raises(InputError) as caught:
        started(Failing(tmp_path / "log", ChildFailed("refused", kind, [problem])))
    assert type(caught.value) is error
    assert list(caught.value.problems) == [problem]


@pytest.mark.parametrize(
    ("stage", "kind", "message"),
    [
        (f"{RUNNING}: dear(): my_job.py, line 7: sleep(600)", JobError, "my_job.py, line 7: sleep"),
        (UP, EngineError, r"spark did not start: no answer\. The load is"),
    ],
)
def test_a_function_that_does_not_return_is_the_users(
    tmp_path: Path, stage: str, kind: type[Exception], message: str
) -> None:
    """With the line at which it was; Spark itself has started then."""
    silent = Failing(tmp_path / "log", ChildSilent("no answer"))
    silent.log.touch()
    silent.stage = stage
    with pytest.raises(kind, match=message):
        started(silent)


def test_a_restart_starts_the_process_as_the_start_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same job, environment and processors; else the restarted engine would be another one."""
    starts: list[tuple[Any, ...]] = []

    def process(*given: Any) -> Any:
        starts.append(given)
        return SimpleNamespace(log=given[3], kill=lambda: starts.append(()), stop=lambda _: None)

    monkeypatch.setattr(engine, "spark_process", process)
    monkeypatch.setattr(engine, "started", lambda _, *given: {"started with": str(given)})
    made, options = SparkEngine((0,)), {"python_workers": "spark"}
    made.start(None, Edges((), Edge("nowhere", ""), {}), options, "local[1]", tmp_path / "engine")
    made.restart()
    made.stop()
    first, killed, again = starts
    assert killed == ()
    assert first == again
    assert made.settings()["started with"] == str(("local[1]", options))
    assert made.consumer_group(None, "run") == ""  # its batches report what they read


@pytest.mark.parametrize(
    ("reason", "kind", "logged", "full"),
    [
        ("Spark's JVM ended (SIGKILL)", "EngineError", True, False),
        ("Spark's JVM ended (SIGKILL)", "RuntimeError", False, False),
        ("No space left on device", "RuntimeError", False, True),
    ],
)
def test_the_end_of_its_jvm_is_reported_with_its_log(
    tmp_path: Path, reason: str, kind: str, logged: bool, full: bool
) -> None:
    """The process outlives it and answers with what it saw, as one that ended itself is told. A full disk is a flag,
    since the verdict does not read the reason.
    """
    log = tmp_path / "spark.log"

    def ask(*_: Any) -> Any:
        raise ChildFailed(reason, kind)

    child: Any = SimpleNamespace(ask=ask, alive=True, log=log, exit_code=1)
    made = engine_of(child)
    found = made.status()
    assert (found.alive, str(log) in found.reason, found.disk_full) == (False, logged, full)
    assert found.reason.startswith(reason)
    child.alive = False
    assert made.status().reason == f"the Spark process ended (exit code 1); its log: {log}"


DSTREAM_INFO = SimpleNamespace(
    outputOperationInfos=lambda: {0: SimpleNamespace(startTime=lambda: 1010, endTime=lambda: 1250)},
    schedulingDelay=lambda: 30,
)


def test_a_dstream_batch_has_the_times_of_its_output() -> None:
    """To the microsecond; its one step is the processing of the data."""
    assert progress_of("q", 4, DSTREAM_INFO, [(0, 3, 1010, 2)]) == DStreamProgress(
        query="q", batch=4, start_us=1_010_000, end_us=1_250_000, steps_us={"add_batch": 240_000},
        blocks=[(0, 3, 1010, 2)],
        waited_us=30_000,
    )  # fmt: skip
    unknown = SimpleNamespace(**{**vars(DSTREAM_INFO), "schedulingDelay": lambda: -1})
    assert progress_of("q", 4, unknown).waited_us is None


@pytest.mark.parametrize(
    ("mode", "progress"),
    [
        (MICRO_BATCH, BatchProgress("q", 4, 1000, 2000, {"add_batch": 600})),
        (REAL_TIME, BatchProgress("", 4, 1000)),
        (DSTREAM, progress_of("q", 4, DSTREAM_INFO, [[0, 3, 1010, 2]])),
    ],
)
def test_progress_arrives_as_it_was_sent(mode: ExecutionMode, progress: BatchProgress) -> None:
    """The SUT process answers in JSON."""
    child = SimpleNamespace(ask=lambda *_: json.loads(json.dumps([asdict(progress)])))
    assert engine_of(child, mode).batch_progress() == [progress]


def test_a_call_that_fails_because_the_jvm_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection, or a batch that ended by it; another failure keeps its own words."""

    def refused() -> dict[str, Any]:
        raise ConnectionRefusedError(111, "Connection refused")

    dead = {"alive": False, "reason": "[Errno 111] Connection refused"}
    for status in (refused, lambda: dead):
        monkeypatch.setattr(main, "jvm_ended", lambda: "Spark's JVM ended (SIGKILL)")
        with pytest.raises(EngineError, match=r"JVM ended \(SIGKILL\)"):
            main.checked_jvm(status)
    monkeypatch.setattr(main, "jvm_ended", lambda: "")
    assert main.checked_jvm(lambda: dead) == dead
    with pytest.raises(ConnectionRefusedError):
        main.checked_jvm(refused)
