"""The interface that every transport implements: its two ends on the driver's side, and what it counts.

An outlet stands beside each generator and hands events out; an inlet stands beside the recorder and takes results in.
The other sides, in the system under test, are the engine's own: it says in `Capabilities.transports` which it knows.

Offsets are times. In a plan, offset and time are functions of each other, so a position in a partition is written as
the event time up to which (exclusive) everything was taken: exact, small, and the same for every partition and stream.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamgauge.core.errors import StreamgaugeError
from streamgauge.transports.busy_time import BusyInterval

if TYPE_CHECKING:
    import pyarrow as pa


class Overflow(StreamgaugeError):
    """The queue's bound was reached: the SUT took too little for too long."""


def new_token() -> str:
    """A run's own: who does not have it gets nothing and brings nothing."""
    return secrets.token_urlsafe(24)


def new_run() -> str:
    """A word of a run's own, fit for names: what is called by it is nobody else's."""
    return secrets.token_hex(6)


@dataclass(frozen=True)
class EndpointConfig:
    """Where an end of the transport listens, the token that it asks for, and what was asked of the transport.

    An end that finds what stands between both does not listen, and looks where the options say.
    """

    host: str
    port: int
    token: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """Where a SUT finds one end of the transport, and the token that opens it."""

    location: str
    token: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """One hand-over to the queue: events of [from_us, to_us) became available at `published_us`."""

    from_us: int
    to_us: int
    events: int
    published_us: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """One read by the SUT: events of [from_us, to_us) of one stream, first handed out at `ingest_us`.

    `query` and `reader` say who read: a job may consist of several queries, and a query may read a stream at several
    places. `again` marks a re-read by the same reader; `shared` marks what only others had read before: work that the
    SUT does twice. Both carry the stamp of the first hand-out of all; `read_us`, where given, is when this read was.
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

    @property
    def first(self) -> bool:
        """Whether these events were handed out for the first time: only then they count as ingested."""
        return not (self.again or self.shared)

    @property
    def when_us(self) -> int:
        """When this read was."""
        return self.read_us or self.ingest_us


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a batch read one partition of a stream, by number of events, where the transport does not see reads.

    `when_us` is when the batch had begun. One that is begun anew is told of again.
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
    """The event time up to which, exclusive, results of a query show that it has read, where nothing else says so."""

    query: str
    batch: int
    until_us: int
    when_us: int


IndexSampler = Callable[[int], Sequence[int]]
"""Of so many things the numbers of some, which ascend."""


@dataclass(frozen=True)
class BrokerRequest:
    """What something that stands between both ends is told: the run's own word, what it carries, where it may write,
    which processors it may use (None: all), and what was asked of the transport.
    """

    run: str
    streams: tuple[str, ...]
    partitions: int
    folder: Path
    log: Path
    host: str
    cpus: tuple[int, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict)


class ManagedBroker(Protocol):
    """What stands between both ends for the time of a test bed, in processes of its own."""

    at: EndpointConfig
    """Where both ends find it."""

    @property
    def alive(self) -> bool:
        """Whether it still works."""

    def missing(self) -> str:
        """What it should hold and does not, in words; nothing where all of it is there. It may take a while."""

    def lost(self, sent: Sequence[Mapping[str, int]]) -> str:
        """Which partitions hold less than was sent there, in words; `sent` is, of each generator, how many events of
        each stream. What is still on its way is waited for.
        """

    def pids(self) -> list[int]:
        """Its processes."""

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        """When it had taken the events of a partition that have these numbers, by its own clock; nothing where that is
        another than ours. DriverError where it does not say.
        """

    def results(self, since_us: int, choose: IndexSampler) -> Mapping[str, pa.Table]:
        """Of each sink some of the results that it has taken since then: those whose numbers `choose` gives of so many.
        `emission_time` is when it had each, as with `appended_us`; nothing where its clock is another than ours, and
        where there is none. DriverError where it does not say.
        """

    def close(self) -> None:
        """End it; nothing of it is left."""


@dataclass(frozen=True)
class OutletConfig:
    """What an outlet holds: the streams' schemas, lineage included; at most `bound_us` of event time and `bytes_max`.

    `now_us` is the run's clock, `partition` the generator's number.
    """

    schemas: dict[str, pa.Schema]
    bound_us: int
    bytes_max: int
    now_us: Callable[[], int]
    partition: int = 0


class Outlet(Protocol):
    """One generator's end: events go out here, and are counted."""

    overflowed: bool
    memory_full_us: int | None
    """Of an overflow by bytes: the event time that waited to be handed out then, microseconds. None of any other."""

    @property
    def location(self) -> str:
        """Where the system under test finds it."""

    def prepared(self, stream: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Events as they will be offered, in parts, when their time has come: what can be done before is done here."""

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Make the events of [from_us, to_us) of every stream available; raises Overflow at the bound.

        Where there are none, only the frontier moves, and nothing is raised.
        """

    def waiting_us(self, to_us: int) -> int:
        """How much event time would wait to be handed out, were everything offered up to `to_us`."""

    def frontier(self) -> int:
        """The event time that this generator has reached."""

    def positions(self) -> dict[str, int]:
        """How many events of each stream were sent so far, where reads are known by number; else nothing."""

    def handed_out(self, before_us: int) -> None:
        """What lies before was read: told to an outlet that does not see reads."""

    def commit(self, before_us: int) -> None:
        """Forget what lies before `before_us`: nobody will ask for it again."""

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        """What was offered and what was handed out since the last call."""

    def drain_aborted(self) -> list[int]:
        """When readers cut a read off since the last call, microseconds."""

    def drain_handing_out(self) -> list[BusyInterval]:
        """When at least one reader waited for a hand-out since the last call."""


class Receiver(Protocol):
    """What an inlet calls; DriverError where results could not be kept, which their sender then hears."""

    def now_us(self) -> int:
        """The run's clock."""

    def receive(
        self, address: dict[str, Any], schema: pa.Schema, batches: Iterator[pa.RecordBatch], stamped: bool = False
    ) -> None:
        """One attempt's results for one sink; `address` is query, batch, partition, attempt, sink.

        Each row is stamped as it comes in here. `stamped`: the inlet did so before, in the column `emission_time`.
        """

    def read(
        self, query: str, batch: int, positions: list[tuple[str, int, int, int]], when_us: int | None = None
    ) -> None:
        """A batch has begun, once more where it is begun anew: (stream, reader, partition, offset) up to which it
        reads. Called where the transport itself does not see reads; at `when_us`, now where that is not given.
        """

    def reached(self, query: str, batch: int, until_us: int) -> None:
        """A batch's results show that its query has read all that lies before `until_us`, event time."""

    def fail(self, reason: str) -> None:
        """Nothing more can be taken in."""

    def commit(
        self, query: str, batch: int, accepted: list[list[int]], sinks: list[str], when_us: int | None = None
    ) -> bool:
        """The (partition, attempt) pairs of a batch that count; False where the batch was committed before. It was at
        `when_us`, now where that is not given.
        """


class Inlet(Protocol):
    """The recorder's end: results come in here."""

    @property
    def location(self) -> str:
        """Where the system under test finds it."""

    def close(self) -> None:
        """Take nothing more."""
