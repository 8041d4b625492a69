"""The limits of this process's control group, and whether one of them ended a process.

Each group from the own one up to the root may have a limit, and the least counts. Versions 1 and 2 of cgroups are read.
"""

import re
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from streamgauge.core.errors import MachineError
from streamgauge.core.formatting import format_size

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
FILES, FILES_OF_JAVA = 256, 1024
PROCESSES, PROCESSES_OF_JAVA = 64, 200
"""What a start needs of each, with some room: a JVM opens hundreds of jars and starts a hundred threads."""
_ENDED_BY_KERNEL = re.compile(r"SIGXCPU|SIGKILL|signal (9|24)\b|exit code (-9|-24|137|152)\b")
"""What engines report of a process that exceeded its CPU time: first SIGXCPU, at the hard limit SIGKILL."""


def memory_limit() -> int | None:
    """The most bytes that the group may use; None without a limit."""
    return _least("memory", "memory.max", "memory.limit_in_bytes")


def free_processes() -> int | None:
    """How many more processes and threads the group may have; None without a limit."""
    groups = ((_number(folder / "pids.max"), _number(folder / "pids.current")) for folder in _folders("pids"))
    return min((limit - used for limit, used in groups if limit is not None and used is not None), default=None)


def require_room(java: bool) -> None:
    """Raises MachineError if a limit allows fewer open files, processes and threads than a start needs."""
    files, processes = (FILES_OF_JAVA, PROCESSES_OF_JAVA) if java else (FILES, PROCESSES)
    for what, limit, allowed, needed in (
        ("open files", "ulimit -n", _soft(resource.RLIMIT_NOFILE), files),
        ("processes and threads", "ulimit -u", _soft(resource.RLIMIT_NPROC), processes),
        ("more processes and threads", "pids.max of the control group", free_processes(), processes),
    ):
        if allowed is not None and allowed < needed:
            raise MachineError(f"{limit} allows {allowed:,} {what}, and a run needs {needed:,}. Raise it")


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
