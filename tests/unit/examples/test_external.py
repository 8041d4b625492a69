"""The command that each example of a program shows is one that streamgauge accepts."""

import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from tests.helpers_external import EVERY_EXAMPLE, shown_line
from tests.helpers_modules import ROOT


@pytest.mark.parametrize("name", EVERY_EXAMPLE)
def test_the_line_in_an_example_is_accepted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file too. Long tests run it."""
    monkeypatch.chdir(ROOT)
    shown = CliRunner().invoke(app.app, [*shown_line(name)[1:], "--print-toml"])
    assert shown.exit_code == 0, shown.output
