"""Facts about this machine that stand in every result, and how its cores are shared out."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from streamgauge.core.errors import MachineError

_LIBRARIES = ("pyspark", "pyarrow", "duckdb", "numpy")
CHECKOUT = Path(__file__).parents[3]
"""Where this code lies with its history, if it was not installed from a package."""
GIT_S = 10.0


def cpus() -> list[int]:
    """The processors this process may use."""
    return sorted(os.sched_getaffinity(0))


def split_cpus() -> tuple[list[int], list[int]]:
    """(driver's, SUT's) processors for `pinned` isolation: one in four to the driver, at least one each."""
    mine = cpus()
    driver = max(1, len(mine) // 4)
    return mine[:driver], mine[driver:]


@contextmanager
def only_on(processors: Sequence[int] | None) -> Iterator[None]:
    """All threads of this process on these processors alone, for so long; None is wherever they are.

    For the span in which somebody else's processors are measured. Children that are started within inherit it, and
    `cpus` says no more than it: start what needs the others before, and judge after.
    """
    if processors is None:
        yield
        return
    before = cpus()
    _move_threads(processors)
    try:
        yield
    finally:
        _move_threads(before)


def _move_threads(processors: Sequence[int]) -> None:
    # The kernel knows of threads alone, and it is others than this one that decode what the children say.
    for task in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(task), processors)


def memory_bytes() -> int:
    """The memory this process may use: the machine's, or its control group's where that is less."""
    import psutil

    total = int(psutil.virtual_memory().total)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return total


def at_most_half(bytes_: int) -> int:
    """So much memory, or half of what there is where that is less: driver and SUT share it."""
    return min(bytes_, memory_bytes() // 2)


def environment() -> dict[str, Any]:
    """What a reader needs to judge a figure: machine, system, versions."""
    return {
        "cpu_model": _cpu_model(),
        "cpus": len(cpus()),
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        **{name: _version(name) for name in _LIBRARIES},
        "streamgauge": _version("streamgauge") + commit(),
    }


@lru_cache(maxsize=1)
def commit() -> str:
    """`+` and the commit of the code that runs, `.dirty` where it was changed since; empty where it has no history."""
    if not (CHECKOUT / ".git").exists():
        return ""
    asked = ["git", "-C", str(CHECKOUT), "describe", "--always", "--exclude=*", "--dirty=.dirty", "--abbrev=7"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=GIT_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"+{found}" if found else ""


def _java() -> str:
    from streamgauge.system.java import find_java

    try:
        return find_java().text
    except MachineError:  # not every engine needs one
        return "not installed"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def machine_percent() -> float:
    """All cores of the machine in percent of one, whichever of them this process may use."""
    import psutil

    return 100.0 * (psutil.cpu_count() or 1)
