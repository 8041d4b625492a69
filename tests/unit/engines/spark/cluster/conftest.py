"""A cluster whose daemons are processes that only sleep."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.engines.local_cluster import Cluster, Member
from streamgauge.engines.spark.cluster import service, state
from streamgauge.system.java import Java

MASTER = "spark://127.0.0.1:7077"
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cluster."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return state.folder()


@pytest.fixture
def member() -> Iterator[Callable[..., Member]]:
    """Starts a member: a process that runs a program."""
    started: list[subprocess.Popen[bytes]] = []

    def make(name: str = "worker 1", program: str = SLEEP) -> Member:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        started.append(process)
        return Member(name, process.pid, psutil.Process(process.pid).create_time(), f"{name}.log")

    yield make
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def kill(member: Member) -> None:
    """Ends a member, and waits for its end."""
    process = psutil.Process(member.pid)
    process.kill()
    psutil.wait_procs([process], 10)


@pytest.fixture
def daemon(place: Path) -> Iterator[Callable[[], int]]:
    """Starts a process that sleeps, with the command line of a master. Calls return its id."""
    started: list[subprocess.Popen[bytes]] = []

    def make() -> int:
        words = ("-cp", f"{place}/spark-home/jars/*", "org.apache.spark.deploy.master.Master")
        started.append(subprocess.Popen([sys.executable, "-c", SLEEP, *words]))
        while psutil.Process(started[-1].pid).cmdline()[-1:] != [words[-1]]:
            assert started[-1].poll() is None
        return started[-1].pid

    yield make
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def sleeping(place: Path, member: Callable[..., Member], monkeypatch: pytest.MonkeyPatch) -> Path:
    """`service.start` starts processes that sleep, on a machine with four processors and 16 GiB."""

    class Sleeping:
        def __init__(self, at: Path, planned: Cluster) -> None:
            self.cluster = replace(planned, is_ready=False)
            (at / "spark-home").mkdir()

        def start_master(self, port: int) -> None:
            self.cluster = replace(self.cluster, members=(member("master"),))
            state.write(self.cluster)
            self.cluster = replace(self.cluster, master=MASTER)

        def start_workers(self) -> None:
            workers = [member(f"worker {number + 1}") for number in range(self.cluster.workers)]
            self.cluster = replace(self.cluster, members=(*self.cluster.members, *workers))

    monkeypatch.setattr(service, "Daemons", Sleeping)
    monkeypatch.setattr(service, "find_java", lambda *_: Java("java", 17, "17"))
    monkeypatch.setattr(service, "memory_bytes", lambda: 16 * 2**30)
    monkeypatch.setattr(service, "refuse_missing", lambda _: None)
    monkeypatch.setattr(service, "ENDED_S", 5.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    return place


@pytest.fixture
def reports() -> list[Any]:
    return []
