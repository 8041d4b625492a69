"""Options and commands as they are typed."""

import os

import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.config.options_and_settings import build
from streamgauge.config.reproduce import command
from tests.unit.cli.helpers_commands import Invoke


def test_the_processors_of_both_sides_are_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    words = ["run", "filter", "--engine", "known", "--driver-cpus", "0", "--sut-cpus", "3,1-2", "--print-toml"]
    done = CliRunner().invoke(app.app, words)
    assert done.exit_code == 0, done.output
    assert '[cpus]\ndriver = "0"\nsut = "1-3"\n' in done.stdout
    assert 'isolation = "pinned"' in done.stdout


def test_the_command_to_run_again_has_the_processors() -> None:
    experiment = build({"workload": "count", "cpus": {"driver": "0", "sut": "1-3"}})
    words = str(command(experiment.model_dump(mode="json")))
    assert "--driver-cpus 0 --sut-cpus 1-3" in words


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
