"""`--cpus`: one option with the processors of both sides."""

import os

import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.cli.parameters import one_option_a_side
from streamgauge.config.options_and_settings import build
from streamgauge.config.reproduce import command
from tests.unit.cli.helpers_commands import Invoke

BOTH = ["--cpus", "driver=0", "--cpus", "sut=1-3"]


@pytest.mark.parametrize(("typed", "read"), [
    (["--cpus", "driver=0", "sut=1-3"], BOTH),
    (["--cpus=driver=0", "sut=1-3"], ["--cpus=driver=0", "--cpus", "sut=1-3"]),
    (BOTH, BOTH),
    (["--cpus", "sut=1", "driver=0", "count", "--rate", "5"],
     ["--cpus", "sut=1", "--cpus", "driver=0", "count", "--rate", "5"]),
    (["--set", "driver=0", "sut=1"], ["--set", "driver=0", "sut=1"]),
    (["--cpus", "0", "sut=1"], ["--cpus", "0", "sut=1"]),
    ([], []),
])  # fmt: skip
def test_each_side_becomes_an_option(typed: list[str], read: list[str]) -> None:
    """As the command line's parser needs it. Other words stay as they are."""
    assert one_option_a_side(["run", *typed]) == ["run", *read]


def test_processors_are_typed_as_they_are_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    words = ["run", "filter", "--engine", "known", "--cpus", "driver=0", "sut=1-3", "--print-toml"]
    done = CliRunner().invoke(app.app, words)
    assert done.exit_code == 0, done.output
    assert '[cpus]\ndriver = "0"\nsut = "1-3"\n' in done.stdout
    assert 'isolation = "pinned"' in done.stdout


def test_the_command_to_run_again_has_the_processors() -> None:
    experiment = build({"workload": "count", "cpus": {"driver": "0", "sut": "1-3"}})
    words = str(command(experiment.model_dump(mode="json"))).split()
    assert [words[at + 1] for at, word in enumerate(words) if word == "--cpus"] == ["driver=0", "sut=1-3"]


@pytest.mark.parametrize(
    ("word", "meant"), [("compre", "Did you mean 'compare'?"), ("job.py", "Did you mean 'run job.py'?"), ("foo", "")]
)
def test_an_unknown_command_is_answered_with_the_commands(invoke: Invoke, word: str, meant: str) -> None:
    done = invoke(word)
    message = " ".join(done.stderr.split())
    assert (done.returncode, f"No such command '{word}'." in message, meant in message) == (2, True, True)
    assert all(name in message.partition("The commands: ")[2] for name in ("run", "sustain", "report"))


def test_an_unknown_option_is_answered_with_the_nearest(invoke: Invoke) -> None:
    done = invoke("run", "identity", "--rte", "5")
    assert (done.returncode, "--rate" in done.stderr) == (2, True)
