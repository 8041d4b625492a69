"""Limits of the control group: the least up to the root holds, and what the kernel did about them is told."""

import re
import resource
from contextlib import nullcontext
from pathlib import Path

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.system import control_group
from streamgauge.system.control_group import LimitWatch, free_processes, memory_limit, require_room
from streamgauge.system.machine import environment, memory_bytes

GIB = 2**30


@pytest.fixture(params=[1, 2])
def group(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Path]:
    """(version, the folder whose groups are `a` and, below it, this process's `b`)."""
    own, version = tmp_path / "own", request.param
    own.write_text("2:cpu:/\n0::/a/b\n" if version == 2 else "4:memory:/a/b\n3:pids:/a/b\n1:name=systemd:/x\n")
    monkeypatch.setattr(control_group, "ROOT", tmp_path / "root")
    monkeypatch.setattr(control_group, "OWN", own)
    for root in ("",) if version == 2 else ("memory", "pids"):
        (tmp_path / "root" / root / "a/b").mkdir(parents=True)
    return version, tmp_path / "root"


def write(group: tuple[int, Path], controller: str, name: str, text: object) -> None:
    version, root = group
    names = {"memory.max": "memory.limit_in_bytes", "memory.events": "memory.oom_control"} if version == 1 else {}
    at, _, file = name.rpartition("/")
    (root / ("" if version == 2 else controller) / at / names.get(file, file)).write_text(f"{text}\n")


def test_the_least_limit_up_to_the_root_holds(group: tuple[int, Path]) -> None:
    """Of the own group, or of one above it; no limit is none."""
    write(group, "memory", "a/b/memory.max", "max")
    assert memory_limit() is None
    assert "control_group_memory_bytes" not in environment()
    write(group, "memory", "a/memory.max", GIB)
    write(group, "memory", "a/b/memory.max", 2 * GIB)
    assert memory_limit() == memory_bytes() == environment()["control_group_memory_bytes"] == GIB
    write(group, "memory", "a/b/memory.max", 2**62)
    write(group, "memory", "a/memory.max", 2**62)
    assert memory_bytes() < 2**50


def test_a_group_that_is_not_to_be_seen_has_the_limits_of_those_that_are(group: tuple[int, Path]) -> None:
    """In a container, the path is that of the host."""
    control_group.OWN.write_text("0::/elsewhere/c\n5:memory:/elsewhere/c\n")
    write(group, "memory", "memory.max", 3 * GIB)
    assert memory_limit() == 3 * GIB


def test_a_kill_for_memory_is_reported_with_the_limit(group: tuple[int, Path]) -> None:
    """Whatever the failure looked like, and only if it came since."""
    write(group, "memory", "a/memory.max", 2 * GIB)
    write(group, "memory", "a/b/memory.events", "oom 4\noom_kill 3")
    watch = LimitWatch()
    assert watch.reached("Connection refused") == ""
    write(group, "memory", "a/b/memory.events", "oom 5\noom_kill 4")
    assert watch.reached() == "killed for memory: the control group allows 2 GiB"


def test_a_refused_process_is_reported_with_the_limit(group: tuple[int, Path]) -> None:
    """If something failed: a program may well do with fewer."""
    write(group, "pids", "a/pids.max", 40)
    write(group, "pids", "a/pids.current", 38)
    write(group, "pids", "a/pids.events", "max 0")
    watch = LimitWatch()
    assert free_processes() == 2
    write(group, "pids", "a/pids.events", "max 1")
    assert watch.reached() == ""
    assert "the control group allows 40 (pids.max)" in watch.reached("the engine ended")


@pytest.mark.parametrize(("failure", "reported"), [
    ("the process ended (exit code -24); its log: x", True), ("Spark's JVM ended (SIGXCPU)", True),
    ("the program was killed by signal 9; it printed nothing", True), ("the program ended with exit code 1", False),
])  # fmt: skip
def test_a_limit_of_cpu_time_is_reported(
    group: tuple[int, Path], monkeypatch: pytest.MonkeyPatch, failure: str, reported: bool
) -> None:
    """If there is one, and the process was killed."""
    assert LimitWatch().reached(failure) == ""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (60, 90))
    assert ("a process may use 60 s (ulimit -t)" in LimitWatch().reached(failure)) == reported


@pytest.mark.parametrize(("files", "free", "java", "message"), [
    (100, 500, False, "ulimit -n allows 100 open files, and a run needs 256"),
    (300, 500, False, ""), (300, 500, True, "ulimit -n allows 300 open files, and a run needs 1,024"),
    (4096, 40, False, "pids.max of the control group allows 40 more processes"), (4096, 150, False, ""),
    (4096, 150, True, "and a run needs 200"), (4096, 500, True, ""),
])  # fmt: skip
def test_a_limit_that_no_start_survives_is_named_before_it(
    group: tuple[int, Path], monkeypatch: pytest.MonkeyPatch, files: int, free: int, java: bool, message: str
) -> None:
    """Of open files, and of processes and threads; Java needs more of both."""
    endless = resource.RLIM_INFINITY
    limits = {resource.RLIMIT_NOFILE: files}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, endless), endless))
    write(group, "pids", "a/b/pids.max", free + 7)
    write(group, "pids", "a/b/pids.current", 7)
    with pytest.raises(MachineError, match=re.escape(message)) if message else nullcontext():
        require_room(java)
