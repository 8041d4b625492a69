"""A held command is ended with every process that it has started."""

import sys
import time
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


def started(at: Path, code: str) -> Child:
    child = hold("program", at / "external.log", term_s=2.0)
    child.ask("start", command=[sys.executable, "-c", code], log=str(at / "program.log"), folder=str(at))
    return child


def test_the_whole_tree_ends(tmp_path: Path) -> None:
    """Also a child in a session of its own, and one whose parent has ended."""
    child = started(tmp_path, FAMILY)
    log, holder = tmp_path / "program.log", psutil.Process(child.pid)
    try:
        assert wait_until(lambda: log.read_text() == "up\n", SOON_S)
        assert wait_until(lambda: len(holder.children(recursive=True)) >= 4, SOON_S)
        family = holder.children(recursive=True)
    finally:
        child.stop(5.0)
    assert wait_until(lambda: not any(each.is_running() for each in family), SOON_S)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After its two seconds."""
    child = started(
        tmp_path, "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    )
    holder = psutil.Process(child.pid)
    try:
        assert wait_until(lambda: (tmp_path / "program.log").read_text() != "", SOON_S)
        (program,) = holder.children()
        began_s = time.monotonic()
    finally:
        child.stop(5.0)
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
    child = started(tmp_path, "import time; print(flush=True); time.sleep(600)")
    holder = psutil.Process(child.pid)
    assert wait_until(lambda: (tmp_path / "program.log").read_text() != "", SOON_S)
    (program,) = holder.children()
    try:
        holder.kill()
        assert wait_until(lambda: not is_running(program.pid), SOON_S)
    finally:
        child.stop(5.0)


def test_a_killed_command_can_be_started_again(tmp_path: Path) -> None:
    """The holder stays, and says that the command runs no more."""
    child = started(tmp_path, FAMILY)
    try:
        assert wait_until(lambda: (tmp_path / "program.log").read_text() == "up\n", SOON_S)
        child.ask("kill")
        assert psutil.Process(child.pid).children(recursive=True) == []
        assert child.ask("exit_code") is not None
        child.ask("start", command=[sys.executable, "-c", "input()"], log=str(tmp_path / "log"))
        assert wait_until(lambda: child.ask("exit_code") == 1, SOON_S)  # it has no input
    finally:
        child.stop(5.0)
