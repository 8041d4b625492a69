"""Who is at the other end of a connection: Spark's receiver sends nothing by which it could be known."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil


def of_this_run(address: tuple[str, int]) -> bool:
    """Whether a process of this run connected from that address of this machine: one that our own parent, or a process
    of its, has started. One that belongs to another user cannot be looked at, and is none.
    """
    for connection in psutil.net_connections("tcp"):
        if connection.laddr == address and connection.pid is not None:
            with suppress(psutil.Error):
                process = psutil.Process(connection.pid)
                return os.getppid() in {process.pid, *(parent.pid for parent in process.parents())}
    return False
