"""Temporary folders that disappear with their owner, even if it is killed; file locks; checks of disks, full ones too.

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

from streamgauge.core.errors import Problem, Rule
from streamgauge.core.formatting import format_size
from streamgauge.core.machine_check import MachineCheck

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


def nearest_folder(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())


FREE_BYTES = 2 * 2**30
"""A broker keeps two minutes of 100 k events/s with 100 bytes each in 1.2 GB, and the recorder spools their results."""
SHARED_BYTES = 32 * 2**20
"""Half of what containers have by default."""
SHARED_MEMORY = Path("/dev/shm")


def temporary_folder_check() -> MachineCheck:
    """Whether there is a folder for temporary files, with room for what brokers and the recorder write."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:  # none of the usual ones can be written, or their disk is full
        rule, way_out = "must lead to a folder that can be written to", "TMPDIR=DIR, with a DIR of yours that has room"
        problem = Problem("TMPDIR", rule, os.environ.get("TMPDIR", ""), way_out)
        return MachineCheck("temporary_folder", "none that can be written to", (problem,))
    free = shutil.disk_usage(folder).free
    rule = f"should have {format_size(FREE_BYTES)} free, for what brokers and the recorder write"
    return MachineCheck.warning(
        "temporary_folder", f"{folder}, {format_size(free)} free",
        Rule(free >= FREE_BYTES, "TMPDIR", rule, format_size(free), WAY_OUT),
    )  # fmt: skip


def shared_memory_check() -> MachineCheck:
    """Whether processes can share memory. The driver shares none, but libraries of user jobs and programs may."""
    usable = os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
    free = shutil.disk_usage(SHARED_MEMORY).free if usable else 0
    found = f"{SHARED_MEMORY}, {format_size(free)} free" if usable else f"{SHARED_MEMORY} cannot be written"
    rule = f"should be a folder with {format_size(SHARED_BYTES)} free, for jobs and programs that share memory"
    way_out = "remove what others left there; in a container, --shm-size=1g"
    return MachineCheck.warning(
        "shared_memory", found, Rule(free >= SHARED_BYTES, str(SHARED_MEMORY), rule, found, way_out)
    )
