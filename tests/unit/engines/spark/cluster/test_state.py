"""The state of a cluster: processes are found by id and start time, and any file is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.core.errors import InputError, MachineError
from streamgauge.engines.local_cluster import Cluster, Member, ended_in_words
from streamgauge.engines.spark.cluster import state
from streamgauge.engines.spark.cluster.state import cluster_at
from tests.unit.engines.spark.cluster.conftest import MASTER

Make = Callable[..., Member]


def cluster_of(*members: Member) -> Cluster:
    return Cluster(MASTER, 2, 1, 2 * 2**30, (0, 1), members)


def test_a_state_is_read_as_it_was_written(place: Path, member: Make) -> None:
    cluster = cluster_of(member("master"), member())
    assert state.owned_folder() == place
    state.write(cluster)
    assert state.read() == cluster
    assert cluster_at(MASTER) == cluster
    assert [cluster_at(other) for other in ("spark://127.0.0.1:7078", "local[2]", None)] == [None] * 3


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"members": [{}]}', '{"members": 3}'])
def test_a_state_that_cannot_be_read_is_an_error(place: Path, text: str) -> None:
    """Only it names the processes that may run. A master elsewhere is not this machine's."""
    state.owned_folder()
    (place / state.FILE).write_text(text)
    for read in (state.read, lambda: cluster_at(MASTER)):
        with pytest.raises(InputError) as refused:
            read()
        (problem,) = refused.value.problems
        assert (problem.setting, problem.got) == ("cluster", str(place / state.FILE))
        assert "cannot be read" in problem.rule
        assert problem.way_out == "no process of a cluster was found: remove the file"
    assert cluster_at("spark://elsewhere:7077") is None


def test_processes_without_a_readable_state_are_named(place: Path, daemon: Callable[[], int]) -> None:
    """By their command line, which names the cluster's folder and a class of Spark."""
    state.owned_folder()
    (place / state.FILE).write_text("{")
    pid = daemon()
    with pytest.raises(InputError) as refused:
        state.read()
    (problem,) = refused.value.problems
    assert f"its processes still run ({pid})" in problem.rule
    assert problem.way_out == f"end its processes (kill {pid}) and remove the file if it exists"


def test_another_process_with_the_same_id_is_no_member(member: Make) -> None:
    """The kernel gives ids again, after a reboot all of them."""
    made = member()
    assert made.process is not None
    assert replace(made, started_s=made.started_s - 60).process is None


def test_a_member_that_ended_is_named(member: Make) -> None:
    """Also one that nobody has waited for."""
    master, worker = member("master"), member("worker 2", "pass")
    cluster = cluster_of(master, worker)
    psutil.wait_procs([psutil.Process(worker.pid)], 10)
    assert cluster.ended() == (worker,)
    assert cluster.runs
    assert ended_in_words(cluster.ended()) == f"worker 2 ended (process {worker.pid}); its log: worker 2.log"
    assert not cluster_of(worker).runs


def test_executors_belong_to_the_processes_of_a_cluster(member: Make) -> None:
    """The children of a worker."""
    program = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1); p.wait()"
    worker = member("worker 1", program)
    cluster = cluster_of(worker)
    while len(list(cluster.processes())) < 2:
        assert worker.process is not None
    pids = [process.pid for process in cluster.processes()]
    assert pids[0] == worker.pid
    assert psutil.Process(pids[1]).ppid() == worker.pid
    psutil.Process(pids[1]).kill()


def test_resources_are_said_in_words() -> None:
    assert cluster_of().resources == "2 workers, 1 core and 2 GiB each, processors 0-1"
    one = Cluster(MASTER, 1, 3, 768 * 2**20, (1, 3))
    assert (one.resources, one.memory) == ("1 worker, 3 cores and 0.75 GiB, processors 1,3", "768m")


def test_a_folder_of_someone_else_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who can write there could name processes to be ended."""
    place.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    place.rename(state.folder())
    (state.folder() / state.FILE).write_text(json.dumps(asdict(cluster_of())))
    assert state.read() is None
    with pytest.raises(MachineError, match="belongs to someone else"):
        state.owned_folder()


def test_a_link_is_no_folder_of_ours(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MachineError, match="belongs to someone else"):
        state.owned_folder()


def test_a_write_that_breaks_off_leaves_the_state_of_before(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `stop` would find no cluster, and its processes would be nobody's."""
    state.owned_folder()
    before = Cluster(MASTER, 1, 1, 2**30, (0,), (Member("master", 1, 0.0, "master.log"),))
    state.write(before)

    def break_off(path: Path, text: str, *_: Any, **__: Any) -> int:
        path.write_bytes(text[:20].encode())
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", break_off)
    with pytest.raises(OSError, match="no space left"):
        state.write(Cluster(MASTER, 1, 1, 2**30, (0,)))
    assert state.read() == before
