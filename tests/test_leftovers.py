"""A command that is killed or stopped leaves nothing behind: a real one, on the engine that needs no Java."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from streamgauge.system.children import wait_until
from streamgauge.system.scratch import LOCK, PREFIX

WORDS = ("run", "identity", "--engine", "known", "--rate", "2k", "--generators", "2", "--warmup", "1s", "--out", "runs")


@contextmanager
def running(at: Path, *words: str) -> Iterator[tuple[psutil.Process, list[psutil.Process]]]:
    """(the command, its children) once results flow; without a Java, beside what a run that was killed has left."""
    old = at / "tmp" / f"{PREFIX}verify-old"
    old.mkdir(parents=True)
    (old / LOCK).touch()
    environment = {
        **os.environ, "TMPDIR": str(at / "tmp"), "JAVA_HOME": str(at / "nowhere"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }  # fmt: skip
    command = [sys.executable, "-m", "streamgauge", *WORDS, *words]
    with subprocess.Popen(
        command, cwd=at, env=environment, stderr=subprocess.DEVNULL, preexec_fn=_hears_ctrl_c
    ) as process:
        try:
            assert wait_until(lambda: any((at / "tmp").glob("*/spool/*")) or process.poll() is not None, 60)
            assert process.poll() is None
            itself = psutil.Process(process.pid)
            yield itself, itself.children(recursive=True)
        finally:
            process.kill()


def _hears_ctrl_c() -> None:
    """Where the tests themselves run behind `&`, a shell has told them to ignore it, and that is inherited."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ended(process: psutil.Process) -> bool:
    """Gone, or dead and not yet buried by whoever has inherited it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def left(at: Path) -> list[str]:
    return sorted(path.name for path in (at / "tmp").iterdir())


def test_kill_9_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    """The children end by their lifelines, and the last ones there remove what was not to be kept."""
    with running(tmp_path, "--duration", "10m") as (command, children):
        assert len(children) == 4
        command.kill()
        assert wait_until(lambda: all(map(ended, children)), 30)
        assert wait_until(lambda: left(tmp_path) == [], 10), left(tmp_path)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=lambda sign: sign.name)
def test_a_command_that_is_asked_to_stop_leaves_its_run_folder_only(tmp_path: Path, sign: signal.Signals) -> None:
    """What was measured is kept, and the verdict says why there is no more; no Java was needed."""
    with running(tmp_path, "--duration", "10m") as (command, children):
        command.send_signal(sign)
        assert command.wait(60) == 1
        assert all(map(ended, children))
    assert left(tmp_path) == []
    (folder,) = (tmp_path / "runs").iterdir()
    assert '"interrupted"' in (folder / "result.json").read_text()
