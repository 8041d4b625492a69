"""Identifies the process at the other end of a connection, because Spark's receiver sends no token."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

MAPPED = "::ffff:"


def of_this_run(address: tuple[str, int]) -> bool:
    """Whether the connection comes from a process of this run, a descendant of our parent process.

    Processes of other users cannot be inspected, and are not accepted.
    """
    for connection in psutil.net_connections("tcp"):
        if connection.pid is not None and _plain(connection.laddr) == address:
            with suppress(psutil.Error):
                process = psutil.Process(connection.pid)
                return os.getppid() in {process.pid, *(parent.pid for parent in process.parents())}
    return False


def _plain(address: tuple[str, int]) -> tuple[str, int] | None:
    """The IPv4 address: a JVM's IPv6 sockets show it with a prefix."""
    return (address[0].removeprefix(MAPPED), address[1]) if address else None
