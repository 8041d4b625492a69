"""Properties of this machine, for every result."""

import os
import platform
import re
import subprocess
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from streamgauge.core.errors import MachineError
from streamgauge.core.formatting import format_size
from streamgauge.system.cpu_pinning import cpus
from streamgauge.system.process_limits import memory_limit

HEAP_BYTES = 2**30
"""The heap of a broker, and less than an engine's needs."""
_LIBRARIES = ("pyspark", "pyarrow", "duckdb", "numpy")
CHECKOUT = Path(__file__).parents[3]
"""The Git checkout with this code, if it was not installed from a package."""
GIT_S = 10.0


def memory_bytes() -> int:
    """The memory this process may use: that of the machine or of its control group, whichever is less."""
    total, limit = int(psutil.virtual_memory().total), memory_limit()
    return total if limit is None else min(total, limit)


def at_most_half(bytes_: int) -> int:
    """The smaller of `bytes_` and half of the memory, because driver and SUT share it."""
    return min(bytes_, memory_bytes() // 2)


def slow_start_advice() -> str:
    """The load of this machine and its free memory as a sentence, with what to do about a process that did not start.

    Memory is advised only if it does not hold `HEAP_BYTES`.
    """
    load, number = os.getloadavg()[0], psutil.cpu_count() or 1
    free = min(memory_bytes(), int(psutil.virtual_memory().available))
    todo = ["stop other programs"] * (load > number) + ["free memory"] * (free < HEAP_BYTES)
    found = f"The load is {load:.1f} on {number} processors, and {format_size(free)} of memory are free"
    return f"{found}: {' and '.join(todo or ['read the log'])}"


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
