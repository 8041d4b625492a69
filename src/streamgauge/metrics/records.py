"""What the driver's processes report of a trial while it runs, and the logs that store it for many hours.

A trial adds about a hundred records per second. An object takes 200 to 700 bytes, most of them for its numbers. So a
`ColumnarLog` stores records as columns, with eight bytes per number, and creates them again on access.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args, overload

from streamgauge.transports.spi import BusyInterval, Chunk, Delivery, OutputProgress, ReadPosition

Role = Literal["sut", "driver", "broker"]
"""A broker between both is neither: its load makes the driver no later, and is no work of the system's."""
ROLES: tuple[Role, ...] = get_args(Role)

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

    `ended`: it has offered its whole plan, or failed. `failed`: the reason of a failure, or empty. `paused`: as much
    event time waits for reads as a pace allows.
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
    paused: bool = False

    def to_json(self) -> dict[str, Any]:
        """Chunks and deliveries are lists, because there may be thousands of them."""
        return vars(self) | {name: [astuple(one) for one in vars(self)[name]] for name in ("chunks", "deliveries")}

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> GeneratorReport:
        return cls(**{
            **report,
            "chunks": [Chunk(*chunk) for chunk in report["chunks"]],
            "deliveries": [Delivery(*map(_interned, part)) for part in report["deliveries"]],
            "delivering": _intervals(report["delivering"]),
        })  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RecorderLogs:
    """The logs of the recorder process since its last report.

    - `retried_us`: times of results that a task sent again.
    - `receiving`, `writing`: intervals in which it processed results, and wrote them to disk.
    - `stood_still`: (end, duration) of each of its standstills.
    - `remarks`: what a reader of the figures must know, since the start: code to (count, text).
    """

    commits: list[Commit]
    rows_ignored: dict[str, int]
    retried_us: list[int] = field(default_factory=list)
    receiving: list[BusyInterval] = field(default_factory=list)
    writing: list[BusyInterval] = field(default_factory=list)
    stood_still: list[tuple[int, int]] = field(default_factory=list)
    remarks: dict[str, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecorderReport(RecorderLogs):
    """The logs of the recorder process, and its state.

    - `reads`, `reached`: reads reported by batches, or inferred from results, if the transport does not observe them.
    - `failed`: the reason of a failure, or empty. `disk_full`: whether a full disk was the reason.
    - `rejected`: why the SUT cannot be measured as it is set up, or empty.
    """

    reads: list[ReadPosition]
    reached: list[OutputProgress]
    failed: str
    disk_full: bool
    rejected: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, report: Mapping[str, Any]) -> RecorderReport:
        return cls(**{
            **report,
            "commits": [
                Commit(**{name: _interned(value) for name, value in commit.items()}) for commit in report["commits"]
            ],
            "reads": [ReadPosition(**read) for read in report["reads"]],
            "reached": [OutputProgress(**each) for each in report["reached"]],
            **{name: _intervals(report[name]) for name in ("receiving", "writing", "stood_still")},
            "remarks": {code: (count, text) for code, (count, text) in report["remarks"].items()},
        })  # fmt: skip


def _intervals(pairs: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    return [(first, second) for first, second in pairs]


def _interned(value: Any) -> Any:
    """Interns text, because every stored record repeats the names of streams, queries and sinks."""
    return sys.intern(value) if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class Tick(RecorderLogs):
    """The logs of all driver processes since the last tick.

    - `aborted_us`: times of aborted reads.
    - `memory_full_us`: the most event time that waited when queues overflowed by bytes; None if one reached its bound
      in seconds.
    - `delivering`: intervals in which generators delivered events, of all of them.
    """

    chunks: list[list[Chunk]]
    deliveries: list[list[Delivery]]
    frontier_us: int
    overflowed: bool
    ended: bool
    aborted_us: list[int] = field(default_factory=list)
    memory_full_us: int | None = None
    delivering: list[BusyInterval] = field(default_factory=list)


T = TypeVar("T")

TEXT = "s"
"""The code of text columns, in addition to the type codes of `array`. They refer to few texts, which are interned."""


class ColumnarLog(Sequence[T]):
    """An append-only log: the sequence of its records.

    Args:
        make: creates a record from its values.
        values: returns the values of a record, in that order.
        codes: the code of each column: a type code of `array`, or `TEXT`.
    """

    def __init__(self, make: Callable[..., T], values: Callable[[T], Iterable[Any]], codes: str) -> None:
        self._make, self._values = make, values
        self._columns: list[Any] = [[] if code == TEXT else array(code) for code in codes]

    def append(self, record: T) -> None:
        for column, value in zip(self._columns, self._values(record), strict=True):
            column.append(_interned(value))

    def extend(self, records: Iterable[T]) -> None:
        for record in records:
            self.append(record)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, *self._columns)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        values = [column[place] for column in self._columns]
        return list(map(self._make, *values)) if isinstance(place, slice) else self._make(*values)


Log = ColumnarLog[T] | list[T]
"""Tests may use a list."""


def chunk_log() -> ColumnarLog[Chunk]:
    """The log of one generator's chunks."""
    return ColumnarLog(Chunk, attrgetter("from_us", "to_us", "events", "published_us"), "qqqq")


def spent_log() -> ColumnarLog[BusyInterval]:
    return ColumnarLog(lambda since_us, until_us: (since_us, until_us), iter, "qq")


def usage_log() -> ColumnarLog[Usage]:
    names = ("time_us", "name", "role", "cpu_percent", "memory_bytes", "core_wait_us", "kind")
    return ColumnarLog(Usage, attrgetter(*names), "qssdqds")
