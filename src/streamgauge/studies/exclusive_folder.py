"""One process at a time in the folder of a study, because two would overwrite each other's findings."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamgauge.artifacts.atomic_write import disk
from streamgauge.core.errors import require
from streamgauge.system.disk import try_lock

LOCK = ".running"


@contextmanager
def exclusive(folder: Path, setting: str, study: str) -> Iterator[None]:
    """Holds the folder's lock. InputError about `setting` if another process runs the `study`, such as `a search`."""
    path = folder / LOCK
    with ExitStack() as stack:
        with disk(path):
            locked = stack.enter_context(try_lock(path))
        rule = f"must be {study} that has ended, but another process is still running this one"
        require(locked, setting, rule, str(folder), f"wait for it, or end it with Ctrl-C, and then --resume {folder}")
        yield
