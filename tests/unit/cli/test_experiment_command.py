"""`streamgauge experiment FILE`: the same as the command that the file names. No engine is started."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from streamgauge.cli import app
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import InputError, Problem
from tests.unit.cli.helpers_commands import Invoke

TINY = 'workload = "identity"\n[load]\nrate = "1k"\nduration = "1s"\ngenerators = 2\n'


def run_file(tmp_path: Path, text: str, *options: str) -> Result:
    """The command on a file with `text`."""
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    return CliRunner().invoke(app.app, ["experiment", str(file), *options])


def refused(done: Result) -> tuple[Problem, ...]:
    """The problems of a refusal."""
    error: Any = done.exception
    assert isinstance(error, InputError)
    return error.problems


@pytest.mark.parametrize(
    ("command", "function"), [("run", "run.run.run_single"), ("sustain", "capacity.sustain.sustain")]
)
def test_the_file_chooses_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, function: str
) -> None:
    """The experiment reaches the function of its command, whose result is printed and gives the exit code."""
    result = SimpleNamespace(to_json=lambda: '{"made": "up"}', verdict=SimpleNamespace(value="undecided"), folder="")
    monkeypatch.setattr(f"streamgauge.studies.{function}", perform := Mock(return_value=result))
    done = run_file(tmp_path, f'command = "{command}"\n{TINY}', "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (3, {"made": "up"})
    assert [call.args[0] for call in perform.call_args_list] == [read(tmp_path / "experiment.toml")]
    assert perform.call_args.args[0].command == command


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (f'command = "generate"\n{TINY}', {"out"}),  # where to write has no default
        ('workload = "identity"\nspeed = 1\n[load]\nrat = "1k"\n', {"speed", "load.rat"}),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, settings: set[str]) -> None:
    """Every key that there is not is reported, with its dotted name."""
    assert {problem.setting for problem in refused(run_file(tmp_path, text))} == settings


def test_a_refusal_of_a_file_names_its_lines(tmp_path: Path, invoke: Invoke) -> None:
    """A setting and the way out are those of the file; the same refusal of a command names its options."""
    file = tmp_path / "experiment.toml"
    file.write_text('workload = "filter"\n[parameters]\nabove = 500')
    of_file, of_command = invoke("experiment", str(file)), invoke("run", "filter", "--set", "above=500")
    assert (of_file.returncode, of_command.returncode) == (2, 2)
    assert ("--set" in of_file.stderr, "error: parameters.above: " in of_file.stderr) == (False, True)
    assert ("--set above=90" in of_command.stderr, "error: set above: " in of_command.stderr) == (True, True)


def test_generate_writes_where_the_file_says(tmp_path: Path) -> None:
    """`out` is the folder of the input; one file a partition."""
    done = run_file(tmp_path, f'command = "generate"\nout = "{tmp_path / "input"}"\n{TINY}', "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["events"] == {"purchases": 1000}
    files = sorted(path.name for path in (tmp_path / "input" / "purchases").iterdir())
    assert files == ["part-0.parquet", "part-1.parquet"]


def test_the_command_line_may_say_where_to_write(tmp_path: Path) -> None:
    """`--out` goes before the file's own `out`, which it may lack."""
    done = run_file(tmp_path, f'command = "generate"\n{TINY}', "--out", str(tmp_path / "input"), "--json")
    assert (done.exit_code, (tmp_path / "input" / "purchases").is_dir()) == (0, True), done.output


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("run", ["--rate", "1k", "--chunk", "20ms", "--set", "data=rows.csv"]),
        ("sustain", ["--tolerance", "7%", "--quick", "--limit", "event_time_p50<=2s"]),  # 0.07 in the file
        ("generate", ["--rate", "1k", "--out", "input"]),
        ("anatomy", ["--rates", "1k,2k", "--batch-windows", "0s"]),
        ("characterize", ["--slices", "200", "--multipliers", "1,3", "--apply"]),
    ],
)
def test_a_command_shows_itself_as_a_file_that_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, options: list[str]
) -> None:
    """What `--print-toml` prints, `experiment` accepts and prints again unchanged; nothing is started or written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("user_id,gem_pack_id,price\n1,2,3\n")
    shown = CliRunner().invoke(app.app, [command, "identity", *options, "--print-toml"])
    assert shown.exit_code == 0, shown.exception
    assert f'command = "{command}"' in shown.stdout
    assert ("tolerance = 0.07" in shown.stdout) is (command == "sustain")
    assert run_file(tmp_path, shown.stdout, "--print-toml").stdout == shown.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "experiment.toml"}


@pytest.mark.parametrize(
    ("name", "rule"),
    [(".", "this is a folder"), ("latin.toml/x", "must be an existing file"), ("latin.toml", "UTF-8"),
     ("n" * 300, "can be read"), ("none.toml", "must be an existing file")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, rule: str) -> None:
    """Whatever the system says of it."""
    (tmp_path / "latin.toml").write_bytes('workload = "\xe9"'.encode("latin-1"))
    problem = refused(CliRunner().invoke(app.app, ["experiment", str(tmp_path / name)]))[0]
    assert rule in problem.rule
    assert name == "." or problem.got == str(tmp_path / name)
