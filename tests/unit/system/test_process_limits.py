"""Limits of the control group: the least up to the root holds, and what the kernel did about them is told."""

import resource
from pathlib import Path

import pytest

from streamgauge.system import process_limits
from streamgauge.system.machine import environment, memory_bytes
from streamgauge.system.process_limits import (
    LimitWatch,
    cpu_limit,
    free_processes,
    memory_limit,
    process_limits_check,
    room_checks,
)

GIB = 2**30


@pytest.fixture(params=[1, 2])
def group(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Path]:
    """(version, the folder whose groups are `a` and, below it, this process's `b`)."""
    own, version = tmp_path / "own", request.param
    own.write_text(
        "2:cpu:/\n0::/a/b\n" if version == 2 else "4:memory:/a/b\n3:pids:/a/b\n2:cpu,cpuacct:/a/b\n1:name=systemd:/x\n"
    )
    monkeypatch.setattr(process_limits, "ROOT", tmp_path / "root")
    monkeypatch.setattr(process_limits, "OWN", own)
    for root in ("",) if version == 2 else ("memory", "pids", "cpu,cpuacct"):
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
    process_limits.OWN.write_text("0::/elsewhere/c\n5:memory:/elsewhere/c\n")
    write(group, "memory", "memory.max", 3 * GIB)
    assert memory_limit() == 3 * GIB


@pytest.mark.parametrize(("quotas", "limit"), [
    ({}, None), ({"a/b": None}, None), ({"a": 150_000}, 1.5), ({"a": 150_000, "a/b": 50_000}, 0.5),
    ({"a": 50_000, "a/b": None}, 0.5),
])  # fmt: skip
def test_the_least_quota_up_to_the_root_limits_the_processors(
    group: tuple[int, Path], quotas: dict[str, int | None], limit: float | None
) -> None:
    """Over a period of 100 ms. None stands for no quota, which each version writes in its way."""
    version, root = group
    for at, quota in quotas.items():
        if version == 2:
            (root / at / "cpu.max").write_text(f"{quota or 'max'} 100000\n")
        else:
            (root / "cpu,cpuacct" / at / "cpu.cfs_quota_us").write_text(f"{quota or -1}\n")
            (root / "cpu,cpuacct" / at / "cpu.cfs_period_us").write_text("100000\n")
    assert cpu_limit() == limit


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


@pytest.mark.parametrize(("files", "threads", "free", "java", "missing"), [
    (100, None, 500, False, ["ulimit -n"]), (300, None, 500, False, []), (300, None, 500, True, ["ulimit -n"]),
    (4096, None, 40, False, ["pids.max"]), (4096, None, 150, False, []), (4096, None, 150, True, ["pids.max"]),
    (4096, None, 500, True, []), (4096, 100, 500, True, ["ulimit -u"]), (4096, 100, 500, False, []),
    (100, 50, 40, True, ["ulimit -n", "ulimit -u", "pids.max"]),
])  # fmt: skip
def test_limits_that_no_start_survives_are_missing(
    group: tuple[int, Path], monkeypatch: pytest.MonkeyPatch, files: int, threads: int | None, free: int, java: bool,
    missing: list[str],
) -> None:  # fmt: skip
    """Of open files, and of processes and threads; Java needs more of both."""
    endless = resource.RLIM_INFINITY
    limits = {resource.RLIMIT_NOFILE: files, resource.RLIMIT_NPROC: threads or endless}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, endless), endless))
    write(group, "pids", "a/b/pids.max", free + 7)
    write(group, "pids", "a/b/pids.current", 7)
    checks = room_checks(java)
    assert [one.setting for check in checks if check.status == "missing" for one in check.problems] == missing
    assert [check.name for check in checks] == ["open_files", "processes"]


def test_limits_that_end_a_process_in_its_work_are_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its own flag; none is none."""
    endless = resource.RLIM_INFINITY
    limits: dict[int, int] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, endless), endless))
    assert process_limits_check().status == "good"
    limits |= {resource.RLIMIT_CPU: 60, resource.RLIMIT_AS: GIB, resource.RLIMIT_NOFILE: 7}
    check = process_limits_check()
    assert (check.status, [(one.setting, one.got) for one in check.problems]) == (
        "warning", [("ulimit -t", 60), ("ulimit -v", GIB)],
    )  # fmt: skip
