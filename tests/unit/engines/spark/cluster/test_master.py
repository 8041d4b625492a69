"""Whether a standalone master answers, and what this machine's cluster gives its executors."""

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from streamgauge.core.errors import InputError
from streamgauge.engines.local_cluster import Cluster, Member
from streamgauge.engines.spark.cluster import state
from streamgauge.engines.spark.cluster.master import executor_defaults, require_master, settings_of
from streamgauge.engines.spark.cluster.service import daemon_environment
from streamgauge.engines.spark.cluster.state import cluster_at
from streamgauge.engines.spark.engine import SparkEngine
from tests.unit.engines.spark.cluster.conftest import kill


@pytest.fixture
def answering() -> Iterator[str]:
    """The address of something that accepts connections."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def workers(place: Path, member: Callable[..., Member], answering: str) -> Cluster:
    """A cluster of two workers with two cores and 2 GiB each."""
    assert state.owned_folder() == place
    cluster = Cluster(f"spark://{answering}", 2, 2, 2 * 2**30, (0, 1, 2, 3), (member("master"), member("worker 1")))
    state.write(cluster)
    return cluster


def refusal(master: str, options: dict[str, str] | None = None, parallelism: int | None = None) -> Any:
    with pytest.raises(InputError) as refused:
        require_master(master, options or {}, parallelism)
    (problem,) = refused.value.problems
    return problem


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("master", [None, "local[2]", "yarn", "k8s://127.0.0.1:1"])
def test_other_masters_are_left_to_spark(master: str | None) -> None:
    require_master(master, {})


@pytest.mark.usefixtures("place")
def test_a_master_that_is_not_there_is_refused(silent: str) -> None:
    problem = refusal(f"spark://{silent}")
    assert problem.setting == "master"
    assert f"{silent}: Connection refused" in problem.rule
    assert problem.way_out.startswith("streamgauge cluster start")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("processors", "parallelism", "words"), [
    (1, None, "--workers 1"), (2, None, "--workers 2"), (8, None, "--workers 2"),
    (8, 4, "--workers 2 --cores 2"), (8, 3, "--workers 1 --cores 3"), (2, 2, "--workers 2 --cores 1"),
    (2, 4, "--workers 2"),
])  # fmt: skip
def test_the_cluster_that_is_proposed_fits_this_machine(
    silent: str, monkeypatch: pytest.MonkeyPatch, processors: int, parallelism: int | None, words: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    problem = refusal(f"spark://{silent}", parallelism=parallelism)
    assert problem.way_out.startswith(f"streamgauge cluster start {words}, then --master")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("address", ["127.0.0.1:99999", "no-such-host.invalid:7077"])
def test_an_address_that_cannot_be_is_refused(address: str) -> None:
    assert address in refusal(f"spark://{address}").rule


@pytest.mark.usefixtures("place")
def test_one_of_several_masters_is_enough(silent: str, answering: str) -> None:
    """Spark's standby masters."""
    require_master(f"spark://{silent},{answering}", {})


def test_a_cluster_that_lacks_a_worker_is_refused(workers: Cluster) -> None:
    require_master(workers.master, {})
    kill(ended := workers.members[1])
    problem = refusal(workers.master)
    assert f"worker 1 ended (process {ended.pid})" in problem.rule
    assert "streamgauge cluster stop" in problem.way_out


def test_a_cluster_whose_start_was_interrupted_is_refused(workers: Cluster) -> None:
    state.write(replace(workers, is_ready=False))
    assert "its start was interrupted (running: master as process" in refusal(workers.master).rule


@pytest.mark.parametrize(("options", "setting"), [
    ({"spark.executor.cores": "3"}, "option spark.executor.cores"),
    ({"spark.cores.max": "5"}, "option spark.cores.max"),
    ({"spark.executor.memory": "3g"}, "option spark.executor.memory"),
    ({"spark.executor.memory": "2049"}, "option spark.executor.memory"),
])  # fmt: skip
def test_executors_that_fit_into_no_worker_are_refused(workers: Cluster, options: dict[str, str], setting: str) -> None:
    """Spark would wait for a greater worker without an end."""
    assert refusal(workers.master, options).setting == setting
    fitting = {"spark.executor.cores": "2", "spark.executor.memory": "2g", "spark.cores.max": "4"}
    require_master(workers.master, fitting)


def test_more_cores_than_all_workers_have_are_refused(workers: Cluster) -> None:
    """Spark would run with fewer than the result states."""
    problem = refusal(workers.master, parallelism=5)
    assert (problem.setting, problem.way_out) == ("parallelism", "4 or less, or a cluster with more")
    require_master(workers.master, {}, 4)


def test_memory_that_leaves_no_room_for_all_executors_is_refused(workers: Cluster) -> None:
    """Two workers with 2 GiB each hold one executor of 1200 MiB each, with one core of two."""
    options = {"spark.executor.cores": "1", "spark.executor.memory": "1200m"}
    problem = refusal(workers.master, options, 4)
    assert problem.setting == "option spark.executor.memory"
    assert problem.rule.endswith("with 4 cores, and the workers hold those of 2")
    require_master(workers.master, options, 2)
    require_master(workers.master, options | {"spark.executor.memory": "1g"}, 4)
    require_master(workers.master, {"spark.executor.memory": "1200m"}, 4)


def test_executors_share_a_worker_s_memory_by_their_cores(workers: Cluster) -> None:
    assert executor_defaults(workers.master, {}) == {"spark.executor.memory": "2048m"}
    assert executor_defaults(workers.master, {"spark.executor.cores": "1"}) == {"spark.executor.memory": "1024m"}
    assert executor_defaults(workers.master, {"spark.executor.memory": "600m"}) == {}
    assert executor_defaults("spark://elsewhere:7077", {}) == {}


def test_a_result_has_the_resources(workers: Cluster) -> None:
    assert settings_of(workers.master) == {
        "cluster": "2 workers, 2 cores and 2 GiB each, processors 0-3", "cluster cores": "4",
    }  # fmt: skip
    assert settings_of("local[2]") == {}


def test_a_worker_that_ends_in_a_trial_is_named(workers: Cluster) -> None:
    """Spark goes on with fewer cores, and so the trial would measure something else."""
    engine = SparkEngine()
    engine._cluster = cluster_at(workers.master)
    alive: Any = SimpleNamespace(alive=True, pids=lambda: [psutil.Process().pid], ask=lambda *_: {"alive": True})
    engine._child = alive
    assert engine.status().alive
    assert {member.pid for member in workers.members} < set(engine.pids())
    kill(ended := workers.members[1])
    status = engine.status()
    assert not status.alive
    lost = f"the cluster's worker 1 ended (process {ended.pid}); its log: worker 1.log"
    assert status.reason == f"{lost}. Start it again: streamgauge cluster stop, then start"
    assert ended.pid not in engine.pids()


def test_daemons_do_not_inherit_another_spark(tmp_path: Path) -> None:
    """Whatever configuration a shell has: executors inherit it from their worker."""
    inherited = {
        "PATH": "/bin", "SPARK_CONF_DIR": "/etc/spark", "SPARK_MASTER_HOST": "0.0.0.0", "PYSPARK_PYTHON": "python2",
        "JAVA_TOOL_OPTIONS": "-Xmx1g", "SPARK_WORKER_CORES": "99",
    }  # fmt: skip
    environment = daemon_environment(tmp_path, inherited)
    assert environment["PATH"] == "/bin"
    assert (environment["SPARK_HOME"], environment["SPARK_LOCAL_IP"]) == (str(tmp_path), "127.0.0.1")
    assert not {"SPARK_CONF_DIR", "SPARK_MASTER_HOST", "PYSPARK_PYTHON", "JAVA_TOOL_OPTIONS"} & environment.keys()
    assert "SPARK_WORKER_CORES" not in environment
