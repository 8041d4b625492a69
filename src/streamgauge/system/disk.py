"""Temporary folders that disappear with their owner, even if it is killed; file locks; the message about a full disk.

The owner holds a lock on its folder for its lifetime, and the kernel releases it at the owner's end. A folder with a
free lock is abandoned. Orphaned children remove the folder they worked in, and the next start removes the rest.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "streamgauge-"
LOCK = ".owned"


class Scratch(tempfile.TemporaryDirectory[str]):
    """A temporary folder of this process; `purpose` is a part of its name."""

    def __init__(self, purpose: str) -> None:
        super().__init__(prefix=f"{PREFIX}{purpose}-", ignore_cleanup_errors=True)
        # The lock file gets its name after it is locked, so no process finds it free.
        beside = self.path / f"{LOCK}.new"
        self._lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)  # open until the process ends
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        beside.rename(self.path / LOCK)

    @property
    def path(self) -> Path:
        return Path(self.name)


def scratch_folder(purpose: str) -> Path | None:
    """The scratch folder of a purpose, whichever process owns it; None without one."""
    return next(Path(tempfile.gettempdir()).glob(f"{PREFIX}{purpose}-*"), None)


def remove_if_abandoned(folder: Path) -> bool:
    """Removes a scratch folder whose owner is gone. Returns False if an owner still holds it.

    Any other folder stays.
    """
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except OSError:  # no scratch folder, or another user's
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
        return True
    except BlockingIOError:
        return False
    except FileNotFoundError:  # another process has removed it meanwhile
        return True
    finally:
        os.close(lock)


def empty(folder: Path, kept: str) -> None:
    """Removes what a folder has, except the file of that name, and what cannot be removed."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != kept:
            with suppress(OSError):
                entry.unlink()


def _remove(folder: Path) -> None:
    # The lock last: if an ending process still writes here, the next start finds the lock and tries again.
    empty(folder, LOCK)
    if [entry.name for entry in folder.iterdir()] == [LOCK]:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Removes the scratch folders of killed runs on this machine."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        remove_if_abandoned(folder)


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


WAY_OUT = "free some space, or set TMPDIR=DIR to a folder on a larger disk"


def full_disk(folder: Path | None = None) -> str:
    """The message for a folder; the default is the folder for temporary files."""
    where, free = folder or Path(tempfile.gettempdir()), ""
    with suppress(OSError):
        free = f" ({shutil.disk_usage(where).free / 2**20:.1f} MiB free)"
    return f"the disk that holds {where} is full{free}: {WAY_OUT}"
