"""Properties of this machine for every result, and the distribution of its processors."""

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from streamgauge.core.errors import MachineError
from streamgauge.system.control_group import memory_limit

_LIBRARIES = ("pyspark", "pyarrow", "duckdb", "numpy")
CHECKOUT = Path(__file__).parents[3]
"""The Git checkout with this code, if it was not installed from a package."""
GIT_S = 10.0


def cpus() -> list[int]:
    """The processors this process may use."""
    return sorted(os.sched_getaffinity(0))


def allowed_cpus(pids: Iterable[int]) -> tuple[int, ...]:
    """The processors that any of these processes may use; empty if none of them exists."""
    found: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            found |= os.sched_getaffinity(pid)
    return tuple(sorted(found))


def split_cpus() -> tuple[list[int], list[int]]:
    """(driver's, SUT's) processors for `pinned` isolation: one in four for the driver, at least one each."""
    processors = cpus()
    driver = max(1, len(processors) // 4)
    return processors[:driver], processors[driver:]


@contextmanager
def pin_threads(processors: Sequence[int] | None) -> Iterator[None]:
    """Restricts all threads of this process to these processors within the block; None changes nothing.

    For the span in which the SUT's processors are measured. Children that start within the block inherit the limit,
    and `cpus` returns only these processors.
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
    # The kernel sets affinity per thread, and other threads of this process decode the children's answers.
    for task in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(task), processors)


def memory_bytes() -> int:
    """The memory this process may use: that of the machine or of its control group, whichever is less."""
    total, limit = int(psutil.virtual_memory().total), memory_limit()
    return total if limit is None else min(total, limit)


def at_most_half(bytes_: int) -> int:
    """The smaller of `bytes_` and half of the memory, because driver and SUT share it."""
    return min(bytes_, memory_bytes() // 2)


def environment() -> dict[str, Any]:
    """Machine, system and versions, which readers of a result need."""
    return {
        "cpu_model": _cpu_model(),
        "cpus": len(cpus()),
        "memory_bytes": memory_bytes(),
        **({"control_group_memory_bytes": limit} if (limit := memory_limit()) == memory_bytes() else {}),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        **{name: version(name) for name in _LIBRARIES},
        "streamgauge": version("streamgauge") + commit(),
    }


@lru_cache(maxsize=1)
def commit() -> str:
    """`+` and the commit of the running code, with `.dirty` after changes; empty without a Git checkout."""
    if not (CHECKOUT / ".git").exists():
        return ""
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--exclude=*", "--dirty=.dirty", "--abbrev=7"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=GIT_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"+{text}" if text else ""


def _java() -> str:
    from streamgauge.system.java import find_java

    try:
        return find_java().text
    except MachineError:  # some engines need no Java
        return "not installed"


def version(name: str) -> str:
    """The version of an installed distribution, or `not installed`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    with suppress(OSError):
        if model := re.search(r"^model name\s*:\s*(.*\S)", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
            return model[1]
    return platform.processor() or "unknown"


def machine_percent() -> float:
    """All cores of the machine in percent of one core, including those that this process may not use."""
    return 100.0 * (psutil.cpu_count() or 1)
