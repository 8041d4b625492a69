"""The state of this machine's cluster: one file that names its processes.

The cluster outlives the command that started it, so processes are found by id and start time. The kernel gives the id
of an ended process to another one, which has another start time.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from streamgauge.core.cpu_sets import format_cpus
from streamgauge.core.errors import InputError, MachineError, Problem
from streamgauge.engines.spark.cluster.standalone import HOST, is_standalone, places
from streamgauge.system.scratch import PREFIX

MASTER = "master"
FILE = "cluster.json"
_SPARK = "org.apache.spark."
"""How the names of Spark's classes begin."""
_SAME_S = 1.0
"""Tolerance for a start time, which is counted from a boot time in whole seconds."""


@dataclass(frozen=True)
class Member:
    """One process of the cluster, the master or a worker. `started_s`: its start time; `log`: the file of its log."""

    name: str
    pid: int
    started_s: float
    log: str

    @property
    def process(self) -> psutil.Process | None:
        """The process; None if it has ended."""
        with suppress(psutil.Error):
            found = psutil.Process(self.pid)
            is_same = abs(found.create_time() - self.started_s) <= _SAME_S
            return found if is_same and found.status() != psutil.STATUS_ZOMBIE else None
        return None


@dataclass(frozen=True)
class Cluster:
    """What was started. `cores` and `memory_bytes` are those of each worker, `cpus` the processors of all of them.

    `is_ready`: the master has all workers. Until then `master` may be empty, and members may be missing.
    """

    master: str
    workers: int
    cores: int
    memory_bytes: int
    cpus: tuple[int, ...]
    members: tuple[Member, ...] = ()
    is_ready: bool = True

    def ended(self) -> tuple[Member, ...]:
        """The members that have ended, which none should before `stop`."""
        return tuple(member for member in self.members if member.process is None)

    @property
    def runs(self) -> bool:
        """Whether any member runs."""
        return len(self.ended()) < len(self.members)

    def processes(self) -> Iterator[psutil.Process]:
        """Every process of the cluster, executors and their Python workers included."""
        for member in self.members:
            if (process := member.process) is not None:
                yield process
                with suppress(psutil.Error):
                    yield from process.children(recursive=True)

    @property
    def memory(self) -> str:
        """The memory of a worker, as Spark reads it."""
        return f"{self.memory_bytes // 2**20}m"

    @property
    def resources(self) -> str:
        """The resources in words."""
        workers, cores = _counted(self.workers, "worker"), _counted(self.cores, "core")
        each = " each" if self.workers > 1 else ""
        return f"{workers}, {cores} and {self.memory_bytes / 2**30:.3g} GiB{each}, processors {format_cpus(self.cpus)}"


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}"


def ended_in_words(members: tuple[Member, ...]) -> str:
    """`worker 2 ended (process 4711); its log: FILE`, for each of them."""
    return "; ".join(f"{one.name} ended (process {one.pid}); its log: {one.log}" for one in members)


def unready_in_words(cluster: Cluster) -> str:
    """What a start that was killed has left, or one in progress has started until now."""
    running = [f"{one.name} as process {one.pid}" for one in cluster.members if one.process is not None]
    return f"the cluster is still starting, or its start was interrupted (running: {', '.join(running)})"


def folder() -> Path:
    """The place of the state and of what the cluster writes: one for each user and temporary folder."""
    return Path(tempfile.gettempdir()) / f"{PREFIX}cluster-{os.getuid()}"


def owned_folder() -> Path:
    """The same folder, which exists then and belongs to this user alone. Raises MachineError if it cannot."""
    path = folder()
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise MachineError(f"the cluster's folder cannot be made: {error}\n  set TMPDIR to another folder") from None
    if found.st_uid != os.getuid() or not path.is_dir() or path.is_symlink():
        raise MachineError(f"the cluster's folder {path} belongs to someone else\n  set TMPDIR to another folder")
    return path


def read() -> Cluster | None:
    """The last cluster that was started and not stopped, whether it still runs or not; None without one.

    A state that another user has written counts as none.

    Raises:
        InputError: the state cannot be read. Its processes may still run, and only it names them.
    """
    try:
        if folder().lstat().st_uid != os.getuid():
            return None
        found = json.loads((folder() / FILE).read_text())
        members = tuple(Member(**one) for one in found.pop("members"))
        return Cluster(**{**found, "cpus": tuple(found["cpus"])}, members=members)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"cannot be read ({type(error).__name__}: {error})"
        raise InputError(unknown_problem(why, unrecorded())) from None


def unrecorded() -> list[int]:
    """The ids of this user's processes of Spark whose command line names the cluster's folder: each daemon's does."""
    within, found = f"{folder()}/", []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline() if process.uids().real == os.getuid() else []
            if any(word.startswith(_SPARK) for word in words) and any(within in word for word in words):
                found.append(process.pid)
    return found


def unknown_problem(why: str, running: list[int]) -> Problem:
    """The problem of a state that does not say which processes belong to the cluster. `running`: those found."""
    rule = f"must have a state that names its processes, and this file {why}"
    if not running:
        return Problem("cluster", rule, str(folder() / FILE), "no process of a cluster was found: remove the file")
    pids = " ".join(map(str, running))
    way_out = f"end its processes (kill {pids}) and remove the file if it exists"
    return Problem("cluster", f"{rule}; its processes still run ({pids})", str(folder() / FILE), way_out)


def write(cluster: Cluster) -> None:
    """Replaces the state as a whole, so that a reader never sees a part."""
    path = folder() / FILE
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(cluster), indent=2))
    new.replace(path)


def cluster_at(master: str | None) -> Cluster | None:
    """This machine's cluster, if that is its address; None for any other master.

    Raises InputError if it may be, and the state cannot be read.
    """
    if master is None or not is_standalone(master) or not places(master)[0].startswith(f"{HOST}:"):
        return None
    cluster = read()
    return cluster if cluster is not None and cluster.master == master else None
