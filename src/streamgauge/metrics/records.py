"""What the driver's processes report of a trial while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamgauge.transports.busy_time import BusyInterval
from streamgauge.transports.spi import Chunk, Delivery

Role = Literal["sut", "driver"]

RUNNER = "runner"
"""The name of the driver's own first process, which conducts and judges and stamps nothing."""
STILL_US_MIN = 100_000
"""A shorter standstill is what every process of a busy machine has: its stamps are late by no more than a slip may be.
"""


@dataclass(frozen=True)
class Usage:
    """One second of one process: CPU in percent of one core, and resident bytes.

    `time_us` is when the sample was begun, the same for all its processes: what is summed over them is of one moment.
    `kind` is what sort of process it is, by its program: `jvm` or `python workers`, else the program's own name; only
    of the SUT, which may have several.
    `core_wait_us` is how long its threads waited for a core each time they were ready to run, on average: on cores that
    are shared it delays every stamp of the driver by about as much, however little of a core the driver uses.
    NaN where the system does not tell.
    """

    time_us: int
    name: str
    role: Role
    cpu_percent: float
    memory_bytes: int
    core_wait_us: float
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """One sink's share of a query's batch, accepted: when, how many rows, the largest event time in them, and where
    they lie.
    """

    query: str
    batch: int
    sink: str
    committed_us: int
    emitted_us: int
    rows: int
    frontier_us: int
    latency_us_p50: float | None
    paths: list[str]


@dataclass(frozen=True)
class Tick:
    """What happened since the last look, in all processes of ours.

    `aborted_us`, `retried_us`: when a read was cut off, and when a task sent its results again. `memory_full_us`: the
    most event time that waited where queues overflowed by bytes alone; None where one reached its bound in seconds.
    `handing_out`: when any generator handed events out, of each one apart. `receiving`, `writing`: when the recorder
    worked on results that had come, and when it wrote them to its disk.
    `stood_still`: (when it ended, how long it was) of each standstill of the recorder.
    """

    chunks: list[list[Chunk]]
    hand_outs: list[list[Delivery]]
    commits: list[Commit]
    frontier_us: int
    overflowed: bool
    ended: bool
    rows_ignored: dict[str, int]
    aborted_us: list[int] = field(default_factory=list)
    retried_us: list[int] = field(default_factory=list)
    memory_full_us: int | None = None
    handing_out: list[BusyInterval] = field(default_factory=list)
    receiving: list[BusyInterval] = field(default_factory=list)
    writing: list[BusyInterval] = field(default_factory=list)
    stood_still: list[tuple[int, int]] = field(default_factory=list)
