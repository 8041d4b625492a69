"""What the driver's processes report of a trial while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, Literal

from streamgauge.transports.spi import BusyInterval, Chunk, Delivery, OutputProgress, ReadPosition

Role = Literal["sut", "driver"]

RUNNER = "runner"
"""The name of the driver's main process, which conducts trials and stamps nothing."""
STILL_US_MIN = 100_000
"""Shorter standstills are normal on a busy machine, and make stamps no later than the allowed schedule delay."""


@dataclass(frozen=True)
class Usage:
    """One second of one process: CPU in percent of one core, and resident bytes.

    - `time_us`: the start of the sample, equal for all its processes, so their sums are for the same time.
    - `kind`: for the SUT's processes, `jvm`, `python workers` or the program's name.
    - `core_wait_us`: the mean wait of its threads for a core when they were ready to run. On shared cores it delays
      the driver's stamps by about as much. NaN if unknown.
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
    """The accepted results of one sink in one batch: time, rows, their largest event time, and their files.

    The latencies are those of a sample of the rows, for the views of a running trial.
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
    latency_us_p90: float | None = None
    latency_us_p99: float | None = None


@dataclass(frozen=True)
class GeneratorReport:
    """The logs of one partition's generator since its last report, and its state. Fields as in `Tick`.

    `ended`: it has offered its whole plan, or failed. `failed`: the reason of a failure, or empty.
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
    """The logs of the recorder process since its last report, and its state. Fields as in `Tick`.

    - `reads`, `reached`: reads reported by batches, or inferred from results, if the transport does not observe them.
    - `failed`: the reason of a failure, or empty. `disk_full`: whether a full disk was the reason.
    - `rejected`: why the SUT cannot be measured as it is set up, or empty.
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
    remarks: dict[str, tuple[int, str]] = field(default_factory=dict)
    rejected: str = ""

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
            "remarks": {code: (count, text) for code, (count, text) in report["remarks"].items()},
        }
        return cls(**{**report, **made})


def _intervals(pairs: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    return [(first, second) for first, second in pairs]


def _interned(value: Any) -> Any:
    """Interns text, because every stored record repeats the names of streams, queries and sinks."""
    return sys.intern(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Tick:
    """The logs of all driver processes since the last tick.

    - `aborted_us`, `retried_us`: times of aborted reads, and of results that a task sent again.
    - `memory_full_us`: the most event time that waited when queues overflowed by bytes; None if one reached its bound
      in seconds.
    - `delivering`: intervals in which a generator delivered events, for each generator.
    - `receiving`, `writing`: intervals in which the recorder processed results, and wrote them to disk.
    - `stood_still`: (end, duration) of each standstill of the recorder.
    - `remarks`: what a reader of the figures must know, since the start: code to (count, text).
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
    remarks: dict[str, tuple[int, str]] = field(default_factory=dict)
