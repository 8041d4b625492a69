"""What the driver's processes report of a trial while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Literal

from streamgauge.transports.busy_time import BusyInterval
from streamgauge.transports.spi import Chunk, Delivery, OutputProgress, ReadPosition

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
class GeneratorReport:
    """What happened in one generator process since its last report, and its state; the fields are those of `Tick`.

    `ended`: it has offered its whole plan, or failed. `failed`: why; empty if it did not.
    """

    frontier_us: int
    overflowed: bool
    memory_full_us: int | None
    ended: bool
    failed: str
    chunks: list[Chunk]
    deliveries: list[Delivery]
    aborted_us: list[int]
    delivering: list[BusyInterval]

    def to_json(self) -> dict[str, Any]:
        """Chunks and deliveries are lists, because there may be thousands of them."""
        chunks, deliveries = [astuple(one) for one in self.chunks], [astuple(one) for one in self.deliveries]
        return {**vars(self), "chunks": chunks, "deliveries": deliveries}

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> GeneratorReport:
        made: dict[str, Any] = {
            "chunks": [Chunk(*chunk) for chunk in report["chunks"]],
            "deliveries": [Delivery(*map(_interned, part)) for part in report["deliveries"]],
            "delivering": _intervals(report["delivering"]),
        }
        return cls(**{**report, **made})


@dataclass(frozen=True)
class RecorderReport:
    """What happened in the recorder process since its last report, and its state; the fields are those of `Tick`.

    `reads`, `reached`: what batches reported of their reads, and what results show of them, over transports that do not
    observe reads. `failed`: why it failed; empty if it did not. `disk_full`: whether a full disk was the reason.
    """

    commits: list[Commit]
    reads: list[ReadPosition]
    reached: list[OutputProgress]
    rows_ignored: dict[str, int]
    retried_us: list[int]
    receiving: list[BusyInterval]
    writing: list[BusyInterval]
    stood_still: list[tuple[int, int]]
    failed: str
    disk_full: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> RecorderReport:
        made: dict[str, Any] = {
            "commits": [
                Commit(**{name: _interned(value) for name, value in commit.items()}) for commit in report["commits"]
            ],
            "reads": [ReadPosition(**read) for read in report["reads"]],
            "reached": [OutputProgress(**each) for each in report["reached"]],
            **{name: _intervals(report[name]) for name in ("receiving", "writing", "stood_still")},
        }
        return cls(**{**report, **made})


def _intervals(pairs: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    return [(first, second) for first, second in pairs]


def _interned(value: Any) -> Any:
    """Names of streams, queries and sinks come with every record, and all of those are kept."""
    return sys.intern(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Tick:
    """What happened since the last look, in all processes of ours.

    `aborted_us`, `retried_us`: when a read was cut off, and when a task sent its results again. `memory_full_us`: the
    most event time that waited where queues overflowed by bytes alone; None where one reached its bound in seconds.
    `delivering`: when any generator handed events out, of each one apart. `receiving`, `writing`: when the recorder
    worked on results that had come, and when it wrote them to its disk.
    `stood_still`: (when it ended, how long it was) of each standstill of the recorder.
    """

    chunks: list[list[Chunk]]
    deliveries: list[list[Delivery]]
    commits: list[Commit]
    frontier_us: int
    overflowed: bool
    ended: bool
    rows_ignored: dict[str, int]
    aborted_us: list[int] = field(default_factory=list)
    retried_us: list[int] = field(default_factory=list)
    memory_full_us: int | None = None
    delivering: list[BusyInterval] = field(default_factory=list)
    receiving: list[BusyInterval] = field(default_factory=list)
    writing: list[BusyInterval] = field(default_factory=list)
    stood_still: list[tuple[int, int]] = field(default_factory=list)
