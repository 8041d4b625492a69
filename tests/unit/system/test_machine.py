"""Facts about the machine, and how its cores are shared out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from streamgauge.system import machine


def test_only_processors_of_this_process_count() -> None:
    """What a container or taskset withholds is not ours."""
    assert machine.cpus() == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(("there", "driver"), [(1, 1), (2, 1), (4, 1), (8, 2), (17, 4)])
def test_pinned_cores_are_apart(monkeypatch: pytest.MonkeyPatch, there: int, driver: int) -> None:
    """One in four to the driver, at least one; nothing shared, nothing left over."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(there)))
    mine, sut = machine.split_cpus()
    assert len(mine) == driver
    assert [*mine, *sut] == list(range(there))


def affinities() -> set[frozenset[int]]:
    """Of all threads of this process."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            found.add(frozenset(os.sched_getaffinity(int(task))))
    return found


@pytest.mark.skipif(len(machine.cpus()) < 2, reason="there is nothing to choose from")
def test_the_driver_keeps_off_the_others_processors_for_a_while() -> None:
    """With all its threads, those that are there before too; whatever ends it, all is as before."""
    before, one = machine.cpus(), machine.cpus()[:1]
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    with suppress(KeyboardInterrupt), machine.pin_threads(one):
        inside = affinities()
        raise KeyboardInterrupt
    outside = affinities()
    ended.set()
    thread.join()
    assert inside == {frozenset(one)}
    assert outside == {frozenset(before)}


def test_shared_processors_are_left_alone() -> None:
    """None is wherever it was."""
    before = machine.cpus()
    with machine.pin_threads(None):
        assert machine.cpus() == before


def test_the_environment_says_what_a_figure_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine, system and versions, as JSON."""
    found = machine.environment()
    assert json.loads(json.dumps(found)) == found
    assert found["cpus"] == len(os.sched_getaffinity(0))
    assert found["memory_bytes"] > 0
    for name in ("cpu_model", "system", "python", "java", "pyspark", "pyarrow", "duckdb", "numpy", "streamgauge"):
        assert found[name], name


def test_a_library_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing library does not stop a run that does not need it."""
    monkeypatch.setattr(machine, "_LIBRARIES", ("no_such_library",))
    assert machine.environment()["no_such_library"] == "not installed"


def test_the_commit_of_a_checkout_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was changed since; code that was installed from a package has none."""
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)
    assert machine.commit.__wrapped__() == ""
    for asked in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *asked], check=True)
    found = machine.commit.__wrapped__()
    assert re.fullmatch(r"\+[0-9a-f]{7,}", found)
    (tmp_path / "new").write_text("x")
    subprocess.run(["git", "-C", str(tmp_path), "add", "new"], check=True)
    assert machine.commit.__wrapped__() == f"{found}.dirty"
