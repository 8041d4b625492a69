"""Commands called in a folder of the test's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.helpers_commands import Asked, call


@pytest.fixture(autouse=True)
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run folders, should any be made, go to a place of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    """The command in this process, as if it were one of its own: an error that it does not tell fails the test."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")

    def one(*words: str) -> subprocess.CompletedProcess[str]:
        code = call(monkeypatch, *words)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return one
