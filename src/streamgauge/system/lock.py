"""A file that at most one process holds; the kernel lets go of it whatever ends its holder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Holds the file (made where it is not there, and left there); False where another holder has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _taken(lock)
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that knows no locks: nothing is known of another holder
        return True
    return True
