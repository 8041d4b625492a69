"""The transport interface: endpoints on the driver's side, what they log, and the description of a transport.

An outlet (`outlet.Outlet`) beside each generator delivers events. An inlet beside the recorder receives results. The
engine implements the other sides, and lists supported transports in `Capabilities.transports`.

Positions are times. In a plan, offset and time determine each other, so a position is the event time (exclusive) up to
which everything was read. It is exact and has the same form for every partition and stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

from streamgauge.core.errors import Problem, StreamgaugeError
from streamgauge.core.machine_check import MachineCheck
from streamgauge.core.plugin_options import Fetch, Setting
from streamgauge.transports.topic_names import ProgramTopics

if TYPE_CHECKING:
    import pyarrow as pa

BusyInterval = tuple[int, int]
"""(since, until), microseconds of the run's clock, until exclusive."""


class BusyTracker:
    """A context manager that records when at least one thread was inside. Overlapping threads count once.

    Each use reads the clock twice, so use it per batch, not per event.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._inside = 0
        self._since_us = 0
        self._spent: list[BusyInterval] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._since_us = self._now_us()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._spent.append((self._since_us, self._now_us()))

    def news(self) -> list[BusyInterval]:
        """The intervals since the last call, ascending and disjoint. An open interval is reported up to now."""
        with self._lock:
            if self._inside:
                now_us = self._now_us()
                self._spent.append((self._since_us, now_us))
                self._since_us = now_us
            spent, self._spent = self._spent, []
            return spent


UNOBSERVED = "unobserved"
"""Code of the remark that nothing shows how far a program of the user's own had read: it was rejected for that, or the
trial was so short that its progress was inferred from results."""
NEVER_COMMITTED, FOREIGN, COMMITS = "never_committed", "foreign", "commits"
"""Codes of remarks: a program of the user's own commits no offsets, it writes foreign messages; how often the committed
offsets of a consumer group move."""


class Overflow(StreamgaugeError):
    """The queue's limit was reached: the SUT read too little for too long."""


StreamPartition = tuple[str, int]
"""A stream and the number of its partition."""


@dataclass(frozen=True)
class EndpointConfig:
    """Address, access token and options of an endpoint.

    If there is a broker, the endpoint does not listen. It connects to the address in `options`.
    `program`: the topics of a program of the user's own. `starts`: (topic, partition, offset) before the first event.
    `group`: the consumer group that shows the engine's progress; empty if the engine reports it.
    """

    host: str
    port: int
    token: str
    options: Mapping[str, str] = field(default_factory=dict)
    program: ProgramTopics | None = None
    starts: tuple[tuple[str, int, int], ...] = ()
    group: str = ""


@dataclass(frozen=True)
class Edge:
    """The address of an endpoint and its access token, for the SUT."""

    location: str
    token: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events in [from_us, to_us) that became available at `published_us`."""

    from_us: int
    to_us: int
    events: int
    published_us: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery to the SUT: events in [from_us, to_us) of one stream, first delivered at `ingest_us`.

    - `query`, `reader`: a job may have several queries, and a query may have several readers of a stream.
    - `again`: redelivery to the same reader.
    - `shared`: only other readers have read these events before (work that the SUT does twice).
    - `read_us`: the time of this read, if known. `ingest_us` is always that of the first delivery to any reader.
    - `to_sequence`: the sequence of the first event after it, if known: several events may share a microsecond.
    """

    stream: str
    from_us: int
    to_us: int
    events: int
    ingest_us: int
    batch: int
    again: bool
    query: str = ""
    reader: int = 0
    shared: bool = False
    read_us: int = 0
    to_sequence: int | None = None

    @property
    def first(self) -> bool:
        """Whether this is the first delivery of these events. Only first deliveries count as ingested."""
        return not (self.again or self.shared)

    @property
    def when_us(self) -> int:
        """The time of this read."""
        return self.read_us or self.ingest_us


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """The offset up to which a batch read a partition, for transports that do not observe reads.

    `when_us` is the start of the batch. A restarted batch is reported again.
    """

    query: str
    reader: int
    batch: int
    stream: str
    partition: int
    to_offset: int
    when_us: int


@dataclass(frozen=True, slots=True)
class OutputProgress:
    """The event time (exclusive) up to which a query has read, inferred from its results."""

    query: str
    batch: int
    until_us: int
    when_us: int


IndexSampler = Callable[[int], Sequence[int]]
"""Sampler: given a count n, returns ascending indices below n."""


@dataclass(frozen=True)
class BrokerRequest:
    """Settings of a broker: run id, streams, partitions, folders, processors (None: all) and transport options.

    `program`: as in `EndpointConfig`.
    """

    run: str
    streams: tuple[str, ...]
    partitions: int
    folder: Path
    log: Path
    host: str
    cpus: tuple[int, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    program: ProgramTopics | None = None


class ManagedBroker(Protocol):
    """A broker between both endpoints, in separate processes, for the lifetime of a test bed."""

    at: EndpointConfig
    """The configuration with which both endpoints connect to it."""

    @property
    def alive(self) -> bool:
        """Whether it still runs."""

    def missing(self) -> str:
        """A description of missing topics; empty if all exist. May take seconds."""

    def lost(self, sent: Sequence[Mapping[str, int]], is_all: bool = False) -> str:
        """A description of partitions with fewer events than were sent, or more; empty if there are none.

        `sent` has the number of events per stream for each partition. Waits for events in flight. `is_all`: whether
        generators send nothing more, so that other messages are those of another program.
        """

    def pids(self) -> list[int]:
        """Its processes."""

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        """The append times of the events at these offsets, by the broker's clock, microseconds.

        Empty if the broker does not share the driver's clock, or stores other times. Raises DriverError if it does not
        answer.
        """

    def results(self, since_us: int, choose: IndexSampler) -> Mapping[str, pa.Table]:
        """Sink to a sample of its results appended since `since_us`; `choose` selects their indices.

        `emission_time` is the append time. Empty without results, or if the broker does not share the driver's clock.
        Raises DriverError if the broker does not answer.
        """

    def close(self) -> None:
        """Stops the broker and removes its data."""


@dataclass(frozen=True)
class OutletConfig:
    """Schemas of the streams (with lineage), and the limits of the outlet: `bound_us` of event time, `bytes_max`.

    `now_us` is the run's clock, `partition` that of all its events. `keys`: stream to the column that is the key of
    its messages.
    """

    schemas: dict[str, pa.Schema]
    bound_us: int
    bytes_max: int
    now_us: Callable[[], int]
    partition: int = 0
    keys: Mapping[str, str] = field(default_factory=dict)


class Receiver(Protocol):
    """The recorder, as an inlet sees it. Raises DriverError if results cannot be stored; the sender gets the error."""

    def now_us(self) -> int:
        """The run's clock."""

    def receive(
        self, address: dict[str, Any], schema: pa.Schema, batches: Iterator[pa.RecordBatch], stamped: bool = False
    ) -> None:
        """Receives one attempt's results for one sink; `address` is query, batch, partition, attempt, sink.

        Each row is stamped on arrival, unless the inlet has already set `emission_time` (`stamped`).
        """

    def read(
        self, query: str, batch: int, positions: Sequence[tuple[str, int, int, int]], when_us: int | None = None
    ) -> None:
        """Reports the start (or restart) of a batch and its end positions (stream, reader, partition, offset).

        For transports that do not observe reads. `when_us` defaults to now.
        """

    def reached(self, query: str, batch: int, until_us: int) -> None:
        """Reports that a query has read all events before `until_us`, as its results show."""

    def fail(self, reason: str) -> None:
        """Reports that no more results can be received."""

    def remark(self, code: str, count: int, text: str) -> None:
        """Reports what a reader of the figures must know; replaces the remark with the same code. 0 withdraws it."""

    def reject(self, reason: str) -> None:
        """Reports that the SUT cannot be measured as it is set up."""

    def commit(
        self, query: str, batch: int, accepted: list[list[int]], sinks: list[str], when_us: int | None = None
    ) -> bool:
        """Commits a batch with its accepted (partition, attempt) pairs. Returns False if it was already committed.

        `when_us` defaults to now.
        """


class Inlet(Protocol):
    """The endpoint of the recorder: it receives results until the process ends."""

    @property
    def location(self) -> str:
        """The address for the SUT."""


@dataclass(frozen=True)
class Transport:
    """A transport in the registry. Only the `open_*` methods load its libraries.

    - `outlet`, `inlet`, `broker`: what opens the two endpoints on the driver's side, and the broker between them, as
      `module:name`; no `broker` without one.
    - `stamps`: whether it observes every delivery, so that events carry an ingest time.
    - `settings`: its options. `files`: those that name user files. `fetches`: what it may fetch.
    - `problems`: additional validation of options.
    - `effective_settings`: settings for the result.
    - `machine_checks`: what runs with its options need of this machine, looked up without fetching anything.
    - `require`: fetches what runs need and this machine lacks. Raises MachineError if it cannot be had.
    """

    outlet: str
    inlet: str
    broker: str = ""
    stamps: bool = False
    settings: tuple[Setting, ...] = ()
    fetches: tuple[Fetch, ...] = ()
    files: tuple[str, ...] = ()
    problems: Callable[[Mapping[str, str]], Iterable[Problem]] | None = None
    effective_settings: Callable[[Mapping[str, str]], dict[str, str]] = lambda _: {}
    machine_checks: Callable[[Mapping[str, str]], Iterable[MachineCheck]] = lambda _: ()
    require: Callable[[Mapping[str, str]], None] = lambda _: None

    def open_outlet(self, at: EndpointConfig, config: OutletConfig) -> Any:
        """A `transports.outlet.Outlet`."""
        return resolve_name(self.outlet)(at, config)

    def open_inlet(self, at: EndpointConfig, receiver: Receiver) -> Inlet:
        return resolve_name(self.inlet)(at, receiver)

    def open_broker(self, request: BrokerRequest) -> ManagedBroker:
        """Starts the broker, or connects to the user's."""
        return resolve_name(self.broker)(request)
