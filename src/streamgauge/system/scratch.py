"""Folders for what nobody keeps: gone with their owner, also where the owner is killed.

Each has a lock that its owner holds as long as it lives; the kernel lets go of it whatever ends the owner. So a folder
whose lock can be taken is nobody's any more: an orphaned child removes the one that it worked in, and the next start
removes what is left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "streamgauge-"
LOCK = ".owned"


class Scratch(tempfile.TemporaryDirectory[str]):
    """A temporary folder of this process; `purpose` is a part of its name."""

    def __init__(self, purpose: str) -> None:
        super().__init__(prefix=f"{PREFIX}{purpose}-", ignore_cleanup_errors=True)
        self._lock = _locked(Path(self.name))

    @property
    def path(self) -> Path:
        return Path(self.name)


def _locked(folder: Path) -> int:
    """The lock of a new folder, held: it gets its name when it is held already, so that nobody finds it free."""
    beside = folder / f"{LOCK}.new"
    lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)  # closed by the end of the process, and only so
    fcntl.flock(lock, fcntl.LOCK_EX)
    beside.rename(folder / LOCK)
    return lock


def remove_if_abandoned(folder: Path) -> bool:
    """Remove a scratch folder whose owner is gone; any other folder stays. False where an owner is still there."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except OSError:  # no scratch folder, or somebody else's
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
        return True
    except BlockingIOError:
        return False
    except FileNotFoundError:  # another one has removed it since the lock was opened
        return True
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    # The lock last: where somebody who is about to end still writes, the next one finds it and tries again.
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != LOCK:
            entry.unlink(missing_ok=True)
    if [entry.name for entry in folder.iterdir()] == [LOCK]:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove what killed runs have left on this machine."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        remove_if_abandoned(folder)
