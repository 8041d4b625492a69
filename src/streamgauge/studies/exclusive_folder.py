"""One process at a time in the folder of a study, because two would overwrite each other's findings."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamgauge.artifacts.run_folder import disk
from streamgauge.core.errors import InputError, Problem
from streamgauge.system.disk import try_lock

LOCK = ".running"


@contextmanager
def exclusive(folder: Path, setting: str, study: str) -> Iterator[None]:
    """Holds the folder's lock. InputError about `setting` if another process runs the `study`, such as `a search`."""
    path = folder / LOCK
    with ExitStack() as stack:
        with disk(path):
            locked = stack.enter_context(try_lock(path))
        if not locked:
            rule = f"must be {study} that has ended, but another process is still running this one"
            way_out = f"wait for it, or end it with Ctrl-C, and then --resume {folder}"
            raise InputError(Problem(setting, rule, str(folder), way_out))
        yield
