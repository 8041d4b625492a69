"""`streamgauge experiment` on a file with a `[matrix]`: its options, refusals and exit codes. No engine is started."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.core.errors import EngineError, Problem
from streamgauge.core.machine_check import MachineCheck
from streamgauge.preflight import machine_requirements
from streamgauge.results.matrix import MatrixResult
from streamgauge.studies.matrix import cells
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal
from tests.unit.studies.matrix.helpers_matrix import performing

FILE = """
command = "run"
workload = "identity"
engine = "known"
[load]
warmup = "1s"
duration = "4s"
[matrix]
"""


def file_with(stand: Path, matrix: str) -> str:
    (stand / "experiment.toml").write_text(FILE + matrix)
    return "experiment.toml"


@pytest.fixture
def three(stand: Path) -> str:
    """A file with three cells."""
    return file_with(stand, 'load.rate = ["1k", "2k", "3k"]\n')


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (("sustained", "sustained", "sustained"), 0),
        (("sustained", "not_sustained", "sustained"), 1),
        (("sustained", "undecided", "sustained"), 3),
        (("not_sustained", "undecided", "sustained"), 1),
        (("sustained", "not_sustained", "invalid"), 4),
        (("invalid", KeyboardInterrupt()), 130),
        ((None, None, None), 0),
    ],
)
def test_the_exit_code_is_that_of_the_worst_cell(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, three: str, verdicts: tuple[Any, ...], code: int
) -> None:
    """A cell that was not run is worse than any other, because the matrix was stopped."""
    monkeypatch.setattr(cells, "perform", performing(*verdicts)[0])
    done = invoke("experiment", three, "--json")
    result = MatrixResult.model_validate_json(done.stdout)
    assert (done.returncode, len(result.cells)) == (code, len(verdicts))
    assert (Path(result.folder) / "report.html").exists()
    assert "1 of 3   load.rate=1k" in done.stderr


def test_a_cell_that_did_not_start_has_the_code_of_its_error(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, three: str
) -> None:
    """Its verdict is invalid, and an engine that does not start fails. The file has the code of each cell."""
    started = Mock(side_effect=EngineError("spark did not start"))
    monkeypatch.setattr(cells, "run_judged", started)
    done = invoke("experiment", three, "--json")
    result = MatrixResult.model_validate_json(done.stdout)
    assert {(cell.verdict, cell.exit_code) for cell in result.cells} == {("invalid", 1)}
    assert (done.returncode, len(result.cells)) == (1, 3)


def test_named_cells_decide_the_exit_code(monkeypatch: pytest.MonkeyPatch, invoke: Invoke, three: str) -> None:
    """That others are missing is not their failure; without --json the answer stands on stdout, too."""
    monkeypatch.setattr(cells, "perform", performing("sustained")[0])
    done = invoke("experiment", three, "--cells", "2")
    assert (done.returncode, "1 of 3 cells: 1 sustained" in done.stdout) == (0, True)
    (folder,) = Path("runs").iterdir()
    monkeypatch.setattr(cells, "perform", performing("sustained", "sustained")[0])
    again = invoke("experiment", "--resume", str(folder))
    shown = ("3 of 3 cells: 3 sustained" in again.stdout, "1 earlier cell" in again.stderr)
    assert (again.returncode, shown) == (0, (True, True))


def test_a_folder_of_the_command_line_goes_before_that_of_the_file(
    stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke, three: str
) -> None:
    """A resumed matrix stays in its own."""
    monkeypatch.setattr(cells, "perform", performing("sustained", "sustained", "sustained")[0])
    (stand / "experiment.toml").write_text(f'out = "elsewhere"\n{(stand / "experiment.toml").read_text()}')
    assert invoke("experiment", three, "--out", "here").returncode == 0
    assert not Path("elsewhere").exists()
    (folder,) = Path("here").iterdir()
    done = invoke("experiment", "--resume", str(folder), "--out", "there")
    assert (done.returncode, "error: --out: must not be given with --resume" in done.stderr) == (2, True)


def test_a_dry_run_lists_cells_and_minutes(stand: Path, invoke: Invoke, three: str) -> None:
    """For people and for programs; nothing is written."""
    text, document = invoke("experiment", three, "--dry-run"), invoke("experiment", three, "--dry-run", "--json")
    assert (text.returncode, text.stderr) == (0, "")
    assert "3 cells, about 0." in text.stdout
    assert [cell["settings"] for cell in json.loads(document.stdout)["cells"]] == [
        {"load.rate": "1k"}, {"load.rate": "2k"}, {"load.rate": "3k"}
    ]  # fmt: skip
    assert [path.name for path in stand.iterdir()] == ["experiment.toml"]


def test_a_dry_run_shows_what_its_cells_lack_here(monkeypatch: pytest.MonkeyPatch, invoke: Invoke, three: str) -> None:
    """Each once, of a matrix and of a sweep, with the code of the refusal."""
    lacking = MachineCheck("java", "none", (Problem("PATH", "must lead to Java", None, "install it"),))
    monkeypatch.setattr(machine_requirements, "starting_checks", lambda _: [lacking])
    for words in (
        ("experiment", three),
        ("sweep", "identity", "--engine", "known"),
        ("sweep", "identity", "--of", "1k"),
    ):
        done = invoke(*words, "--dry-run")
        assert (done.returncode, done.stdout.count("missing here: PATH: must lead to Java; install it")) == (5, 1)


def test_a_matrix_shows_itself_as_a_file_that_does_the_same(stand: Path, invoke: Invoke, three: str) -> None:
    """`--print-toml` checks every cell."""
    shown = invoke("experiment", three, "--print-toml")
    assert shown.returncode == 0
    (stand / "shown.toml").write_text(shown.stdout)
    assert invoke("experiment", "shown.toml", "--print-toml").stdout == shown.stdout
    cells = [invoke("experiment", name, "--dry-run", "--json").stdout for name in (three, "shown.toml")]
    assert cells[0] == cells[1]


@pytest.mark.parametrize(
    ("matrix", "options", "setting"),
    [
        ("\n".join(f"parameters.p{n} = {list(range(10))}" for n in range(6)), (), "matrix"),
        ('load.rat = ["1k"]', (), "matrix.load.rat"),
        ("load.rate = []", (), "matrix.load.rate"),
        ('load.rate = ["1k"]\nexclude = [{ load.rate = "1k" }]', (), "matrix.exclude"),
        ('load.rate = ["1k"]', ("--cells", "2"), "--cells"),
        ('load.rate = ["1k"]', ("--cells", "2", "--dry-run"), "--cells"),
        ('load.rate = ["1k"]', ("--resume", "missing"), "--resume"),
        ('load.rate = ["1k", "fast"]', ("--dry-run",), "load.rate"),
        ("repeat = 0", (), "matrix.repeat"),
    ],
)
def test_bad_input_is_one_message(
    stand: Path, invoke: Invoke, matrix: str, options: tuple[str, ...], setting: str
) -> None:
    """And nothing is written."""
    assert_one_refusal(invoke("experiment", file_with(stand, matrix), *options), setting)
    assert [path.name for path in stand.iterdir()] == ["experiment.toml"]


def test_cells_of_a_file_without_a_matrix_are_refused(stand: Path, invoke: Invoke) -> None:
    """Of a command without a plan of its own a dry run shows the one cell. A file or a folder must be given."""
    one = 'workload = "identity"\nengine = "spark"\ncommand = "anatomy"\n'
    (stand / "one.toml").write_text(one)
    for words, message in (
        (["one.toml", "--cells", "1", "--dry-run"], "must name cells of a [matrix], and the file has none"),
        (["one.toml", "--cells", "1"], "must name cells of a [matrix], and the file has none"),
        ([], "streamgauge experiment FILE, or --resume FOLDER"),
    ):
        done = invoke("experiment", *words)
        assert (done.returncode, message in done.stderr) == (2, True)
    assert "1 cell, about" in invoke("experiment", "one.toml", "--dry-run").stdout


def test_a_file_with_a_paper_runs_as_one_cell(stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """Its page has the paper's table, and can be made again without that table's file."""
    (stand / "published").mkdir()
    (table := stand / "published" / "table.csv").write_text("system,throughput_per_s\nStorm,400000\n")
    paper = 'paper = { work = "Paper 2018", table = "table I", hardware = "two nodes", published = "table.csv" }\n'
    (stand / "experiment.toml").write_text(paper + FILE.replace("[matrix]\n", ""))
    monkeypatch.setattr(cells, "perform", performing("sustained")[0])
    assert invoke("experiment", "experiment.toml").returncode == 0
    (folder,) = Path("runs").iterdir()
    table.unlink()
    (folder / "report.html").unlink()
    assert invoke("report", str(folder)).returncode == 0
    assert "Published: Paper 2018, table I" in (folder / "report.html").read_text()
    assert_one_refusal(invoke("experiment", "experiment.toml"), "paper.published")
