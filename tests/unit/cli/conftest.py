"""Commands called in a folder of the test's own."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.helpers_commands import Invoke, call_and_read


@pytest.fixture(autouse=True)
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run folders, should any be made, go to a place of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Invoke:
    """The command in this process, as if it were one of its own: an error that it does not tell fails the test."""
    return lambda *words: subprocess.CompletedProcess(words, *call_and_read(monkeypatch, capsys, *words))
