"""A command that is killed or stopped leaves its run folder only, and a search or a matrix goes on from that: real
ones, on the engine that needs no Java, and one on Spark.
"""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from streamgauge.artifacts.run_folder import MATRIX, STARTED, RunFolder
from streamgauge.cli import app
from streamgauge.core.exit_codes import VERDICT_CODES
from streamgauge.results.matrix import MatrixResult
from streamgauge.results.run import Result
from streamgauge.studies.capacity.sustain import recorded
from streamgauge.system.child_processes import wait_until
from streamgauge.system.disk import LOCK, PREFIX

ON_KNOWN = ("identity", "--engine", "known", "--generators", "2", "--warmup", "1s", "--out", "runs")
RUN = ("run", *ON_KNOWN, "--rate", "2k", "--duration", "10m")
RUN_ON_SPARK = (
    "run", "windowed_aggregation", "--set", "range=2s", "--set", "slide=1s", "--set", "packs=50", "--generators", "2",
    "--warmup", "5s", "--rate", "5k", "--duration", "10m", "--out", "runs",
)  # fmt: skip
SEARCH = ("sustain", *ON_KNOWN, "--start-rate", "2k", "--duration", "1s", "--quick", "--trials-max", "3")
STARTED_S = 120.0
"""For a machine that is busy; what is waited for comes within a few seconds."""


def environment(at: Path, java: bool = False) -> dict[str, str]:
    """Without a Java, unless it is asked for."""
    paths = os.pathsep.join(filter(None, sys.path))
    home = {} if java else {"JAVA_HOME": str(at / "nowhere")}
    return {**os.environ, "TMPDIR": str(at / "tmp"), "PYTHONPATH": paths, **home}


@contextmanager
def started_command(
    at: Path, words: Sequence[str], until: Callable[[Path], bool], java: bool = False
) -> Iterator[tuple[psutil.Process, list[psutil.Process]]]:
    """(the command, its children) once `until` holds, beside what a run that was killed has left."""
    old = at / "tmp" / f"{PREFIX}verify-old"
    old.mkdir(parents=True)
    (old / LOCK).touch()
    command = [sys.executable, "-m", "streamgauge", *words]
    with subprocess.Popen(
        command, cwd=at, env=environment(at, java), stderr=subprocess.DEVNULL, preexec_fn=_hears_ctrl_c
    ) as process:
        try:
            assert wait_until(lambda: until(at) or process.poll() is not None, STARTED_S)
            assert process.poll() is None
            itself = psutil.Process(process.pid)
            yield itself, itself.children(recursive=True)
        finally:
            process.kill()


def results_flow(at: Path) -> bool:
    return any((at / "tmp").glob("*/spool/*"))


def second_trial_began(at: Path) -> bool:
    return any((at / "runs").glob("*/trials/02/experiment.toml"))


def _hears_ctrl_c() -> None:
    """Where the tests themselves run behind `&`, a shell has told them to ignore it, and that is inherited."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ended(process: psutil.Process) -> bool:
    """Gone, or dead and not yet buried by whoever has inherited it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def left(at: Path) -> list[str]:
    return sorted(path.name for path in (at / "tmp").iterdir())


@pytest.mark.process
def test_kill_9_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    """The children end by their lifelines, and the last ones there remove what was not to be kept."""
    with started_command(tmp_path, RUN, results_flow) as (command, children):
        assert len(children) == 4
        command.kill()
        assert wait_until(lambda: all(map(ended, children)), 30)
        assert wait_until(lambda: left(tmp_path) == [], 10), left(tmp_path)


@pytest.mark.process
@pytest.mark.parametrize(
    "sign",
    [signal.SIGINT, *(pytest.param(other, marks=pytest.mark.long) for other in (signal.SIGTERM, signal.SIGHUP))],
    ids=lambda sign: sign.name,
)
def test_a_command_that_gets_a_signal_leaves_its_run_folder_only(tmp_path: Path, sign: signal.Signals) -> None:
    """What was measured is kept, and the verdict says why there is no more; no Java was needed."""
    with started_command(tmp_path, RUN, results_flow) as (command, children):
        command.send_signal(sign)
        assert command.wait(60) == 128 + sign
        assert all(map(ended, children))
    assert left(tmp_path) == []
    (folder,) = (tmp_path / "runs").iterdir()
    assert '"interrupted"' in (folder / "result.json").read_text()


@pytest.mark.spark
@pytest.mark.long
def test_ctrl_c_ends_spark_too_and_keeps_what_was_measured(tmp_path: Path) -> None:
    """In mid-run: its figures up to then are in the folder, and no process of Spark's or ours is left."""
    with started_command(tmp_path, RUN_ON_SPARK, results_flow, java=True) as (command, children):
        programs = {child.name() for child in children}
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == 130
        assert "java" in programs
        assert all(map(ended, children))
    assert left(tmp_path) == []
    (path,) = (tmp_path / "runs").iterdir()
    folder = RunFolder.open(path)
    result = folder.read_result()
    assert result.verdict.value == "interrupted"
    assert result.driver is not None
    assert result.driver.events_offered >= result.driver.events_committed > 0
    assert sum(folder.read_series().column("handed_out").to_pylist()) > 0
    assert folder.read_engine_table("batches").num_rows > 0


@pytest.mark.process
def test_a_search_that_was_killed_says_so_and_goes_on(tmp_path: Path) -> None:
    """kill -9 in its second trial: the folder can be read, and --resume makes the trials that are not there yet."""
    with started_command(tmp_path, SEARCH, second_trial_began) as (command, children):
        command.kill()
        assert wait_until(lambda: all(map(ended, children)), 30)
    (path,) = (tmp_path / "runs").iterdir()
    folder = RunFolder.open(path)
    for one in (folder, *folder.trials()[1:]):
        assert (one.read_result().verdict.value, one.read_result().verdict.sentence) == ("interrupted", STARTED)
    assert CliRunner().invoke(app.app, ["report", str(path)]).exit_code == 0
    (first,) = recorded(folder)

    again = [sys.executable, "-m", "streamgauge", "sustain", "--resume", str(path), "--json"]
    done = subprocess.run(again, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    found = Result.model_validate(json.loads(done.stdout))
    assert done.returncode == VERDICT_CODES[found.verdict.value], done.stderr
    assert found == folder.read_result()
    assert found.search is not None
    # Two where the first is undecided on a busy machine: that and one below it are a bracket.
    assert [Path(trial.folder).name for trial in found.search.trials][:2] == ["01", "02"]
    assert recorded(folder)[0] == first
    assert "interrupted" not in {found.verdict.value, *(one.read_result().verdict.value for one in folder.trials())}
    assert left(tmp_path) == []


MATRIX_FILE = """
command = "run"
workload = "identity"
engine = "known"
[load]
rate = "2k"
warmup = "1s"
duration = "1s"
generators = 2
[matrix]
options.capacity = ["400k", "200k"]
load.seed = [1, 2]
exclude = [{ options.capacity = "200k", load.seed = 2 }]
"""


def second_cell_began(at: Path) -> bool:
    return any((at / "runs").glob("*-matrix/cells/002/*/experiment.toml"))


@pytest.mark.long
@pytest.mark.process
def test_a_matrix_that_was_killed_keeps_its_cells_and_goes_on(tmp_path: Path) -> None:
    """kill -9 in its second cell; --resume runs that and the third. The figures of a cell are those of its run."""
    (tmp_path / "asked.toml").write_text(MATRIX_FILE)
    with started_command(tmp_path, ("experiment", "asked.toml"), second_cell_began) as (command, children):
        command.kill()
        assert wait_until(lambda: all(map(ended, children)), 30)
    (folder,) = (tmp_path / "runs").iterdir()
    before = MatrixResult.model_validate_json((folder / MATRIX).read_bytes())
    assert ([row.number for row in before.cells], before.finished) == ([1], False)

    again = [sys.executable, "-m", "streamgauge", "experiment", "--resume", str(folder), "--json"]
    done = subprocess.run(again, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    result = MatrixResult.model_validate(json.loads(done.stdout))
    assert (result.finished, result.cells[0]) == (True, before.cells[0]), done.stderr
    assert [tuple(row.settings.values()) for row in result.cells] == [("400k", 1), ("400k", 2), ("200k", 1)]
    for row in result.cells:
        run = RunFolder.open(folder / row.folder).read_result()
        assert (run.verdict.value, run.experiment["load"]["seed"]) == (row.verdict, row.settings["load.seed"])
        assert (run.rate and run.rate.ingested_per_s) == row.ingested_per_s
        assert (folder / row.report).exists()
    with (folder / "cells.csv").open(newline="") as lines:
        assert [row["verdict"] for row in csv.DictReader(lines)] == [row.verdict for row in result.cells]
    assert left(tmp_path) == []
