"""Commands called in this process or as a program."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from streamgauge.cli import app
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict

Invoke = Callable[..., "subprocess.CompletedProcess[str]"]


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["streamgauge", *words])
    try:
        app.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def call_and_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, str, str]:
    """The command in this process: (exit code, stdout, stderr), without colours and in wide lines."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    return call(monkeypatch, *map(str, words)), *capsys.readouterr()


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "streamgauge", *words], capture_output=True, text=True, check=False, env=environment
    )


def assert_one_refusal(done: subprocess.CompletedProcess[str], setting: str) -> None:
    """Exit code 2, and one problem that names the setting, the rule, the value and a way out."""
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {setting}: " in done.stderr
    assert [done.stderr.count(word) for word in ("got:", "try:", "nothing was started")] == [1, 1, 1]


def refused(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, str]]:
    """(setting, value, way out) of each problem of a refusal, which has exit code 2 and an empty stdout."""
    assert (done.returncode, done.stdout) == (2, "")
    return re.findall(r"^error: (.+?): .+\n  got: (.*)\n  try: (.*)$", done.stderr, re.MULTILINE)


def result_of(value: Any) -> Result:
    return Result(
        run_id="2026-01-31T12-00-00Z-identity-spark", start_time="2026-01-31T12:00:00+00:00", workload="identity",
        engine="spark", isolation="shared", experiment={}, verdict=Verdict(value=value, sentence="said so"),
    )  # fmt: skip
