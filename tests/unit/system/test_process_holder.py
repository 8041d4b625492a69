"""A held command is ended with every process that it has started."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from streamgauge.core.errors import DriverError
from streamgauge.system.child_processes import Child, is_running, wait_until
from streamgauge.system.process_holder import hold

pytestmark = pytest.mark.process
SOON_S = 20.0
FAMILY = """
import os, subprocess, sys, time
inner = "import time; time.sleep(600)"
subprocess.Popen([sys.executable, "-c", inner])
subprocess.Popen([sys.executable, "-c", inner], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("up", flush=True)
time.sleep(600)
"""


@contextmanager
def started(at: Path, code: str) -> Iterator[Child]:
    """The holder of a program that has printed something."""
    child, log = hold("program", at / "external.log", term_s=2.0), at / "program.log"
    try:
        child.ask("start", command=[sys.executable, "-c", code], log=str(log), folder=str(at))
        assert wait_until(lambda: log.read_text() != "", SOON_S)
        yield child
    finally:
        child.stop(5.0)


def test_the_whole_tree_ends(tmp_path: Path) -> None:
    """Also a child in a session of its own, and one whose parent has ended."""
    with started(tmp_path, FAMILY) as child:
        holder = psutil.Process(child.pid)
        assert wait_until(lambda: len(holder.children(recursive=True)) >= 4, SOON_S)
        family = holder.children(recursive=True)
    assert wait_until(lambda: not any(each.is_running() for each in family), SOON_S)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After its two seconds."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    with started(tmp_path, code) as child:
        (program,) = psutil.Process(child.pid).children()
        began_s = time.monotonic()
    assert wait_until(lambda: not program.is_running(), SOON_S)
    assert time.monotonic() - began_s < SOON_S


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    """Says why."""
    child = hold("program", tmp_path / "external.log")
    try:
        with pytest.raises(DriverError, match=r"could not be started \(No such file or directory\): \./none"):
            child.ask("start", command=["./none"], log=str(tmp_path / "log"))
    finally:
        child.stop(5.0)


def test_a_program_does_not_outlive_a_killed_holder(tmp_path: Path) -> None:
    """As one that the kernel kills for lack of memory: it can end nothing itself, and the kernel ends the program."""
    with started(tmp_path, "import time; print(flush=True); time.sleep(600)") as child:
        holder = psutil.Process(child.pid)
        (program,) = holder.children()
        holder.kill()
        assert wait_until(lambda: not is_running(program.pid), SOON_S)


def test_a_killed_command_can_be_started_again(tmp_path: Path) -> None:
    """The holder stays, and says that the command runs no more."""
    with started(tmp_path, FAMILY) as child:
        child.ask("kill")
        assert not any(is_running(each.pid) for each in psutil.Process(child.pid).children(recursive=True))
        assert child.ask("exit_code") is not None
        child.ask("start", command=[sys.executable, "-c", "input()"], log=str(tmp_path / "log"))
        assert wait_until(lambda: child.ask("exit_code") == 1, SOON_S)  # it has no input
