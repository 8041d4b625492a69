"""The processes of a standalone cluster: Spark's master and its workers, bound to loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from streamgauge.core.errors import MachineError
from streamgauge.engines.local_cluster import Cluster, Member
from streamgauge.engines.spark.cluster.standalone import HOST, SCHEME
from streamgauge.engines.spark.cluster.state import MASTER
from streamgauge.engines.spark.session.environment import SET_ASIDE_EVERYWHERE
from streamgauge.engines.spark.session.spark_home import view_of_spark_home
from streamgauge.system.child_processes import wait_until
from streamgauge.system.java import java_environment
from streamgauge.system.machine import pin_threads

STARTED_S, ENDED_S = 90.0, 10.0
"""Most seconds for one daemon to start, and for all to end before they are killed."""
_MASTER_READY = re.compile(rf"Starting Spark master at ({SCHEME}\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master (\S+)")
_HEAP = "512m"
"""A daemon's own heap; executors have the worker's memory."""
_OPTIONS = "-Dspark.master.rest.enabled=false -Dspark.port.maxRetries=0 -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No second endpoint, no other port than the one asked for, and half of the CPU time until ready."""
_LAST_LINES = 3


class Daemons:
    """Starts the daemons of one cluster in a folder. Calls `on_started` with all members after each of them."""

    def __init__(self, at: Path, cpus: Sequence[int], on_started: Callable[[tuple[Member, ...]], object]) -> None:
        self._at, self._cpus, self._on_started = at, cpus, on_started
        self._home = view_of_spark_home(at / "spark-home")
        self.members: list[Member] = []

    def start_master(self, port: int) -> str:
        """Starts the master. Returns its address."""
        member, process = self._spawn(MASTER, "master.Master", ("--port", str(port)))
        return self._wait(member, process, _MASTER_READY)

    def start_workers(self, cluster: Cluster) -> None:
        """Starts all workers at the same time, and waits until the master has them."""
        resources = ("--cores", str(cluster.cores), "--memory", cluster.memory)
        started = []
        for number in range(1, cluster.workers + 1):
            work = ("--port", "0", "--work-dir", str(self._at / f"work-{number}"))
            started.append(self._spawn(f"worker {number}", "worker.Worker", (*work, *resources, cluster.master)))
        for member, process in started:
            self._wait(member, process, _WORKER_READY)

    def _spawn(self, name: str, class_name: str, words: Sequence[str]) -> tuple[Member, subprocess.Popen[bytes]]:
        """A daemon in a session of its own: it stays when this command or its terminal ends."""
        log = self._at / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as output, pin_threads(self._cpus):
            process = subprocess.Popen(
                [
                    str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{class_name}",
                    "--host", HOST, "--webui-port", "0", *words,
                ],
                cwd=self._at, env=daemon_environment(self._home), stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,
            )  # fmt: skip
        member = Member(name, process.pid, psutil.Process(process.pid).create_time(), str(log))
        self.members.append(member)
        self._on_started(tuple(self.members))
        return member, process

    def _wait(self, member: Member, process: subprocess.Popen[bytes], pattern: re.Pattern[str]) -> str:
        """Waits for a line of the log. Returns its first group. Raises MachineError if it never comes."""
        log = Path(member.log)

        def found() -> re.Match[str] | None:
            return pattern.search(log.read_text(errors="replace"))

        wait_until(lambda: found() is not None or process.poll() is not None, STARTED_S, 0.1)
        if (match := found()) is not None and process.poll() is None:
            return match.group(1)
        how = f"ended (exit code {process.returncode})" if process.poll() is not None else "is not ready"
        raise MachineError(f"the cluster's {member.name} {how}{_last_lines(log)}\n  whole log: {log}")


def daemon_environment(home: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a daemon, which its executors inherit: without any setting of another Spark or cluster."""
    kept = {
        name: value
        for name, value in java_environment(environment=environment).items()
        if not name.startswith(("SPARK_", "PYSPARK_")) and name not in SET_ASIDE_EVERYWHERE
    }
    return {
        **kept, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_JAVA_OPTS": _OPTIONS,
        "SPARK_DAEMON_MEMORY": _HEAP,
    }  # fmt: skip


def end(members: Sequence[Member]) -> None:
    """Ends the members, workers first, so that these still end their executors. Kills what is left after a while."""
    running = [process for member in reversed(members) if (process := member.process) is not None]
    processes = [*running]
    for process in running:
        with suppress(psutil.Error):
            processes += process.children(recursive=True)
    for process in running:
        _signal(process, signal.SIGTERM)
    wait_until(lambda: not _running(processes), ENDED_S, 0.05)
    for process in _running(processes):
        _signal(process, signal.SIGKILL)
    wait_until(lambda: not _running(processes), ENDED_S, 0.05)


def _running(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended. In a container an ended process may stay as a zombie."""
    return [process for process in processes if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.Error):
        process.send_signal(number)


def _last_lines(log: Path) -> str:
    """The last lines of a log, without those of a stack trace."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    telling = [line for line in lines if line and not line.startswith("at ")][-_LAST_LINES:]
    return "".join(f"\n  {line[:300]}" for line in telling)
