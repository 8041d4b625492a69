"""A cluster of an engine on this machine, for `streamgauge cluster`: its processes, and how to start and stop it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import psutil

from streamgauge.core.units import format_cpus

Report = Callable[[str], object]
_SAME_S = 1.0
"""Tolerance for a start time, which is counted from a boot time in whole seconds."""


@dataclass(frozen=True)
class ClusterRequest:
    """What was typed; None for the default."""

    workers: int
    cores: int | None = None
    memory: str | None = None
    port: int | None = None
    cpus: str | None = None


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
        """The memory of a worker, such as `2048m`."""
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


class LocalCluster(Protocol):
    """How an engine runs one cluster for each user."""

    def start(self, request: ClusterRequest, report: Report) -> Cluster:
        """Starts it and returns when it is whole. Raises InputError or MachineError, with nothing left running."""

    def stop(self, report: Report) -> bool:
        """Ends every process of it. Returns False if there was none. Raises InputError."""

    def read(self) -> Cluster | None:
        """The last one that was started and not stopped, whether it still runs or not. Raises InputError."""
