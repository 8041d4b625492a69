"""Folders that nobody keeps: their owners here are real processes, and are really killed.

One holder at a time, and none that is gone.

A full disk in words: which one, how much is free, what to do.
"""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from streamgauge.system import disk as scratch
from streamgauge.system.disk import (
    LOCK,
    Scratch,
    remove_if_abandoned,
    shared_memory_check,
    sweep,
    temporary_folder_check,
    try_lock,
)

OWNER = """
import sys
from streamgauge.system.disk import Scratch
scratch = Scratch("owned")
(scratch.path / "sub").mkdir()
(scratch.path / "sub" / "file").write_text("kept")
print(scratch.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders are this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@contextmanager
def running(code: str, *arguments: str, **environment: str) -> Iterator[tuple[str, Any]]:
    """A process that runs code: the first line that it writes, and itself. It is killed at the end."""
    all_variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, *arguments], env=all_variables, **streams) as process:
        yield cast(Any, process.stdout).readline().strip(), process
        process.kill()


def test_a_scratch_folder_goes_with_its_use(tmp_path: Path) -> None:
    """As any temporary folder; it is found by its name."""
    with Scratch("testbed") as folder:
        assert Path(folder).parent == tmp_path
        assert Path(folder).name.startswith("streamgauge-testbed-")
    assert list(tmp_path.iterdir()) == []


def test_what_is_owned_stays(tmp_path: Path) -> None:
    """By this process, or by another one that lives."""
    with Scratch("testbed") as own, running(OWNER, TMPDIR=str(tmp_path)) as (other, _):
        sweep()
        remove_if_abandoned(Path(own))
        assert Path(own).exists()
        assert Path(other, "sub", "file").exists()


def test_what_a_killed_owner_left_is_removed(tmp_path: Path) -> None:
    """kill -9 takes the lock from it, and nothing else is needed; what it only linked to stays."""
    linked = tmp_path / "linked"
    linked.mkdir()
    with running(OWNER, TMPDIR=str(tmp_path)) as (name, process):
        folder = Path(name)
        (folder / "link").symlink_to(linked)
        process.kill()
        process.wait()
        assert (folder / LOCK).exists()
        sweep()
        assert not folder.exists()
    assert linked.exists()


def test_folders_that_are_no_scratch_stay(tmp_path: Path) -> None:
    """Whatever their name; one that is not there is no error."""
    other = tmp_path / "streamgauge-of-mine"
    other.mkdir()
    sweep()
    remove_if_abandoned(tmp_path / "streamgauge-nowhere")
    assert other.exists()


def test_a_folder_that_another_removes_at_the_same_time_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two orphans of one run: the second had opened the lock before the first removed it."""
    folder = tmp_path / f"{scratch.PREFIX}there"
    folder.mkdir()
    (folder / scratch.LOCK).touch()
    monkeypatch.setattr(scratch.fcntl, "flock", lambda *_: shutil.rmtree(folder))
    assert scratch.remove_if_abandoned(folder)


HOLDER = """
import sys
from pathlib import Path
from streamgauge.system.disk import try_lock
with try_lock(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def test_a_lock_goes_with_its_holder(tmp_path: Path) -> None:
    """However that ends: here it is killed."""
    path = tmp_path / ".lock"
    with running(HOLDER, str(path)) as (locked, _), try_lock(path) as own:
        assert (locked, own) == ("True", False)
    for _ in range(2):
        with try_lock(path) as own:
            assert own


def test_a_file_system_without_locks_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems have none."""
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    with try_lock(tmp_path / ".lock") as own:
        assert own


@pytest.mark.parametrize(("free", "status"), [(3 * 2**30, "good"), (2**30, "warning"), (0, "warning")])
def test_temporary_files_need_room(monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert temporary_folder_check().status == status


def test_no_run_starts_without_a_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python says it, if none of the usual folders can be written."""
    monkeypatch.setattr(tempfile, "gettempdir", Mock(side_effect=FileNotFoundError(errno.ENOENT, "none")))
    check = temporary_folder_check()
    assert (check.status, check.problems[0].setting) == ("missing", "TMPDIR")


@pytest.mark.parametrize(("is_there", "free", "status"), [
    (True, 2**30, "good"), (True, 2**20, "warning"), (False, 2**30, "warning"),
])  # fmt: skip
def test_memory_can_be_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool, free: int, status: str
) -> None:
    """A folder that is missing, or nearly full, is a warning."""
    monkeypatch.setattr(scratch, "SHARED_MEMORY", tmp_path if is_there else tmp_path / "nowhere")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert shared_memory_check().status == status
