"""A process that holds one command on a lifeline: a program, or a JVM. It ends the command's whole tree of processes.

`hold` starts it. It is the reaper of the processes below it, so that a child that left its group is found and ended
too. The kernel kills the command if this process is killed.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from streamgauge.core.errors import DriverError
from streamgauge.system.child_processes import Child, is_running, send_signal, serve, start_process, wait_until

_SUBREAPER = 36


def hold(
    name: str,
    log: Path,
    cpus: Sequence[int] | None = None,
    environment: Mapping[str, str | None] | None = None,
    term_s: float = 0.0,
    scratch: Path | None = None,
) -> Child:
    """A holder without a command, as a `Child`. It takes the requests of `Holder`.

    Args:
        cpus, environment: as those of `Child`; its command inherits them.
        term_s: how long the command has to end by itself after SIGTERM.
        scratch: a folder that it removes if it is an orphan.
    """
    return Child(name, __name__, [str(term_s), *([str(scratch)] if scratch else [])], log, cpus, environment)


class Holder:
    """The holder's side."""

    def __init__(self, term_s: float) -> None:
        self._term_s = term_s
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Lock()

    def start(
        self, command: Sequence[str], log: str, folder: str = ".", environment: Mapping[str, str] | None = None
    ) -> int:
        """Starts the command and returns its process id. Raises DriverError if the system refuses it.

        `environment` has the variables that differ from those of this process.
        """
        try:
            self._process = start_process(command, Path(log), {**os.environ, **(environment or {})}, Path(folder))
        except OSError as error:
            raise DriverError(f"the command could not be started ({error.strerror}): {command[0]}") from None
        return self._process.pid

    def exit_code(self) -> int | None:
        """The exit code of the command; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def kill(self) -> None:
        """Kills the command and every process below it."""
        while below := _below():  # a process may start another one meanwhile
            send_signal(signal.SIGKILL, below)
            time.sleep(0.01)
        if self._process is not None:  # threads of a zombie may still run
            self._process.wait()

    def end(self) -> None:
        """Ends them by SIGTERM, then kills what is left."""
        with self._ending:
            send_signal(signal.SIGTERM, _below())
            wait_until(lambda: not _below(), self._term_s, 0.02)
            self.kill()


def _below() -> list[int]:
    """The running processes below this one. Those that have ended are reaped on the way."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return [process.pid for process in psutil.Process().children(recursive=True) if is_running(process.pid)]


def main() -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    term_s, *scratch = sys.argv[1:]
    holder = Holder(float(term_s))
    serve({name: getattr(holder, name) for name in ("start", "exit_code", "kill")}, holder.end, *map(Path, scratch))


if __name__ == "__main__":
    main()
