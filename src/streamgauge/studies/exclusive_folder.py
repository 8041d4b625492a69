"""One process at a time in the folder of a study, because two would overwrite each other's findings."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamgauge.artifacts.atomic_write import disk
from streamgauge.core.errors import require
from streamgauge.system.disk import try_lock

LOCK = ".running"
Lock = Callable[[Path], None]
"""Locks a folder. InputError if another process runs the study in it."""


@contextmanager
def exclusive(setting: str, study: str) -> Iterator[Lock]:
    """Gives the lock, and holds it to the end; `setting` and `study` (such as `a search`) are those of its error.

    The folder to resume is locked before anything is checked, because checks disturb a study that still runs.
    """
    with ExitStack() as stack:

        def lock(folder: Path) -> None:
            path = folder / LOCK
            with disk(path):
                locked = stack.enter_context(try_lock(path))
            rule = f"must be {study} that has ended, but another process is still running this one"
            require(
                locked, setting, rule, str(folder), f"wait for it, or end it with Ctrl-C, and then --resume {folder}"
            )

        yield lock
