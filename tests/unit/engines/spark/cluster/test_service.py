"""Starting and stopping this machine's cluster, with daemons that only sleep, and the state by which it is known."""

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.core.errors import InputError, MachineError, Problem
from streamgauge.engines.local_cluster import Cluster, ClusterRequest, Member
from streamgauge.engines.spark.cluster import service, state
from streamgauge.engines.spark.cluster.service import end, resolve, start, stop
from streamgauge.engines.spark.cluster.state import cluster_at
from streamgauge.system.disk import try_lock
from tests.unit.engines.spark.cluster.conftest import MASTER, kill

TWO = ClusterRequest(2)


def refused(call: Callable[[], Any]) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.exit_code == 2
    return caught.value.problems


def test_a_started_cluster_is_known_until_it_is_stopped(sleeping: Path, reports: list[str]) -> None:
    cluster = start(TWO, reports.append)
    assert (cluster.master, cluster.workers, cluster.cores, cluster.cpus) == (MASTER, 2, 2, (0, 1, 2, 3))
    assert [member.name for member in cluster.members] == ["master", "worker 1", "worker 2"]
    assert state.read() == cluster
    assert cluster.ended() == ()
    assert stop(reports.append)
    assert len(cluster.ended()) == 3
    assert state.read() is None
    assert [entry.name for entry in sleeping.iterdir()] == [service.LOCK]
    assert reports == []


@pytest.mark.usefixtures("sleeping")
def test_a_second_start_is_refused(reports: list[str]) -> None:
    """And leaves the first cluster alone."""
    cluster = start(TWO, reports.append)
    (problem,) = refused(lambda: start(TWO, reports.append))
    assert (problem.setting, problem.got) == ("cluster", MASTER)
    assert "streamgauge cluster stop" in problem.way_out
    assert state.read() == cluster
    assert cluster.ended() == ()


@pytest.mark.usefixtures("sleeping")
def test_a_stop_without_a_start_has_nothing_to_do(reports: list[str]) -> None:
    """Before any, and after a stop."""
    assert not stop(reports.append)
    start(TWO, reports.append)
    assert [stop(reports.append) for _ in range(2)] == [True, False]


def test_a_start_goes_on_from_stale_ids(sleeping: Path, reports: list[str]) -> None:
    """After a reboot, say: the state names processes that are gone, one of whose ids another process has."""
    gone = Member("worker 1", psutil.Process().pid, 1.0, "a.log")
    state.owned_folder()
    state.write(Cluster("spark://127.0.0.1:1", 1, 1, 2**30, (0,), (gone,)))
    (sleeping / "work-1").mkdir()
    cluster = start(TWO, reports.append)
    assert reports == ["removed what a cluster left that ended without stop (spark://127.0.0.1:1)"]
    assert state.read() == cluster
    assert not (sleeping / "work-1").exists()


@pytest.mark.usefixtures("sleeping")
def test_a_stop_names_a_worker_that_had_ended(reports: list[str]) -> None:
    cluster = start(TWO, reports.append)
    kill(killed := cluster.members[2])
    assert [member.name for member in cluster.ended()] == ["worker 2"]
    assert stop(reports.append)
    assert reports == [f"before this, worker 2 ended (process {killed.pid}); its log: worker 2.log"]
    assert len(cluster.ended()) == 3


def test_two_commands_at_a_time_are_refused(sleeping: Path, reports: list[str]) -> None:
    state.owned_folder()
    with try_lock(sleeping / service.LOCK):
        for command in (lambda: start(TWO, reports.append), lambda: stop(reports.append)):
            (problem,) = refused(command)
            assert "another one is starting or stopping it" in problem.rule


@pytest.mark.parametrize("text", ["{", None])
def test_processes_that_no_state_names_are_left_alone(
    sleeping: Path, daemon: Callable[[], int], reports: list[str], text: str | None
) -> None:
    """Neither command goes on as if there were none: they would have no folder any more, and no one to end them."""
    state.owned_folder()
    (sleeping / "master.log").touch()
    if text is not None:
        (sleeping / state.FILE).write_text(text)
    pid = daemon()
    for command in (lambda: start(TWO, reports.append), lambda: stop(reports.append)):
        (problem,) = refused(command)
        assert f"(kill {pid})" in problem.way_out
        assert str(problem.got) == str(sleeping / state.FILE)
    assert psutil.Process(pid).is_running()
    assert (sleeping / "master.log").exists()
    assert reports == []


@pytest.mark.usefixtures("sleeping")
@pytest.mark.parametrize(("gib", "way_out"), [(16, "--memory 2048MiB"), (3, "--memory 1536MiB"), (0.75, "--workers 1")])
def test_a_refused_memory_has_a_way_out_that_fits(monkeypatch: pytest.MonkeyPatch, gib: float, way_out: str) -> None:
    monkeypatch.setattr(service, "memory_bytes", lambda: int(gib * 2**30))
    (problem,) = refused(lambda: resolve(ClusterRequest(2, memory="64GiB")))
    assert (problem.setting, problem.way_out) == ("memory", way_out)


def test_a_start_that_fails_leaves_nothing(sleeping: Path, reports: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Member] = []

    def failing(daemons: Any) -> None:
        made.extend(daemons.cluster.members)
        raise MachineError("no worker")

    monkeypatch.setattr(service.Daemons, "start_workers", failing)
    with pytest.raises(MachineError, match="no worker"):
        start(TWO, reports.append)
    assert [member.process for member in made] == [None]
    assert state.read() is None
    assert sleeping.exists()  # with the logs that the message names


@pytest.mark.usefixtures("sleeping")
def test_each_process_is_named_as_soon_as_it_runs(reports: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever kills the command leaves no process that `stop` cannot find."""
    seen: list[Cluster | None] = []
    started = service.Daemons.start_workers

    def start_workers(daemons: Any) -> None:
        seen.append(state.read())
        started(daemons)

    monkeypatch.setattr(service.Daemons, "start_workers", start_workers)
    cluster = start(TWO, reports.append)
    (while_starting,) = seen
    assert while_starting is not None
    assert (while_starting.is_ready, while_starting.master) == (False, "")
    assert while_starting.members == cluster.members[:1]
    assert cluster.is_ready


@pytest.fixture
def interrupted(sleeping: Path, member: Callable[..., Member]) -> Cluster:
    """What a start leaves that is killed before its master is ready."""
    assert state.owned_folder() == sleeping
    cluster = Cluster("", 2, 2, 2**30, (0, 1, 2, 3), (member("master"),), is_ready=False)
    state.write(cluster)
    return cluster


@pytest.mark.parametrize(
    ("command", "message"),
    [(stop, []), (lambda report: start(TWO, report), ["removed what an interrupted start left"])],
)
def test_what_an_interrupted_start_left_is_ended(
    interrupted: Cluster, reports: list[str], command: Callable[..., Any], message: list[str]
) -> None:
    done = command(reports.append)
    assert interrupted.ended() == interrupted.members
    assert reports == message
    assert state.read() == (done if message else None)


def test_what_does_not_end_is_killed(member: Callable[..., Member], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.engines.spark.cluster.service.ENDED_S", 0.3)
    stubborn = member("master", "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(600)")
    process = psutil.Process(stubborn.pid)
    while process.status() != psutil.STATUS_SLEEPING or not _ignores(stubborn.pid, signal.SIGTERM):
        assert stubborn.process is not None
    end(Cluster("", 1, 1, 2**30, (0,), (stubborn,)))
    assert stubborn.process is None


def _ignores(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored, 16) >> (number - 1) & 1)


@pytest.mark.usefixtures("sleeping")
@pytest.mark.parametrize(("request_", "expected"), [
    (ClusterRequest(1), (1, 4, 2 * 2**30, (0, 1, 2, 3))),
    (ClusterRequest(3), (3, 1, 2 * 2**30, (0, 1, 2, 3))),
    (ClusterRequest(2, cpus="2-3"), (2, 1, 2 * 2**30, (2, 3))),
    (ClusterRequest(2, cores=1, memory="1GiB"), (2, 1, 2**30, (0, 1, 2, 3))),
])  # fmt: skip
def test_resources_are_those_requested(request_: ClusterRequest, expected: Any) -> None:
    found = resolve(request_)
    assert (found.workers, found.cores, found.memory_bytes, found.cpus) == expected


@pytest.mark.usefixtures("sleeping")
def test_workers_get_at_most_half_of_the_memory_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "memory_bytes", lambda: 4 * 2**30)
    assert resolve(ClusterRequest(2)).memory_bytes == 2**30


@pytest.mark.usefixtures("sleeping")
@pytest.mark.parametrize(("request_", "setting", "says"), [
    (ClusterRequest(0), "workers", "from 1 to"),
    (ClusterRequest(1000), "workers", "from 1 to"),
    (ClusterRequest(5), "cores", "have 4 processors (0-3)"),
    (ClusterRequest(2, cores=3), "cores", "have 4 processors"),
    (ClusterRequest(1, cores=0), "cores", "at least 1"),
    (ClusterRequest(2, cores=2, cpus="0-2"), "cores", "have 3 processors (0-2)"),
    (ClusterRequest(1, memory="much"), "memory", "must be a size"),
    (ClusterRequest(2, memory="9GiB"), "memory", "to 8 GiB for each of 2"),
    (ClusterRequest(1, memory="1MiB"), "memory", "from 512 MiB"),
    (ClusterRequest(1, cpus="3-4"), "cpus", "0-3"),
    (ClusterRequest(1, cpus="x"), "cpus", "must be processors"),
    (ClusterRequest(1, port=80), "port", "from 1024"),
])  # fmt: skip
def test_resources_that_the_machine_lacks_are_refused(request_: ClusterRequest, setting: str, says: str) -> None:
    (problem,) = refused(lambda: resolve(request_))
    assert problem.setting == setting
    assert says in problem.rule


@pytest.mark.usefixtures("sleeping")
def test_a_port_in_use_is_named(reports: list[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        (problem,) = refused(lambda: start(ClusterRequest(1, port=port), reports.append))
    assert (problem.setting, problem.got) == ("port", port)
    assert problem.rule == "must be free on 127.0.0.1 (Address already in use)"


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
