"""The process that holds a program of the user's own: it starts the command, and ends its whole tree of processes.

It is the reaper of every process below it, so that a child that left its group is found and ended too. The kernel kills
the command if this process is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from streamgauge.core.errors import EngineError
from streamgauge.system.child_processes import serve

TERM_S = 2.0
"""How long the program has to end by itself after SIGTERM."""
_PDEATHSIG, _SUBREAPER = 1, 36


class Program:
    """The command, once it is started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Lock()

    def start(self, command: Sequence[str], environment: Mapping[str, str], folder: str, log: str) -> int:
        """Starts the command and returns its process id. Raises EngineError if the system refuses it."""
        try:
            with open(log, "ab") as sink:
                self._process = subprocess.Popen(
                    list(command), cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                    stdout=sink, stderr=subprocess.STDOUT, preexec_fn=_die_with_parent,
                )  # fmt: skip
        except OSError as error:
            raise EngineError(f"the command could not be started ({error.strerror}): {command[0]}") from None
        return self._process.pid

    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def end(self) -> None:
        """Ends the program and every process below it: first by SIGTERM, then by SIGKILL."""
        with self._ending:
            _signal(_below(), signal.SIGTERM)
            until_s = time.monotonic() + TERM_S
            while (left := _below()) and time.monotonic() < until_s:
                time.sleep(0.02)
            while left:  # a process may start another one meanwhile
                _signal(left, signal.SIGKILL)
                time.sleep(0.01)
                left = _below()


def _below() -> list[psutil.Process]:
    """The running processes below this one. Those that have ended are reaped on the way."""
    alive = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
            elif process.ppid() == os.getpid():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
    return alive


def _signal(processes: Sequence[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    program = Program()
    handlers: dict[str, Any] = {name: getattr(program, name) for name in ("start", "exit_code", "end")}
    serve(handlers, program.end)


if __name__ == "__main__":
    main()
