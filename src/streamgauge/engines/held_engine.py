"""The driver's side of an engine with one child process: the SUT itself, or the holder of a program or a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.engines.spi import Engine
from streamgauge.system.child_processes import Child
from streamgauge.system.disk import Scratch


class HeldEngine(Engine):
    """One start of a child process, perhaps with a scratch folder of its own."""

    stop_s: float
    """How long its whole tree has to end."""

    def __init__(self, on_cpus: Sequence[int] | None = None, parallelism: int | None = None) -> None:
        self._cpus, self._parallelism = on_cpus, parallelism
        self._child: Child | None = None
        self._scratch: Scratch | None = None
        self._settings: dict[str, str] = {}
        self._log = Path()
        self._stage = ""

    def stage(self) -> str:
        return self._stage

    def pids(self) -> list[int]:
        """The processes of the job, without the one that holds them."""
        return self._child.pids()[1:] if self._child is not None else []

    def settings(self) -> dict[str, str]:
        return self._settings

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(self.stop_s)
            self._child = None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None
