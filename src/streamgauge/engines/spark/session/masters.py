"""Masters as Spark names them, local ones and standalone clusters, and its settings of executors' cores.

Does not load Spark.
"""

import re

_LOCAL = re.compile(r"local(?:\[([1-9][0-9]*|\*)(?:,\s*[1-9][0-9]*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]")
SCHEME = "spark://"
HOST = "127.0.0.1"
"""The address on which a local Spark and this machine's cluster listen."""
ALL_CORES, EXECUTOR_CORES = "spark.cores.max", "spark.executor.cores"
"""Spark's settings of the cores of all executors of a job, and of each executor."""


def is_local(master: str) -> bool:
    """Whether its processes run on this machine: `local`, `local[N]` or `local-cluster[...]`."""
    return master.startswith("local")


def is_valid_local(master: str) -> bool:
    """Whether Spark can start it."""
    return bool(_LOCAL.fullmatch(master) or _LOCAL_CLUSTER.fullmatch(master))


def local_slots(master: str) -> int | None:
    """The tasks that it runs at once, N of `local[N]`; None where that is not stated, and for every other master."""
    match = _LOCAL.fullmatch(master)
    return int(match[1] or 1) if match is not None and match[1] != "*" else None


def usable_cores(master: str | None, cores: int) -> int | None:
    """How many of this machine's `cores` its tasks may use; None if executors run elsewhere, or may."""
    if master is None:
        return cores
    return min(local_slots(master) or cores, cores) if _LOCAL.fullmatch(master) else None


def is_standalone(master: str | None) -> bool:
    """Whether it is the address of a standalone master, and not of another kind of cluster or a local Spark."""
    return master is not None and master.startswith(SCHEME)


def places(master: str) -> list[str]:
    """The HOST:PORT of each of its masters: a standby master has the next one."""
    return master.removeprefix(SCHEME).split(",")


def whole(value: str) -> int:
    """The whole number that a setting states; 0 for any other text."""
    return int(value) if value.isdecimal() else 0
