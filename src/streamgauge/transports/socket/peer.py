"""Who is at the other end of a connection: Spark's receiver sends nothing by which it could be known."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

MAPPED = "::ffff:"


def of_this_run(address: tuple[str, int]) -> bool:
    """Whether a process of this run connected from that address of this machine: one that our own parent, or a process
    of its, has started. One that belongs to another user cannot be looked at, and is none.
    """
    for connection in psutil.net_connections("tcp"):
        if connection.pid is not None and _plain(connection.laddr) == address:
            with suppress(psutil.Error):
                process = psutil.Process(connection.pid)
                return os.getppid() in {process.pid, *(parent.pid for parent in process.parents())}
    return False


def _plain(address: tuple[str, int]) -> tuple[str, int] | None:
    """An address as it is in IPv4: a JVM's sockets are of IPv6, and have it behind a prefix."""
    return (address[0].removeprefix(MAPPED), address[1]) if address else None
