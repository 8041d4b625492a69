"""A command that does not exist: the nearest one, and a list of all."""

import pytest

from tests.unit.cli.helpers_commands import call


@pytest.mark.parametrize(
    ("word", "meant"), [("compre", "Did you mean 'compare'?"), ("job.py", "Did you mean 'run job.py'?"), ("foo", "")]
)
def test_an_unknown_command_is_answered_with_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str, meant: str
) -> None:
    assert call(monkeypatch, word) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert f"No such command '{word}'." in message
    assert meant in message
    assert all(name in message.partition("The commands: ")[2] for name in ("run", "sustain", "report"))


def test_an_unknown_option_is_answered_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "identity", "--rte", "5") == 2
    assert "--rate" in capsys.readouterr().err
