"""Facts about the machine, and how its cores are shared out."""

import json
import os
import re
import subprocess
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from streamgauge.system import machine


@pytest.mark.parametrize(("cores", "for_driver"), [(1, 1), (2, 1), (4, 1), (8, 2), (17, 4)])
def test_pinned_cores_are_apart(monkeypatch: pytest.MonkeyPatch, cores: int, for_driver: int) -> None:
    """One in four to the driver, at least one; nothing shared, nothing left over."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    driver, sut = machine.split_cpus()
    assert len(driver) == for_driver
    assert [*driver, *sut] == list(range(cores))


def affinities() -> set[frozenset[int]]:
    """Of all threads of this process."""
    results = set()
    for task in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            results.add(frozenset(os.sched_getaffinity(int(task))))
    return results


@pytest.mark.skipif(len(machine.cpus()) < 2, reason="there is nothing to choose from")
def test_the_driver_keeps_off_the_others_processors_for_a_while() -> None:
    """With all its threads, those that are there before too; whatever ends it, all is as before."""
    before, one = machine.cpus(), machine.cpus()[:1]
    with machine.pin_threads(None):
        assert machine.cpus() == before == sorted(os.sched_getaffinity(0))  # shared ones are left alone
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


def test_the_environment_says_what_a_figure_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine, system and versions, as JSON; a missing library does not stop a run that does not need it."""
    environment = machine.environment()
    assert json.loads(json.dumps(environment)) == environment
    assert environment["cpus"] == len(os.sched_getaffinity(0))
    known = ("cpu_model", "system", "python", "java", "pyspark", "pyarrow", "duckdb", "numpy", "streamgauge")
    assert [name for name in ("memory_bytes", *known) if not environment[name]] == []
    monkeypatch.setattr(machine, "_LIBRARIES", ("no_such_library",))
    assert machine.environment()["no_such_library"] == "not installed"


def test_the_commit_of_a_checkout_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was changed since; code that was installed from a package has none."""
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)
    assert machine.commit.__wrapped__() == ""
    git = partial(subprocess.run, cwd=tmp_path, shell=True, check=True)
    git("git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
    commit = machine.commit.__wrapped__()
    assert re.fullmatch(r"\+[0-9a-f]{7,}", commit)
    git("touch new && git add new")
    assert machine.commit.__wrapped__() == f"{commit}.dirty"
