"""Standalone clusters as Spark's settings name them: the addresses of masters, and the cores of executors."""

from __future__ import annotations

SCHEME = "spark://"
HOST = "127.0.0.1"
"""The address on which this machine's cluster listens."""
ALL_CORES, EXECUTOR_CORES = "spark.cores.max", "spark.executor.cores"
"""Spark's settings of the cores of all executors of a job, and of each executor."""


def is_standalone(master: str | None) -> bool:
    """Whether it is the address of a standalone master, and not of another kind of cluster or a local Spark."""
    return master is not None and master.startswith(SCHEME)


def places(master: str) -> list[str]:
    """The HOST:PORT of each of its masters: a standby master has the next one."""
    return master.removeprefix(SCHEME).split(",")
