"""Samples every process once a second: CPU, memory, time spent waiting for a core, bytes over the loopback.

The monitors read the operating system by process id and never ask the SUT. Background load is the machine's CPU time
minus that of driver, broker and SUT, so the monitors do not read other processes.
"""

import contextlib
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from streamgauge.core.clock import Clock
from streamgauge.core.errors import Rule, broken
from streamgauge.core.formatting import share_beside
from streamgauge.core.machine_check import MachineCheck
from streamgauge.metrics.interference import BACKGROUND_SHARE_MAX
from streamgauge.metrics.records import RUNNER, Role, Usage
from streamgauge.system.machine import machine_percent

_NUMBERS = 20_000
"""160 KB, sorted in about 0.9 ms."""
_PASSED = 6_000_000
"""48 MB, added up in about 1.7 ms. They stay allocated during a trial, and count as the driver's memory."""


class MachineSpeed:
    """Sorts and adds the same numbers each time: 2 to 3 ms, so 0.2 to 0.3 % of a core at one call a second."""

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(1).integers(0, 2**62, _NUMBERS)
        self._passed = np.ones(_PASSED)

    def cpu_us(self) -> float:
        """The CPU time of the work, microseconds; time spent waiting for a core does not count."""
        before_ns = time.thread_time_ns()
        np.sort(self._numbers, kind="stable")
        self._passed.sum()
        return (time.thread_time_ns() - before_ns) / 1000


BOOT_S = 1.0
"""Tolerance for a process's age: Linux reports the boot time, from which it is counted, in whole seconds."""


@dataclass(frozen=True)
class _Reading:
    """`cpu_s` includes that of reaped children, `reaped_s`. `parent` is the process that will reap this one."""

    time_us: int
    cpu_s: float = 0.0
    waited_us: float = 0.0
    turns: int = 0
    reaped_s: float = 0.0
    parent: int = 0


class Monitors:
    """Samples a changing set of processes.

    Args:
        processes: returns (name, role, pid) of every process to sample; called for each sample.
        now_us: the run's clock.
    """

    def __init__(self, processes: Callable[[], list[tuple[str, Role, int]]], now_us: Callable[[], int]) -> None:
        self._processes, self._now_us = processes, now_us
        self._last: dict[int, _Reading] = {}
        self._gone_s: dict[int, float] = defaultdict(float)
        """Parent to the CPU seconds of children that ended since the last sample, which counted them as theirs."""
        self._own_s = 0.0
        self._machine: tuple[int, float] | None = None
        """When the last sample ended, and the CPU seconds of all other processes until then."""
        self.background_percent: float | None = None
        """CPU of all other processes between the last two samples, in percent of one core; includes steal."""

    def sample(self) -> list[Usage]:
        """Usage of every process since the last call, or since its own start. The first call returns no usage.

        - Usage of a child after its last reading counts for the parent that reaped it.
        - All usages carry the time at which the sample began, so they belong to the same second.
        - CPU is divided by the time between a process's own two readings, because reading many processes takes time.
        """
        usages, processes, sampled_us = [], self._processes(), self._now_us()
        self._gone_s.clear()
        for pid in [pid for pid in self._last if not psutil.pid_exists(pid)]:
            last = self._last.pop(pid)
            self._gone_s[last.parent] += last.cpu_s
        for name, role, pid in processes:
            with contextlib.suppress(psutil.Error, OSError):
                usages += self._one(name, role, pid, sampled_us)
        times = psutil.cpu_times()
        # Steal counts as well, because no process of this machine could use that time.
        used_s = times.user + times.system + getattr(times, "nice", 0.0) + getattr(times, "steal", 0.0)
        before, self._machine = self._machine, (self._now_us(), used_s - self._own_s)
        self.background_percent = None
        if before is not None and (span_us := self._machine[0] - before[0]) > 0:
            self.background_percent = max(0.0, 100 * (self._machine[1] - before[1]) / (span_us / 1e6))
        return usages

    def _one(self, name: str, role: Role, pid: int, sampled_us: int) -> list[Usage]:
        process = psutil.Process(pid)
        reading = self._read(process)
        before = self._last.get(pid)
        self._last[pid] = reading
        since = before or self._at_start(process) or reading
        used_s = reading.cpu_s - since.cpu_s - min(reading.reaped_s - since.reaped_s, self._gone_s[pid])
        # All usage of a new process belongs to its role: it started after the last sample, or this is the first.
        self._own_s += used_s if before is not None else reading.cpu_s
        if reading.time_us <= since.time_us:
            return []
        cpu = 100 * used_s / ((reading.time_us - since.time_us) / 1e6)
        kind = kind_of(process.name()) if role == "sut" else ""
        return [Usage(sampled_us, name, role, cpu, process.memory_info().rss, _wait_us(since, reading), kind)]

    def _read(self, process: psutil.Process) -> _Reading:
        times = process.cpu_times()
        reaped_s = times.children_user + times.children_system
        cpu_s = times.user + times.system + reaped_s
        return _Reading(self._now_us(), cpu_s, *_waited(process.pid), reaped_s, process.ppid())

    def _at_start(self, process: psutil.Process) -> _Reading | None:
        """A reading of zero if the process started after the last sample, else None."""
        if self._machine is None:
            return None
        sampled_us = self._machine[0]
        since_s = (self._now_us() - sampled_us) / 1e6 + BOOT_S
        return _Reading(sampled_us) if time.time() - process.create_time() <= since_s else None


BACKGROUND_SAMPLE_US = 500_000
"""Long enough for times that the kernel counts in hundredths of a second."""


class BackgroundSample:
    """The CPU that all other processes use from its making on, without those that this process starts meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._since_us = clock, clock.now_us()
        self._monitors = Monitors(lambda: [(RUNNER, "driver", os.getpid())], clock.now_us)
        self._monitors.sample()

    def check(self) -> MachineCheck:
        """Whether they are as quiet as trials need it. Waits until the sample is long enough."""
        self._clock.sleep_until(self._since_us + BACKGROUND_SAMPLE_US)
        self._monitors.sample()
        share = (self._monitors.background_percent or 0.0) / machine_percent()
        rule = f"should use at most {BACKGROUND_SHARE_MAX:.0%} of the CPU, because a slow trial is invalid beyond it"
        way_out = "stop other programs (top shows them), or separate them: --isolation pinned"
        used = share_beside(share, BACKGROUND_SHARE_MAX)
        problems = broken(Rule(share <= BACKGROUND_SHARE_MAX, "background load", rule, used, way_out))
        return MachineCheck("background_load", f"{used} of the CPU", tuple(problems), prevents_start=False)


def kind_of(program: str) -> str:
    if program.startswith("python"):
        return "python workers"
    return "jvm" if program == "java" else program


def _wait_us(before: _Reading, now: _Reading) -> float:
    """Microseconds waited per time slice between two readings; NaN if one of them is unknown."""
    waited_us = now.waited_us - before.waited_us
    # The sums fall when a thread ends, so both differences may be negative.
    return waited_us if math.isnan(waited_us) else max(0.0, waited_us) / max(1, now.turns - before.turns)


def _waited(pid: int) -> tuple[float, int]:
    """(microseconds in which a process's threads waited for a core, their time slices), from Linux's schedstat.

    NaN if no thread has a schedstat, because some kernels do not provide it.
    """
    waited_ns, turns, known = 0, 0, False
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError):
                _, waited, taken = (task / "schedstat").read_text().split()
                waited_ns, turns, known = waited_ns + int(waited), turns + int(taken), True
    return (waited_ns / 1e3, turns) if known else (math.nan, 0)


def loopback_bytes() -> int:
    """Bytes over the loopback so far: traffic of the transport and within the engine."""
    counters = psutil.net_io_counters(pernic=True).get("lo")
    return int(counters.bytes_recv) if counters is not None else 0
