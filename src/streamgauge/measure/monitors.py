"""What every process used, once a second: CPU, memory, time spent waiting for a core, bytes over the loopback.

Read from outside, by process id; nothing here asks the SUT.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

Role = Literal["sut", "driver"]


@dataclass(frozen=True)
class Usage:
    """One second of one process: CPU in percent of one core, and resident bytes.

    `waiting_share` is the part of the second that its threads waited for a core.
    """

    time_us: int
    name: str
    role: Role
    cpu_percent: float
    memory_bytes: int
    waiting_share: float


@dataclass(frozen=True)
class _Reading:
    time_us: int
    cpu_s: float
    waited_s: float


class Monitors:
    """Samples a changing set of processes.

    Args:
        processes: gives (name, role, pid) of every process to watch, asked anew each time.
        now_us: the run's clock.
    """

    def __init__(self, processes: Callable[[], list[tuple[str, Role, int]]], now_us: Callable[[], int]) -> None:
        self._processes, self._now_us = processes, now_us
        self._last: dict[int, _Reading] = {}

    def sample(self) -> list[Usage]:
        """Usage of every process since the last call; a process seen first gives none."""
        usages = []
        for name, role, pid in self._processes():
            with contextlib.suppress(psutil.Error, OSError):
                usages += self._one(name, role, pid)
        return usages

    def _one(self, name: str, role: Role, pid: int) -> list[Usage]:
        process = psutil.Process(pid)
        times = process.cpu_times()
        reading = _Reading(self._now_us(), times.user + times.system, _waited_s(pid))
        before = self._last.get(pid)
        self._last[pid] = reading
        if before is None or reading.time_us <= before.time_us:
            return []
        span_s = (reading.time_us - before.time_us) / 1e6
        cpu = 100 * (reading.cpu_s - before.cpu_s) / span_s
        waiting = max(0.0, reading.waited_s - before.waited_s) / span_s
        return [Usage(reading.time_us, name, role, cpu, process.memory_info().rss, waiting)]


def _waited_s(pid: int) -> float:
    """Seconds that the threads of a process were ready and had no core (Linux's schedstat); 0 where it is not kept."""
    total = 0
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += int((task / "schedstat").read_text().split()[1])
    return total / 1e9


def loopback_bytes() -> int:
    """Bytes that crossed the loopback so far: the transport and the engine's own traffic together."""
    counters = psutil.net_io_counters(pernic=True).get("lo")
    return int(counters.bytes_recv) if counters is not None else 0
