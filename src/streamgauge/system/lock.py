"""A file lock for at most one process. The kernel releases it, however its holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Locks the file, which it creates and never removes. Yields False if another process holds the lock."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _is_locked(lock)
    finally:
        os.close(lock)


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks, so it cannot report another holder
        return True
    return True
