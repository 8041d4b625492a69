"""The limits of this process's control group and of `ulimit`, and whether one of them ended a process.

Each group from the own one up to the root may have a limit, and the least counts. Versions 1 and 2 of cgroups are read.
"""

import re
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from streamgauge.core.errors import Rule, broken
from streamgauge.core.formatting import format_size
from streamgauge.core.machine_check import MachineCheck

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
FILES, FILES_OF_JAVA = 256, 1024
PROCESSES, PROCESSES_OF_JAVA = 64, 200
"""What a start needs of each, with some room: a JVM opens hundreds of jars and starts a hundred threads."""
_ENDING = (
    ("ulimit -t", resource.RLIMIT_CPU, "the CPU time of a process, in seconds"),
    ("ulimit -v", resource.RLIMIT_AS, "the address space of a process, in bytes, and a JVM reserves much"),
    ("ulimit -f", resource.RLIMIT_FSIZE, "the size of a file, in bytes"),
)
"""Limits that end a process within its work, with what they limit."""
_ENDED_BY_KERNEL = re.compile(r"SIGXCPU|SIGKILL|signal (9|24)\b|exit code (-9|-24|137|152)\b")
"""What engines report of a process that exceeded its CPU time: first SIGXCPU, at the hard limit SIGKILL."""


def memory_limit() -> int | None:
    """The most bytes that the group may use; None without a limit."""
    return _least("memory", "memory.max", "memory.limit_in_bytes")


def free_processes() -> int | None:
    """How many more processes and threads the group may have; None without a limit."""
    groups = ((_number(folder / "pids.max"), _number(folder / "pids.current")) for folder in _folders("pids"))
    return min((limit - used for limit, used in groups if limit is not None and used is not None), default=None)


def cpu_limit() -> float | None:
    """How many processors' time the group may use; None without a limit."""
    quotas = [_cpu_quota(folder) for folder in _folders("cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def _cpu_quota(folder: Path) -> float | None:
    """The quota of one group as a share of its period; None without one."""
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    with suppress(OSError, ValueError):  # version 2 has both in one file
        quota, period = map(int, (folder / "cpu.max").read_text().split())
    return quota / period if quota is not None and period and quota > 0 else None


def room_checks(java: bool) -> list[MachineCheck]:
    """Whether the limits allow as many open files, processes and threads as a start needs. `java`: of a JVM."""
    files, processes = (FILES_OF_JAVA, PROCESSES_OF_JAVA) if java else (FILES, PROCESSES)
    open_files, per_user, of_group = _soft(resource.RLIMIT_NOFILE), _soft(resource.RLIMIT_NPROC), free_processes()
    rule = f"must allow {processes:,} more processes and threads, which a run needs"
    return [
        MachineCheck("open_files", _allowed(open_files, "ulimit -n"), tuple(broken(
            Rule(_allows(open_files, files), "ulimit -n", f"must allow {files:,} open files, which a run needs",
                 open_files, f"ulimit -n {4 * files}"),
        ))),
        MachineCheck("processes", f"{_allowed(per_user, 'ulimit -u')}, {_allowed(of_group, 'pids.max')}", tuple(broken(
            Rule(_allows(per_user, processes), "ulimit -u", rule, per_user, f"ulimit -u {4 * processes}"),
            Rule(_allows(of_group, processes), "pids.max", rule, of_group,
                 "raise pids.max of the control group; of a container, --pids-limit"),
        ))),
    ]  # fmt: skip


def process_limits_check() -> MachineCheck:
    """The limits that end a process within its work. How much a run needs of them is not known before."""
    limits = [(flag, _soft(kind), what) for flag, kind, what in _ENDING]
    found = ", ".join(f"{flag} {limit}" for flag, limit, _ in limits if limit is not None)
    return MachineCheck.warning(
        "process_limits", found or "none of CPU time, address space and file size",
        *(
            Rule(limit is None, flag, f"should be unlimited: it limits {what}", limit, f"{flag} unlimited")
            for flag, limit, what in limits
        ),
    )  # fmt: skip


def _allows(allowed: int | None, needed: int) -> bool:
    return allowed is None or allowed >= needed


def _allowed(allowed: int | None, limit: str) -> str:
    return f"{limit} {'unlimited' if allowed is None else f'{allowed:,}'}"


def _soft(kind: int) -> int | None:
    limit = resource.getrlimit(kind)[0]
    return None if limit == resource.RLIM_INFINITY else limit


class LimitWatch:
    """Tells whether the kernel enforced a limit since it was made."""

    def __init__(self) -> None:
        self._kills, self._refusals = _kills(), _refusals()

    def reached(self, failure: str = "") -> str:
        """The limit that ended a process, in words; empty if none did. `failure`: what is known of the end."""
        if _kills() > self._kills:
            limit = memory_limit()
            return f"killed for memory: the control group allows {format_size(limit)}" if limit else "killed for memory"
        if failure and _refusals() > self._refusals:
            limit = _least("pids", "pids.max", "pids.max")
            return f"no process or thread could be started: the control group allows {limit} (pids.max)"
        seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
        if seconds != resource.RLIM_INFINITY and _ENDED_BY_KERNEL.search(failure):
            return f"killed for CPU time: a process may use {seconds} s (ulimit -t)"
        return ""


def _kills() -> int:
    """How many processes of the group, and of those below it, the kernel has killed for memory."""
    files = (folder / name for folder in _folders("memory") for name in ("memory.events", "memory.oom_control"))
    return next((count for file in files if (count := _entry(file, "oom_kill")) is not None), 0)


def _refusals() -> int:
    """How often a limit on processes refused a new one."""
    return sum(_entry(folder / "pids.events", "max") or 0 for folder in _folders("pids"))


def _least(controller: str, *names: str) -> int | None:
    files = (folder / name for folder in _folders(controller) for name in names)
    return min((number for file in files if (number := _number(file)) is not None), default=None)


def _folders(controller: str) -> Iterator[Path]:
    """The folders of the groups, from the own one up to the root, as far as they can be seen."""
    with suppress(OSError):
        for line in OWN.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = ROOT / controllers if controllers else ROOT
            own = root / group.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root) and folder.is_dir())


def _number(path: Path) -> int | None:
    """The number in a file; None for `max`, or if there is no such file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _entry(path: Path, name: str) -> int | None:
    """The number of an entry of a file with a name and a number in each line; None without that entry or file."""
    with suppress(OSError, ValueError, KeyError):
        return int(dict(line.split() for line in path.read_text().splitlines())[name])
    return None
