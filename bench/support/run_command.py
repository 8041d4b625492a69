"""Runs the command as a user would type it, and reads its result."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunCase:
    """A run as typed; `more`: further arguments."""

    workload: str
    rate: str
    duration: str = "60s"
    more: tuple[str, ...] = ()


def run_search(label: str, arguments: list[str], folder: Path) -> dict[str, Any] | None:
    """The result of `streamgauge sustain ARGUMENTS`, kept in `folder`; None if the search failed to run.

    Its sentence is shown as progress, after `label`.
    """
    command = [sys.executable, "-m", "streamgauge", "sustain", *arguments, "--json", "--out", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    result: dict[str, Any] | None = json.loads(done.stdout) if done.stdout.strip() else None
    sentence = (result.get("search") or {}).get("sentence") if result else f"exit code {done.returncode}"
    print(f"{label}: {sentence}", file=sys.stderr, flush=True)
    return result if result and result.get("search") else None


def result(case: RunCase) -> dict[str, Any]:
    """The result of one run, with its progress shown. Raises RuntimeError if it was not sustained."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "streamgauge", "run", case.workload, "--json", "--out", out, *case.more]
        typed = [*command, "--rate", case.rate, "--duration", case.duration]
        done = subprocess.run(typed, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{case}: {_why(done)}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def if_sustained(case: RunCase) -> dict[str, Any] | None:
    """The same, but None if it was not sustained, after printing the reason. Other runs can go on."""
    try:
        return result(case)
    except RuntimeError as error:
        print(error, file=sys.stderr, flush=True)
    return None


def _why(done: subprocess.CompletedProcess[str]) -> str:
    """The verdict if there is one, else where to look."""
    try:
        return str(json.loads(done.stdout)["verdict"]["sentence"])
    except (ValueError, KeyError):
        return f"exit code {done.returncode}; the reason is printed above"
