"""Folders that nobody keeps: their owners here are real processes, and are really killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgauge.system import scratch
from streamgauge.system.scratch import LOCK, Scratch, remove_if_abandoned, sweep

OWNER = """
import sys
from streamgauge.system.scratch import Scratch
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
def owner(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout is not None
        yield Path(process.stdout.readline().strip()), process
        process.kill()


def test_a_scratch_folder_goes_with_its_use(tmp_path: Path) -> None:
    """As any temporary folder; it is found by its name."""
    with Scratch("testbed") as folder:
        assert Path(folder).parent == tmp_path
        assert Path(folder).name.startswith("streamgauge-testbed-")
    assert list(tmp_path.iterdir()) == []


def test_what_is_owned_stays(tmp_path: Path) -> None:
    """By this process, or by another one that lives."""
    with Scratch("testbed") as mine, owner(tmp_path) as (others, _):
        sweep()
        remove_if_abandoned(Path(mine))
        assert Path(mine).exists()
        assert (others / "sub" / "file").exists()


def test_what_a_killed_owner_left_is_removed(tmp_path: Path) -> None:
    """kill -9 takes the lock from it, and nothing else is needed; what it only linked to stays."""
    linked = tmp_path / "linked"
    linked.mkdir()
    with owner(tmp_path) as (folder, process):
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
