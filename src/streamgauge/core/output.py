"""Standard output and standard error where they may be full, closed or a terminal that went away.

Progress on standard error may be lost; an answer that cannot be printed is an error, unless its reader has enough.
"""

import os
import sys
from contextlib import suppress
from typing import IO, Any

from streamgauge.core.errors import MachineError


class LossyStderr:
    """Standard error that goes silent if it cannot be written, because progress must not end a run."""

    def __init__(self) -> None:
        self._stream: IO[str] = getattr(sys.stderr, "rich_proxied_file", sys.stderr)

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        silence(self._stream)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def silence(stream: IO[str]) -> None:
    """Lets further output vanish, because the interpreter flushes the stream once more at its end."""
    with suppress(OSError, ValueError):  # no open descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def print_progress(text: str) -> None:
    """Prints a line on standard error, if there is one."""
    print(text, file=LossyStderr(), flush=True)


def print_answer(text: str, end: str = "\n", folder: str = "") -> None:
    """Prints an answer on standard output. Raises MachineError if that fails; `folder` has the answer, too.

    The reader of a pipe may close it (`head -1`), which changes nothing.
    """
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        where = f"; the run is in {folder}" if folder else ""
        raise MachineError(f"standard output cannot be written ({error.strerror}){where}") from None
