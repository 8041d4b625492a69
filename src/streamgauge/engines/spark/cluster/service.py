"""Starts and stops this machine's cluster: the `LocalCluster` of Spark, which `streamgauge cluster` runs."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from streamgauge.core.errors import InputError, MachineError, Problem, Rule, attempt, broken, refuse, require
from streamgauge.core.machine_check import port_problem, refuse_missing
from streamgauge.core.units import format_cpus, parse_cpus, parse_size
from streamgauge.engines.local_cluster import Cluster, ClusterRequest, Member, Report, ended_in_words
from streamgauge.engines.spark.cluster import state
from streamgauge.engines.spark.cluster.state import MASTER
from streamgauge.engines.spark.session.environment import SET_ASIDE_EVERYWHERE, plain_path_check
from streamgauge.engines.spark.session.masters import HOST, SCHEME
from streamgauge.engines.spark.session.python_workers import view_of_spark_home
from streamgauge.system.child_processes import is_running, send_signal, start_process, wait_until
from streamgauge.system.cpu_pinning import cpus, pin_threads
from streamgauge.system.disk import empty, try_lock
from streamgauge.system.java import find_java, java_environment
from streamgauge.system.machine import memory_bytes

LOCK = ".lock"
"""Stays when the folder is emptied, since it must be the same file for all."""
MEMORY_BYTES, MEMORY_BYTES_MIN = 2 * 2**30, 512 * 2**20
"""Memory of a worker: unless stated, and the least that an executor starts with."""
MEMORY_SHARE = 0.5
"""Greatest share of this machine's memory for all workers, unless stated: the driver needs the rest."""
WORKERS_MAX = 64
_OTHER_PORT = "--port with another one, or leave it out for a free one"
STARTED_S, ENDED_S = 90.0, 10.0
"""Most seconds for one daemon to start, and for all to end before they are killed."""
_MASTER_READY = re.compile(rf"Starting Spark master at ({SCHEME}\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master (\S+)")
_HEAP = "512m"
"""A daemon's own heap; executors have the worker's memory."""
_OPTIONS = "-Dspark.master.rest.enabled=false -Dspark.port.maxRetries=0 -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No second endpoint, no other port than the one asked for, and half of the CPU time until ready."""
_LAST_LINES = 3


def start(request: ClusterRequest, report: Report) -> Cluster:
    """Starts a master and its workers. Returns when the master has all of them.

    Raises:
        InputError: a cluster runs already, or one whose state cannot be read; a port is in use, or the machine has not
            got these resources.
        MachineError: Java is missing, or a daemon did not start. Nothing is left running then.
    """
    planned = resolve(request)
    find_java("the cluster")
    at = state.owned_folder()
    refuse_missing([plain_path_check(at)])
    with _exclusive(at):
        _make_room(at, report)
        # Only now, because an interrupted start may hold the port until it is ended.
        taken = port_problem(HOST, request.port or 0)
        require(not taken, "port", f"must be free on {HOST} ({taken})", request.port, _OTHER_PORT)
        daemons = Daemons(at, planned)
        try:
            daemons.start_master(request.port or 0)
            daemons.start_workers()
            cluster = replace(daemons.cluster, is_ready=True)
            state.write(cluster)
        except BaseException:
            end(daemons.cluster)
            (at / state.FILE).unlink(missing_ok=True)
            raise
    return cluster


def stop(report: Report) -> bool:
    """Ends every process of the cluster and empties its folder. Returns False if there was no cluster.

    Raises InputError if processes of a cluster run, and its state cannot be read.
    """
    if not state.folder().exists():
        return False
    at = state.owned_folder()
    with _exclusive(at):
        cluster = _recorded()
        if cluster is not None and (ended := cluster.ended()):
            report(f"before this, {ended_in_words(ended)}")
        if cluster is not None:
            end(cluster)
        empty(at, LOCK)
    return cluster is not None


read = state.read
"""The last cluster, by its state."""


def resolve(request: ClusterRequest) -> Cluster:
    """The cluster of a request, without address. Raises InputError with every problem."""
    problems: list[Problem] = []
    available, workers = tuple(cpus()), request.workers
    used = attempt(lambda: _processors(request.cpus, available), problems) or available
    fitting = f"--workers {max(1, len(used) // 2)}"
    rule = f"must be from 1 to {WORKERS_MAX}"
    if wrong := broken(Rule(1 <= workers <= WORKERS_MAX, "workers", rule, workers, fitting)):
        raise InputError(problems + wrong)  # cores and memory depend on it
    cores = max(1, len(used) // workers) if request.cores is None else request.cores
    memory = attempt(lambda: _memory(request.memory, workers), problems)
    problems += broken(
        Rule(
            cores >= 1 and cores * workers <= len(used), "cores",
            f"must be at least 1, and all workers together have {len(used)} processors ({format_cpus(used)})",
            f"{workers} workers with {cores}",
            f"--workers {min(workers, len(used))} --cores {max(1, len(used) // workers)}",
        ),
        Rule(
            request.port is None or 1024 <= request.port <= 65535, "port", "must be from 1024 to 65535",
            request.port, _OTHER_PORT,
        ),
    )  # fmt: skip
    refuse(problems)
    return Cluster("", workers, cores, memory, used)


def _processors(text: str | None, available: tuple[int, ...]) -> tuple[int, ...]:
    wanted = available if text is None else parse_cpus(text)
    missing = set(wanted) - set(available)
    rule = f"must be processors that this process may use ({format_cpus(available)}), without {format_cpus(missing)}"
    require(not missing, "cpus", rule, text, f"--cpus {format_cpus(available)}")
    return wanted


def _memory(text: str | None, workers: int) -> int:
    """Bytes of one worker."""
    total = memory_bytes()
    if text is None:
        return max(MEMORY_BYTES_MIN, min(MEMORY_BYTES, int(total * MEMORY_SHARE / workers)))
    wanted, fits = parse_size(text, "memory"), min(total // workers, MEMORY_BYTES)
    limits = f"from {MEMORY_BYTES_MIN // 2**20} MiB to {total / workers / 2**30:.3g} GiB"
    rule = f"must be {limits} for each of {workers}, which is this machine's memory"
    fewer = f"--workers {max(1, total // MEMORY_BYTES_MIN)}"
    way_out = f"--memory {fits // 2**20}MiB" if fits >= MEMORY_BYTES_MIN else fewer
    require(MEMORY_BYTES_MIN <= wanted <= total // workers, "memory", rule, text, way_out)
    return wanted


@contextmanager
def _exclusive(at: Path) -> Iterator[None]:
    """InputError while another command starts or stops the cluster."""
    with try_lock(at / LOCK) as locked:
        rule = "must be used by one command at a time, and another one is starting or stopping it"
        require(locked, "cluster", rule, str(at), "wait for it, then streamgauge cluster status")
        yield


def _recorded() -> Cluster | None:
    """The cluster by its state. Raises InputError if processes of one run without a state, or it cannot be read."""
    cluster = state.read()
    if cluster is None and (running := state.unrecorded()):
        raise InputError(state.unknown_problem("does not exist", running))
    return cluster


def _make_room(at: Path, report: Report) -> None:
    """Removes what an ended cluster or an interrupted start left. Raises InputError if a cluster still runs."""
    before = _recorded()
    if before is not None and before.is_ready:
        rule, way_out = "must not be running: this machine has one", "use it with --master, or streamgauge cluster stop"
        require(not before.runs, "cluster", rule, before.master, way_out)
        report(f"removed what a cluster left that ended without stop ({before.master})")
    elif before is not None:
        end(before)
        report("removed what an interrupted start left")
    empty(at, LOCK)


class Daemons:
    """Starts the daemons of a planned cluster in a folder. `cluster` is what has started of it."""

    def __init__(self, at: Path, planned: Cluster) -> None:
        self._at, self.cluster = at, replace(planned, is_ready=False)
        self._home = view_of_spark_home(at / "spark-home")

    def start_master(self, port: int) -> None:
        """Starts the master, and waits for its address."""
        member, process = self._spawn(MASTER, "master.Master", ("--port", str(port)))
        self.cluster = replace(self.cluster, master=self._wait(member, process, _MASTER_READY))

    def start_workers(self) -> None:
        """Starts all workers at the same time, and waits until the master has them."""
        cluster = self.cluster
        resources = ("--cores", str(cluster.cores), "--memory", cluster.memory)
        started = []
        for number in range(1, cluster.workers + 1):
            work = ("--port", "0", "--work-dir", str(self._at / f"work-{number}"))
            started.append(self._spawn(f"worker {number}", "worker.Worker", (*work, *resources, cluster.master)))
        for member, process in started:
            self._wait(member, process, _WORKER_READY)

    def _spawn(self, name: str, class_name: str, words: Sequence[str]) -> tuple[Member, subprocess.Popen[bytes]]:
        """A daemon, which stays when this command or its terminal ends."""
        log, program = self._at / f"{name.replace(' ', '-')}.log", str(self._home / "bin" / "spark-class")
        command = [program, f"org.apache.spark.deploy.{class_name}", "--host", HOST, "--webui-port", "0", *words]
        with pin_threads(self.cluster.cpus):
            process = start_process(command, log, daemon_environment(self._home), self._at, outlives=True)
        member = Member(name, process.pid, psutil.Process(process.pid).create_time(), str(log))
        # At once, so that `stop` finds it if this command is killed.
        self.cluster = replace(self.cluster, members=(*self.cluster.members, member))
        state.write(self.cluster)
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


def end(cluster: Cluster) -> None:
    """Ends the members, workers first, so that these still end their executors. Kills what is left after a while."""
    processes = list(cluster.processes())
    running = [process for member in reversed(cluster.members) if (process := member.process) is not None]
    send_signal(signal.SIGTERM, (process.pid for process in running))
    wait_until(lambda: not _running(processes), ENDED_S, 0.05)
    send_signal(signal.SIGKILL, _running(processes))
    wait_until(lambda: not _running(processes), ENDED_S, 0.05)


def _running(processes: Sequence[psutil.Process]) -> list[int]:
    """The ids of those that have not ended. In a container an ended process may stay as a zombie."""
    return [process.pid for process in processes if process.is_running() and is_running(process.pid)]


def _last_lines(log: Path) -> str:
    """The last lines of a log, without those of a stack trace."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    telling = [line for line in lines if line and not line.startswith("at ")][-_LAST_LINES:]
    return "".join(f"\n  {line[:300]}" for line in telling)
