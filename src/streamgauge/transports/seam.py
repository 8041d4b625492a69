"""The seam that every transport fills: what the driver does with it, and what it counts.

Offsets are times. In a plan, offset and time are functions of each other, so a position in a partition is written as
the event time up to which (exclusive) everything was taken: exact, small, and the same for every partition and stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from streamgauge.errors import StreamgaugeError


class Overflow(StreamgaugeError):
    """The queue's bound was reached: the SUT took too little for too long."""


@dataclass(frozen=True)
class Edge:
    """Where a SUT finds one end of the transport, and the token that opens it."""

    location: str
    token: str


@dataclass(frozen=True)
class Chunk:
    """One hand-over to the queue: events of [from_us, to_us) became available at `published_us`."""

    from_us: int
    to_us: int
    events: int
    published_us: int


@dataclass(frozen=True)
class HandOut:
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


class Queue(Protocol):
    """The driver's side of a transport, in one generator process."""

    def offer(self, from_us: int, to_us: int, batches: dict[str, Any], published_us: int) -> None:
        """Make the events of [from_us, to_us) of every stream available; raises Overflow at the bound."""

    def frontier(self) -> int:
        """The event time that this generator has reached."""

    def take(
        self, stream: str, from_us: int, to_us: int, columns: tuple[str, ...], batch: int, query: str, reader: int
    ) -> Any:
        """The events of [from_us, to_us), in merged batches; the same again when asked again before `commit`."""

    def commit(self, before_us: int) -> None:
        """Forget what lies before `before_us`: nobody will ask for it again."""
