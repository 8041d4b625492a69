"""Files that are written completely or not at all, and the errors of a place that cannot be written to."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.core.errors import InputError, MachineError, Problem, Rule, first_broken, is_full, refuse


class OutputLocation(NamedTuple):
    """The setting that names a place to write to, and the option for another place."""

    setting: str
    another: str


OUT = OutputLocation("out", "--out DIR")
RUN = OutputLocation("RUN", "a copy of the run folder")


def write_text(path: Path, text: str, place: OutputLocation) -> None:
    """Writes a file completely or not at all. Raises `InputError` if the path cannot be written."""
    require_place(path, place)
    _atomically(path, lambda file: file.write(text.encode()), place)


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a table as Parquet, completely or not at all."""
    _atomically(path, lambda file: pq.write_table(table, file, compression="zstd"), OUT)


def require_place(path: Path, place: OutputLocation) -> None:
    """Raises InputError if a file cannot be written, before anything is computed."""
    setting, another, got, folder = place.setting, place.another, str(path), path.parent
    refuse(
        first_broken(
            Rule(not path.is_dir(), setting, "must be a file, and a folder has that name", got, another),
            Rule(folder.is_dir(), setting, "must be in an existing folder", got, another),
            Rule(
                os.access(folder, os.W_OK | os.X_OK), setting, "must be in a folder that can be written to", got,
                f"{another} in a folder you may write to",
            ),
        )
    )  # fmt: skip


@contextmanager
def disk(path: Path, place: OutputLocation = OUT) -> Iterator[None]:
    """Turns the system's errors about a path into errors that name the setting of `place`."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            another = f"free some space, or use {place.another} elsewhere"
            raise MachineError(f"the disk that holds {path} is full: {another}") from None
        rules = {
            errno.EEXIST: "must be a folder, and a file has that name",
            errno.ENOTDIR: "must lie in a folder, and a file is in its way",
        }
        if not path.parent.is_dir():  # folders such as /proc, which take no files, give the same error
            rules[errno.ENOENT] = "must be in an existing folder"
        rule = rules.get(error.errno or 0, f"must be a place that can be written to ({error.strerror})")
        way_out = f"{place.another} in a folder you may write to"
        raise InputError(Problem(place.setting, rule, str(path), way_out)) from None


def _atomically(path: Path, write: Callable[[IO[bytes]], object], place: OutputLocation) -> None:
    with disk(path, place):
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(beside, 0o644)
            os.replace(beside, path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
        # Makes the rename survive a power cut. Otherwise the old file may come back.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
