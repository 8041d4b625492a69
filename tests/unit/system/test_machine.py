"""Facts about the machine."""

import json
import os
import re
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from streamgauge.system import machine


def test_the_environment_says_what_a_figure_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine, system and versions, as JSON; a missing library does not stop a run that does not need it."""
    environment = machine.environment()
    assert json.loads(json.dumps(environment)) == environment
    assert environment["cpus"] == len(os.sched_getaffinity(0))
    known = ("cpu_model", "system", "python", "java", "pyspark", "pyarrow", "duckdb", "numpy", "streamgauge")
    assert [name for name in ("memory_bytes", *known) if not environment[name]] == []
    monkeypatch.setattr(machine, "_LIBRARIES", ("no_such_library",))
    assert machine.environment()["no_such_library"] == "not installed"


def test_the_commit_of_a_checkout_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was changed since; code that was installed from a package has none."""
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)
    assert machine.commit.__wrapped__() == ""
    git = partial(subprocess.run, cwd=tmp_path, shell=True, check=True)
    git("git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
    commit = machine.commit.__wrapped__()
    assert re.fullmatch(r"\+[0-9a-f]{7,}", commit)
    git("touch new && git add new")
    assert machine.commit.__wrapped__() == f"{commit}.dirty"


@pytest.mark.parametrize(
    ("load", "free", "todo"),
    [
        (7.5, 2 << 30, "stop other programs"),
        (0.5, 1 << 20, "free memory"),
        (7.5, 1 << 20, "stop other programs and free memory"),
        (0.5, 2 << 30, "read the log"),
    ],
)
def test_a_slow_start_is_explained_by_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, load: float, free: int, todo: str
) -> None:
    """The load against the processors, and memory only if it is scarce."""
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free, total=8 << 30))
    advice = machine.slow_start_advice()
    assert (f"{load} on 2 processors" in advice, advice.rpartition(": ")[2]) == (True, todo)
