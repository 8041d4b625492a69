"""Children: answers, errors, printing, lifelines. The children here are real processes.

Ctrl-C that waits.
"""

import io
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from streamgauge.core.errors import Problem
from streamgauge.core.exit_codes import ExitCode
from streamgauge.system import child_processes
from streamgauge.system.child_processes import (
    Child,
    ChildFailed,
    delay_interrupts,
    is_running,
    stop_all,
    wait_until,
)

CHILD = """
import os, signal, subprocess, sys, threading
from pathlib import Path
from streamgauge.core.errors import EngineError, InputError, MissingOnMachine, Problem
from streamgauge.system.child_processes import announce, serve, wait_until

PIPE = os.dup(1)  # what answers go to: `serve` hides it
def echo(value): return value
def refuse(): raise InputError(Problem("rate", "must be above 0", -1, "--rate 1k"))
def lack(): raise MissingOnMachine(Problem("PATH", "must lead to Java", None, "install it"))
def engine(): raise EngineError("no engine")
def defect(): return 1 / 0
def noisy():
    print("to stdout"); os.write(1, b"to descriptor 1\\n"); sys.stderr.write("to stderr\\n"); sys.stdout.flush()
    return "quiet"
def end(): os._exit(7)
def die_answering():
    os.write(PIPE, b'{"number": 1, "ans')
    os.kill(os.getpid(), signal.SIGKILL)
def wait_for(path):
    wait_until(lambda: os.path.exists(path), 60)
    return "late"
def setting(name): return os.environ.get(name)
def affinity(): return sorted(os.sched_getaffinity(0))
def grandchild():
    return subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"]).pid
def announced(stages):
    for stage in stages: announce(stage)
def hang(): threading.Event().wait()
names = (echo, refuse, lack, engine, defect, noisy, end, die_answering, wait_for, setting, affinity, grandchild,
         announced, hang)
scratch = Path(sys.argv[1]) if sys.argv[1:] else None
serve({one.__name__: one for one in names}, scratch=scratch)
"""
PARENT = """
import sys, threading
from pathlib import Path
from streamgauge.system.child_processes import Child
from streamgauge.system.disk import Scratch
scratch = Scratch("child")
child = Child("child", "speaking_child", [scratch.name], Path(sys.argv[1]))
child.ask("echo", value=1)
if sys.argv[2] == "hanging":
    threading.Thread(target=lambda: child.ask("hang", 600)).start()
print(child.pid, scratch.name, flush=True)
threading.Event().wait()
"""
Start = Callable[..., Child]


@pytest.fixture
def modules(tmp_path: Path) -> dict[str, str]:
    """The environment in which `speaking_child` can be imported."""
    (tmp_path / "speaking_child.py").write_text(CHILD)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}


@pytest.fixture
def start(modules: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Starts children, and ends them whatever happens."""
    child_processes: list[Child] = []

    def start_one(cpus: list[int] | None = None, **environment: str) -> Child:
        log = tmp_path / "logs" / "child.log"
        child_processes.append(Child("child", "speaking_child", [], log, cpus, {**modules, **environment}))
        return child_processes[-1]

    yield start_one
    for child in child_processes:
        child.kill()


def test_a_child_answers(start: Start) -> None:
    """What a handler returns comes back, whatever JSON it is, again and again."""
    child = start()
    for value in ({"a": [1, 2.5, None]}, "text with\nlines", None, list(range(20_000))):
        assert child.ask("echo", value=value) == value
    assert (child.alive, child.exit_code, child.stage) == (True, None, "")
    assert child.ask("announced", stages=["loading", "done"]) is None
    assert child.stage == "done"  # what it announces besides its answer: the last stage stays


@pytest.mark.parametrize(
    ("request_", "kind", "text"),
    [
        ("refuse", "InputError", "--rate 1k"),
        ("lack", "MissingOnMachine", "install it"),
        ("engine", "EngineError", "no engine"),
        ("defect", "ZeroDivisionError", "ZeroDivisionError: division by zero"),
        ("no_such_handler", "KeyError", "no_such_handler"),
    ],
)
def test_an_error_comes_back_with_its_kind(start: Start, request_: str, kind: str, text: str) -> None:
    """The message and the error's class name cross the pipe, and the child goes on."""
    child = start()
    with pytest.raises(ChildFailed, match=text) as caught:
        child.ask(request_)
    assert caught.value.kind == kind
    problems = {
        "refuse": (Problem("rate", "must be above 0", "-1", "--rate 1k"),),
        "lack": (Problem("PATH", "must lead to Java", "None", "install it", ExitCode.ENVIRONMENT),),
    }
    assert caught.value.problems == problems.get(request_, ())
    assert child.ask("echo", value=1) == 1


def test_only_a_defect_leaves_a_traceback_in_the_log(start: Start) -> None:
    """Errors raised on purpose are plain sentences; what was not meant can be traced."""
    child = start()
    for request, traced in (("engine", False), ("defect", True)):
        with pytest.raises(ChildFailed):
            child.ask(request)
        assert ("Traceback" in child.log.read_text()) is traced


def test_printing_does_not_break_the_protocol(start: Start) -> None:
    """What a child or a library in it writes to standard output lands in the log."""
    child = start()
    assert [child.ask("noisy"), child.ask("echo", value=2)] == ["quiet", 2]
    text = child.log.read_text()
    assert all(line in text for line in ("to stdout", "to descriptor 1", "to stderr"))


def test_a_child_that_ends_is_reported_with_its_exit_code(start: Start) -> None:
    """Neither the request under way nor the next one waits for its time limit."""
    child = start()
    for _ in range(2):
        with pytest.raises(ChildFailed, match=r"exit code 7.*child\.log"):
            child.ask("end", timeout_s=60)
    assert (child.alive, child.exit_code) == (False, 7)


@pytest.mark.parametrize("end", [Child.stop, Child.kill], ids=lambda end: end.__name__)
def test_a_child_that_was_ended_leaves_no_pipe_open(start: Start, end: Callable[[Child], None]) -> None:
    """A search starts many of them; none is left for the garbage collector."""
    open_before = psutil.Process().num_fds()
    child = start()
    assert child.ask("echo", value=1) == 1
    end(child)
    assert wait_until(lambda: psutil.Process().num_fds() == open_before, 10)


def test_an_ended_child_is_reported_at_every_request(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the request still finds a reader, as that of a child's own child: no time is waited out."""
    child = start()
    with pytest.raises(ChildFailed, match="exit code 7"):
        child.ask("end", timeout_s=60)
    monkeypatch.setattr(child, "_lifeline", io.BytesIO())
    for _ in range(2):
        with pytest.raises(ChildFailed, match="exit code 7"):
            child.ask("echo", timeout_s=0.0, value=1)


@pytest.mark.parametrize("killed", ["before", "while it answers"])
def test_a_killed_child_is_reported_with_its_signal(start: Start, killed: str) -> None:
    """-9 says that it was killed. Half a line is no answer, and the rest of it is not waited for."""
    child = start()
    if killed == "before":
        os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildFailed, match="exit code -9"):
        child.ask("die_answering", timeout_s=60)


def test_an_answer_that_comes_late_is_not_taken_for_another(start: Start, tmp_path: Path) -> None:
    """After a request that was given up on, the next one gets its own answer."""
    child, sign = start(), tmp_path / "sign"
    with pytest.raises(ChildFailed, match="did not answer 'wait_for' within 0"):
        child.ask("wait_for", timeout_s=0.05, path=str(sign))
    sign.touch()
    assert child.ask("echo", value="mine") == "mine"


def test_environment_and_processors_reach_the_child(start: Start) -> None:
    """Settings given at the start hold in the child."""
    first = min(os.sched_getaffinity(0))
    child = start(cpus=[first], SPEAKING="yes")
    assert child.ask("setting", name="SPEAKING") == "yes"
    assert child.ask("affinity") == [first]


def test_stop_ends_the_child_and_what_it_started(start: Start) -> None:
    """No process of the child's group is left, and a second stop does nothing."""
    child = start()
    grandchild = child.ask("grandchild")
    child.stop()
    assert (child.alive, child.exit_code) == (False, 0)
    assert wait_until(lambda: not is_running(grandchild), 10)
    child.stop()


def test_stop_ends_a_child_that_hangs(start: Start) -> None:
    """A handler that never returns does not hold up the lifeline's end."""
    child = start()
    child.ask("echo", value=1)  # it listens: one that still starts cannot hear the goodbye
    with pytest.raises(ChildFailed):
        child.ask("hang", timeout_s=0.05)
    child.stop(grace_s=60)
    assert child.exit_code == 0


def test_children_are_stopped_side_by_side(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lifelines end before the first wait, and what they have used of the time is not given again."""
    calls: list[tuple[str, int, float]] = []
    children = [start(), start()]
    monkeypatch.setattr(Child, "release", lambda child: calls.append(("release", child.pid, 0)))
    monkeypatch.setattr(Child, "stop", lambda child, grace_s: calls.append(("stop", child.pid, grace_s)))
    stop_all(children, grace_s=10)
    assert [call[:2] for call in calls] == [(what, child.pid) for what in ("release", "stop") for child in children]
    assert 10 >= calls[2][2] > calls[3][2]


@pytest.mark.parametrize("state", ["idle", "hanging"])
def test_a_killed_parent_leaves_no_child(modules: dict[str, str], tmp_path: Path, state: str) -> None:
    """kill -9 of the parent closes the lifeline: the child ends itself, even in the middle of a request, and removes
    the folder that the parent gave it.
    """
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log"), state]
    with subprocess.Popen(command, env={**os.environ, **modules}, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        assert is_running(int(pid))
        assert Path(folder).exists()
        parent.kill()
    assert wait_until(lambda: not is_running(int(pid)), 20)
    assert not Path(folder).exists()


def test_an_orphan_ends_whatever_fails_in_its_last_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that could not remove a folder, which another had just removed, stayed for ever."""
    codes: list[int] = []
    monkeypatch.setattr(child_processes.sys, "stdin", io.StringIO(""))
    monkeypatch.setattr(child_processes, "remove_if_abandoned", Mock(side_effect=FileNotFoundError))
    monkeypatch.setattr(child_processes.os, "_exit", codes.append)
    with pytest.raises(FileNotFoundError):
        child_processes._watch_lifeline(queue.Queue(), None, tmp_path)
    assert codes == [0]


@pytest.fixture(autouse=True)
def usual() -> Iterator[Any]:
    """Python's own handler, which stands again afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_who_cannot_be_interrupted_still_cannot(usual: Any) -> None:
    """A program started with nohup ignores Ctrl-C, and another thread may not set a handler."""

    def inside() -> Any:
        with delay_interrupts():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(inside).result() is usual
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with delay_interrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def press(times: int, done: list[str], error: Exception | None = None) -> None:
    """Ctrl-C in the block, so often; then its error, or its end."""
    with delay_interrupts():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error
        done.append("whole")


@pytest.mark.parametrize(
    ("times", "error", "whole"),
    [(1, None, ["whole"]), (2, None, []), (1, ValueError("not forgotten over this"), [])],
    ids=["comes when the block has ended", "the second comes at once", "comes after an error too"],
)
def test_ctrl_c_waits(usual: Any, times: int, error: Exception | None, whole: list[str]) -> None:
    """Once, for a short block; then all is as it was."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        press(times, done, error)
    assert done == whole
    assert signal.getsignal(signal.SIGINT) is usual
    press(0, done)
    assert done == [*whole, "whole"]
