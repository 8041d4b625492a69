"""A command that does not exist: the nearest one, and a list of all."""

import pytest

from tests.unit.cli.helpers_commands import Invoke


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
