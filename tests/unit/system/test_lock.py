"""One holder at a time, and none that is gone."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.system.lock import try_lock

HOLDER = """
import sys
from pathlib import Path
from streamgauge.system.lock import try_lock
with try_lock(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def test_a_lock_goes_with_its_holder(tmp_path: Path) -> None:
    """However that ends: here it is killed."""
    path, pipe = tmp_path / ".lock", subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with try_lock(path) as mine:
            assert not mine
        holder.kill()
    for _ in range(2):
        with try_lock(path) as mine:
            assert mine


def test_a_file_system_without_locks_hinders_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems have none."""

    def unknown(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with try_lock(tmp_path / ".lock") as mine:
        assert mine
