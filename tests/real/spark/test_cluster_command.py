"""`streamgauge cluster` with real daemons: its life on the command line, and trials on its workers."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.run import Result

pytestmark = pytest.mark.spark
long = pytest.mark.long

COMMAND_S = 420.0
RUN = (
    "run", "windowed_aggregation", "--rate", "5k", "--warmup", "30s", "--generators", "2", "--set", "range=2s",
    "--set", "slide=1s", "--queue-limit", "5m",
)  # fmt: skip


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A temporary folder of the cluster's own, with a path that Spark takes."""
    with tempfile.TemporaryDirectory(prefix="cluster-test-") as folder:
        yield Path(folder)
        say(Path(folder), "cluster", "stop")  # what a failed test left


def say(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamgauge", *words],
        env=os.environ | {"TMPDIR": str(place)}, cwd=place, capture_output=True, text=True, timeout=COMMAND_S,
        check=False,
    )  # fmt: skip


@pytest.fixture
def cluster(place: Path) -> Iterator[dict[str, Any]]:
    """Two workers with one core each, on all processors."""
    started = say(place, "cluster", "start", "--workers", "2", "--cores", "1", "--memory", "1GiB", "--json")
    assert started.returncode == 0, started.stderr
    try:
        yield json.loads(started.stdout)
    finally:
        stopped = say(place, "cluster", "stop")
        assert stopped.returncode == 0, stopped.stderr


def listening(pids: list[int]) -> set[str]:
    """The addresses on which these processes, and their children, listen."""
    processes = [psutil.Process(pid) for pid in pids]
    family = [*processes, *(child for process in processes for child in process.children(recursive=True))]
    found = (one for process in family for one in process.net_connections("tcp") if one.status == "LISTEN")
    return {one.laddr.ip.removeprefix("::ffff:") for one in found}


def test_the_life_of_a_cluster(place: Path) -> None:
    """Status, a second start, what listens, and a damaged state; then stopped twice, with every process gone."""
    started = say(place, "cluster", "start", "--workers", "1", "--cores", "1", "--memory", "512MiB", "--json")
    assert started.returncode == 0, started.stderr
    try:
        cluster = json.loads(started.stdout)
        pids = [member["pid"] for member in cluster["members"]]
        assert [member["name"] for member in cluster["members"]] == ["master", "worker 1"]
        assert listening(pids) == {"127.0.0.1"}
        status = say(place, "cluster", "status")
        assert (status.returncode, status.stdout) == (0, f"{cluster['master']}\n")
        second = say(place, "cluster", "start", "--workers", "1")
        assert (second.returncode, second.stdout) == (2, "")
        assert second.stderr.count("error:") == 1
        assert "must not be running" in second.stderr
        (file,) = place.glob("*/cluster.json")
        text = file.read_text()
        file.write_text("{")
        damaged = [say(place, "cluster", "stop"), say(place, "cluster", "start")]
        file.write_text(text)
        assert [done.returncode for done in damaged] == [2, 2]
        assert all(f"kill {' '.join(map(str, sorted(pids)))}" in done.stderr for done in damaged)
    finally:
        stops = [say(place, "cluster", "stop") for _ in range(2)]
    assert [(done.returncode, done.stderr) for done in stops] == [
        (0, "stopped\n"), (0, "no cluster is running: nothing to stop\n"),
    ]  # fmt: skip
    assert [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"] == []
    assert say(place, "cluster", "status").returncode == 1


@long
def test_a_trial_on_its_workers_is_verified(place: Path, cluster: dict[str, Any]) -> None:
    """The workers' processes are the system under test, and the result states the resources."""
    out = str(place / "verified")
    done = say(place, *RUN, "--json", "--master", cluster["master"], "--duration", "10s", "--out", out)
    result = Result.model_validate_json(done.stdout)
    assert result.verification is not None
    assert result.verification.right, done.stderr
    assert result.verification.matched == result.verification.expected > 1000
    assert result.settings["cluster"].startswith("2 workers, 1 core and 1 GiB each")
    assert result.settings["cluster cores"] == "2"
    environment = result.environment
    assert environment["sut_cpus"] == environment["driver_cpus"] == environment["shared_cpus"] == cluster["cpus"]
    (sut,) = [one for one in result.processes if one.role == "sut"]
    workers = [one.name for one in result.processes if one.role == "sut_part"]
    assert sut.cpu_percent_mean > 5
    assert sut.memory_bytes_max > 1e9  # Spark's driver, a master, two workers and two executors
    assert "sut: jvm" in workers


@long
def test_a_worker_that_is_killed_in_a_trial_is_named(place: Path, cluster: dict[str, Any]) -> None:
    """The trial ends, because its resources are others than stated; what listened was on loopback."""
    words = (*RUN, "--master", cluster["master"], "--duration", "60s", "--out", str(place / "killed"))
    run = subprocess.Popen(
        [sys.executable, "-m", "streamgauge", *words], env=os.environ | {"TMPDIR": str(place)}, cwd=place,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    worker = cluster["members"][2]
    with run:
        try:
            assert run.stdout is not None
            assert any(line.startswith("measured") for line in run.stdout)
            assert psutil.Process(worker["pid"]).children() != []
            assert listening([run.pid, *(member["pid"] for member in cluster["members"])]) == {"127.0.0.1"}
            os.kill(worker["pid"], signal.SIGKILL)
            message, _ = run.communicate(timeout=COMMAND_S)
        finally:
            run.terminate()
    (folder,) = (place / "killed").iterdir()
    result = RunFolder(folder).read_result()
    assert result.verdict.value == "not_sustained", message
    assert f"worker 2 ended (process {worker['pid']})" in message
    assert f"worker 2 ended (process {worker['pid']})" in result.verdict.sentence
    status = say(place, "cluster", "status")
    assert status.returncode == 1
    assert f"worker 2 ended (process {worker['pid']})" in status.stderr
    refused = say(place, *RUN, "--master", cluster["master"])
    assert refused.returncode == 2
    assert "must have all its workers" in refused.stderr
