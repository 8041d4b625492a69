"""The generator process: offers the events of a plan to the outlets of a transport, which deliver them.

A process has a `Generator`, with its own outlet and thread, for each of its partitions. No other process writes those.

Open loop: the generator offers a chunk when it is due, whatever the reader does. Event times are those of the plan. A
late chunk is logged as late, never shifted. Events are made ahead of time, so making them adds no schedule delay.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa

from streamgauge.core.clock import Clock
from streamgauge.core.errors import StreamgaugeError
from streamgauge.loadgen.plan import MADE_US, Plan
from streamgauge.metrics.records import GeneratorReport
from streamgauge.system.child_processes import serve
from streamgauge.transports.outlet import Outlet, drained
from streamgauge.transports.registry import transport
from streamgauge.transports.spi import EndpointConfig, OutletConfig


@dataclass(frozen=True)
class GeneratorSettings:
    """The settings of one partition's generator."""

    endpoint: EndpointConfig
    outlet: OutletConfig
    clock: Clock
    columns: dict[str, list[str]]
    transport: str


class Stock:
    """Events of one partition of a plan, made ahead of time for several chunks at once.

    Making a batch has a large fixed cost, whatever its length. Chunks are slices of the batch, without a copy.
    `prepared` encodes a stream's events row by row, as the outlet offers them.
    """

    def __init__(
        self,
        plan: Plan,
        partition: int,
        columns: dict[str, list[str]],
        prepared: Callable[[str, pa.RecordBatch], pa.RecordBatch],
    ) -> None:
        self._plan, self._partition, self._columns, self._prepared = plan, partition, columns, prepared
        self._from_us = self._to_us = plan.start_us
        self._made: dict[str, tuple[int, pa.RecordBatch]] = {}

    def take(self, from_us: int, to_us: int) -> dict[str, pa.RecordBatch]:
        """The events of [from_us, to_us) of each stream."""
        if not self._made or from_us < self._from_us or to_us > self._to_us:
            self._make(from_us, max(to_us, from_us + MADE_US))
        batches = {}
        for index, stream in enumerate(self._plan.streams):
            base, batch = self._made[stream.name]
            first, last = self._sequences(index, from_us, to_us)
            batches[stream.name] = batch.slice(first - base, last - first)
        return batches

    def _make(self, from_us: int, to_us: int) -> None:
        self._from_us, self._to_us = from_us, to_us
        for index, stream in enumerate(self._plan.streams):
            first, last = self._sequences(index, from_us, to_us)
            batch = self._plan.batch(index, self._partition, first, last, self._columns[stream.name])
            self._made[stream.name] = (first, self._prepared(stream.name, batch))

    def _sequences(self, index: int, from_us: int, to_us: int) -> tuple[int, int]:
        count = self._plan.count_before
        return count(index, self._partition, from_us), count(index, self._partition, to_us)


class Segment:
    """One stretch of load: a plan, its end, and the event time of a chunk.

    - `end_us`: may change while the segment runs.
    - `pace_us`: the most event time that may wait for delivery. At this limit the plan pauses: a closed loop, only for
      measuring how much an engine drains. None: the open loop of every judged trial.
    """

    def __init__(self, plan: Plan, end_us: int, chunk_us: int, pace_us: int | None) -> None:
        self.plan, self.end_us, self.chunk_us, self.pace_us = plan, end_us, chunk_us, pace_us
        self.halted = Event()
        self.ended = False
        self.failed = ""


class Generator:
    """Owns the outlet and the thread that follows the plan."""

    def __init__(self, settings: GeneratorSettings) -> None:
        self._settings, self._clock = settings, settings.clock
        self._outlet: Outlet = transport(settings.transport).open_outlet(settings.endpoint, settings.outlet)
        self._segment: Segment | None = None
        self._thread: Thread | None = None

    def listen(self) -> dict[str, Any]:
        return {"location": self._outlet.location}

    def segment(self, plan: str, end_us: int, chunk_us: int, pace_us: int | None = None) -> dict[str, int]:
        """Ends the previous plan and starts to follow this one. Returns the outlet's positions between them."""
        self.halt()
        if self._thread is not None:
            # A chunk in flight still belongs to the positions before.
            self._thread.join()
        positions = self._outlet.positions()
        # An overflow of the previous trial must not count for this one.
        self._outlet.overflowed, self._outlet.memory_full_us = False, None
        self._segment = Segment(_load(plan), end_us, chunk_us, pace_us)
        self._thread = Thread(target=self._follow_safely, args=(self._segment,), daemon=True)
        self._thread.start()
        return positions

    def extend(self, end_us: int) -> None:
        if self._segment is not None:
            self._segment.end_us = end_us

    def halt(self) -> None:
        if self._segment is not None:
            self._segment.halted.set()

    def level(self, to_us: int) -> None:
        """Between two plans: moves the frontier to `to_us`, so the SUT can read what other generators offered."""
        if self._segment is not None and (from_us := self._outlet.frontier_us) < to_us:
            no_events = self._stock(self._segment.plan).take(from_us, from_us)
            self._outlet.offer(from_us, to_us, no_events, self._clock.now_us())

    def commit(self, before_us: int) -> None:
        self._outlet.commit(before_us)

    def mark_delivered(self, before_us: Sequence[int]) -> None:
        """Everything before these event times was read, one for each partition of the test bed."""
        self._outlet.mark_delivered(before_us[self._settings.outlet.partition])

    def positions(self) -> dict[str, int]:
        """The events sent so far, by stream."""
        return self._outlet.positions()

    def status(self) -> dict[str, Any]:
        """A `GeneratorReport` as JSON."""
        chunks, deliveries = self._outlet.drain_logs()
        segment = self._segment
        return GeneratorReport(
            frontier_us=self._outlet.frontier_us,
            overflowed=self._outlet.overflowed,
            memory_full_us=self._outlet.memory_full_us,
            ended=segment is None or segment.ended,
            failed=segment.failed if segment else "",
            chunks=chunks,
            deliveries=deliveries,
            aborted_us=drained(self._outlet.aborted_us),
            delivering=self._outlet.delivering.news(),
            paused=segment is not None and self._is_ahead(segment, segment.chunk_us),
        ).to_json()

    def _follow_safely(self, segment: Segment) -> None:
        try:
            self._follow(segment)
        except Exception as error:
            segment.failed = f"{type(error).__name__}: {error}"
            if not isinstance(error, StreamgaugeError):
                raise
        finally:
            segment.ended = True

    def _follow(self, segment: Segment) -> None:
        from_us, stock = segment.plan.start_us, self._stock(segment.plan)
        while from_us < segment.end_us and not segment.halted.is_set():
            to_us = min(from_us + segment.chunk_us, segment.end_us)
            batches = stock.take(from_us, to_us)
            self._clock.sleep_until(to_us)
            if any(batch.num_rows for batch in batches.values()):
                while not segment.halted.is_set() and self._is_ahead(segment, to_us - from_us):
                    segment.halted.wait(0.005)
            if segment.halted.is_set():
                return
            self._outlet.offer(from_us, to_us, batches, self._clock.now_us())
            from_us = to_us

    def _is_ahead(self, segment: Segment, chunk_us: int) -> bool:
        """Whether the pace allows no further chunk. A chunk behind which nothing waits is always allowed."""
        if segment.pace_us is None:
            return False
        waiting_us = self._outlet.waiting_us()
        return waiting_us > 0 and waiting_us + chunk_us > segment.pace_us

    def _stock(self, plan: Plan) -> Stock:
        columns = {name: [*own, *self._outlet.extra_columns(name)] for name, own in self._settings.columns.items()}
        return Stock(plan, self._settings.outlet.partition, columns, self._outlet.prepared)


def _load(path: str) -> Any:
    # The runner that started this process wrote it into its private folder. It never comes from a socket.
    return pickle.loads(Path(path).read_bytes())


REQUESTS = ("listen", "segment", "extend", "halt", "level", "commit", "mark_delivered", "positions", "status")
"""The requests that a process passes to the generator of each of its partitions."""


def requests(generators: Sequence[Generator]) -> dict[str, Callable[..., list[Any]]]:
    """The requests of a process: each is answered by a list, with an item for each of its partitions."""

    def ask_all(name: str, **arguments: Any) -> list[Any]:
        return [getattr(each, name)(**arguments) for each in generators]

    return {name: partial(ask_all, name) for name in REQUESTS}


def main() -> None:
    path = sys.argv[1]
    serve(requests([Generator(each) for each in _load(path)]), scratch=Path(path).parent)


if __name__ == "__main__":
    main()
