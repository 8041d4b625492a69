"""Figures of a trial's reads and commits, with one implementation for the live view and the result.

`metrics.trial_log` adds new records. Frequently used figures are updated incrementally. The others take one NumPy
pass over a column with one number per read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from streamgauge.core.arrays import Int64s
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.records import Commit
from streamgauge.transports.spi import Chunk, Delivery

Moments = Int64s | int

Events: TypeAlias = "array[int]"
"""Time, number of events and batch of one read, then of the next, in any order."""
Batch = tuple[str, int]
"""(query, its batch's number)."""
Reader = tuple[str, int]
"""(query, number of its reader of the stream)."""
ReaderPartition = tuple[int, str, int]
"""(partition, stream, number of the query's reader): each has its own offset."""


@dataclass(slots=True)
class BatchTimes:
    """The times of one batch, microseconds; 0 if unknown.

    - `end_us`: the event time up to which it read.
    - `from_us`, `read_us`: the event time and the time of its first read, without redeliveries.
    - `committed_us`: the commit of its last sink.
    - `results_until_us`: the largest event time among its results.
    """

    end_us: int = 0
    from_us: int = 0
    read_us: int = 0
    committed_us: int = 0
    results_until_us: int = 0


class OnlineMetrics:
    """Sums and columns of all records so far. They only grow.

    A reader of a stream owes all partitions in which the plan has events of it, also those that it never read.

    Args:
        plan: the plan of the events.
        unread: the streams that no query has read, if other queries have figures of their own.
    """

    def __init__(self, plan: Plan, unread: set[str] | None = None) -> None:
        self._plan, self._start_us = plan, plan.start_us
        self.unread = {stream.name for stream in plan.streams} if unread is None else unread
        self.offered_events = 0
        self.chunk_us_max = 0
        self.reread_events = 0
        self.shared_events: Counter[str] = Counter()
        self.batches: dict[Batch, BatchTimes] = defaultdict(BatchTimes)
        self._delivered: dict[tuple[str, int], Events] = defaultdict(_no_events)
        self._taken: dict[str, dict[Reader, dict[int, Events]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(_no_events))
        )
        self._committed: dict[str, list[Batch]] = defaultdict(list)
        self._reached: dict[str, dict[ReaderPartition, _Reached]] = defaultdict(dict)

    @cached_property
    def _first_us(self) -> dict[tuple[int, str], int]:
        """The time of the first event of each (partition, stream) that has events."""
        plan = self._plan
        return {
            (partition, stream.name): int(plan.event_times(number, partition, 0, 1)[0])
            for number, stream in enumerate(plan.streams)
            for partition in range(plan.partitions)
            if plan.count_before(number, partition, plan.end_us)
        }

    def add_chunks(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self.offered_events += chunk.events
            self.chunk_us_max = max(self.chunk_us_max, chunk.to_us - chunk.from_us)

    def add_reads(self, parts: Iterable[Delivery], partition: int = 0) -> None:
        for part in parts:
            self._place(part, partition).add(part.batch, part.to_us)
            batch = self.batches[part.query, part.batch]
            batch.end_us = max(batch.end_us, part.to_us)
            taken = self._taken[part.stream][part.query, part.reader][partition]
            if part.again:
                self.reread_events += part.events
            else:
                batch.from_us = min(batch.from_us, part.from_us) if batch.read_us else part.from_us
                batch.read_us = min(batch.read_us or part.when_us, part.when_us)
                taken.extend((part.when_us, part.events, part.batch))
            if part.shared:
                self.shared_events[part.stream] += part.events
            if part.first:
                self._delivered[part.stream, partition].extend((part.ingest_us, part.events, part.batch))

    def _place(self, part: Delivery, partition: int) -> _Reached:
        """The place of a read. The first read of a reader adds its places in all partitions with events."""
        places, stream, reader = self._reached[part.query], part.stream, part.reader
        if (partition, stream, reader) not in places:
            self.unread.discard(stream)
            with_events = (number for number, name in self._first_us if name == stream)
            for number in (partition, *with_events):
                places.setdefault((number, stream, reader), _Reached(self._first_us.get((number, stream), 0)))
        return places[partition, stream, reader]

    def add_commits(self, commits: Iterable[Commit]) -> None:
        for commit in commits:
            number = (commit.query, commit.batch)
            insort(self._committed[commit.sink], number)
            batch = self.batches[number]
            batch.committed_us = max(batch.committed_us, commit.committed_us)
            batch.results_until_us = max(batch.results_until_us, commit.frontier_us)

    def delivered_by(self, moments_us: Moments, stream: str | None = None) -> Int64s:
        """Events first delivered before each moment."""
        logs = (log for (name, _), log in self._delivered.items() if stream in (None, name))
        return _sum((_before(*_columns([log])[:2], moments_us) for log in logs), moments_us)

    def delivered_between(self, from_us: int, to_us: int) -> float:
        """Events first delivered in a span, with each delivery spread over the time since the previous one.

        A span has no whole number of batches. Without the spreading, the count would be off by a few per cent,
        depending on where the ends of the span fall.
        """
        logs = self._delivered.values()
        return float(sum(spread(*_columns([log])[:2], self._start_us, from_us, to_us) for log in logs))

    def taken_by(self, moments_us: Moments) -> Int64s:
        """Events that the slowest reader of their stream had read before each moment."""
        return _sum(self._of_slowest(lambda logs, _: _before(*_columns(logs)[:2], moments_us)), moments_us)

    def taken_events(self) -> int:
        return int(self.taken_by(FAR_FUTURE_US))

    def committed_by(self, moments_us: Moments) -> Int64s:
        """Events that the slowest reader of their stream had committed before each moment."""
        return _sum(
            self._of_slowest(lambda logs, query: _before(*self._commits_of(logs, query), moments_us)), moments_us
        )

    def committed_of(self, stream: str, partition: int, moments_us: Int64s) -> Int64s:
        """Events of one partition that the slowest reader of the stream had committed before each moment."""
        counts = [
            _before(*self._commits_of([logs[partition]] if partition in logs else [], query), moments_us)
            for (query, _), logs in self._taken.get(stream, {}).items()
        ]
        return np.min(counts, axis=0) if counts else np.zeros_like(moments_us)

    def committed_between(self, from_us: int, to_us: int) -> float:
        """Committed events of a span, with each commit spread as in `delivered_between`."""
        span = (self._start_us, from_us, to_us)
        return float(sum(self._of_slowest(lambda logs, query: spread(*self._commits_of(logs, query), *span))))

    def furthest(self, sink: str) -> list[int]:
        """The ascending event times up to which the sink's last two committed batches had read every partition.

        Fewer at first.
        """
        return [self.reached_by(batch) for batch in self._furthest(sink)]

    def read_everywhere(self, sink: str) -> int:
        """The event time up to which the sink's last but one committed batch had read every partition and stream.

        Without a common frontier each has its own pace. 0 before the second batch.
        """
        best = self._furthest(sink)
        if len(best) < 2:
            return 0
        return min(self.ends_by(best[0]).values())

    def reached_by(self, batch: Batch) -> int:
        """The event time up to which a batch and its predecessors had read every place of their query."""
        query, number = batch
        unread = (self._first_us[place] for place in self._unread_places())
        # Before its first event a place holds nothing back.
        read = (max(place.by(number), place.first_us) for place in self._reached[query].values())
        return min(*read, *unread, FAR_FUTURE_US)

    def ends_by(self, batch: Batch) -> dict[ReaderPartition, int]:
        """The event time up to which a batch and its predecessors had read each place; 0 for places not read yet.

        A stream that no query has read yet counts as one of every query.
        """
        query, number = batch
        unread = {(*place, 0): 0 for place in self._unread_places()}
        return unread | {place: reached.by(number) for place, reached in self._reached.get(query, {}).items()}

    def _unread_places(self) -> list[tuple[int, str]]:
        return [place for place in self._first_us if place[1] in self.unread] if self.unread else []

    def ends_of(self, batch: Batch) -> set[int]:
        """The event times at which a batch ended, over the places that it read."""
        query, number = batch
        return {place.by(number) for place in self._reached.get(query, {}).values() if number in place}

    def firsts(self) -> Iterator[tuple[Batch, BatchTimes]]:
        """The batches with reads other than redeliveries."""
        return ((number, batch) for number, batch in self.batches.items() if batch.read_us)

    def _furthest(self, sink: str) -> list[Batch]:
        latest = (batch for batch in reversed(self._committed[sink]) if self.batches[batch].end_us)
        return [batch for batch, _ in zip(latest, range(2), strict=False)][::-1]

    def _commits_of(self, logs: Collection[Events], query: str) -> tuple[Int64s, Int64s]:
        """Commit times of a reader's batches with their events, without uncommitted ones."""
        _, events, batches = _columns(logs)
        when_us = np.array([self.batches[query, batch].committed_us for batch in batches.tolist()], np.int64)
        return when_us[when_us > 0], events[when_us > 0]

    def _of_slowest(self, count: Callable[[Collection[Events], str], Any]) -> Iterator[Any]:
        """The least count among the readers of each stream, over all partitions."""
        for readers in self._taken.values():
            yield np.min([count(logs.values(), query) for (query, _), logs in readers.items()], axis=0)


def _no_events() -> Events:
    return array("q")


class _Reached:
    """The event time up to which one place was read, by batch. It includes earlier batches, so it never falls.

    Args:
        first_us: the time of the place's first event.
    """

    def __init__(self, first_us: int) -> None:
        self.first_us = first_us
        self._batches, self._ends_us = array("q"), array("q")

    def __contains__(self, batch: int) -> bool:
        at = bisect_left(self._batches, batch)
        return at < len(self._batches) and self._batches[at] == batch

    def add(self, batch: int, end_us: int) -> None:
        at = bisect_left(self._batches, batch)
        if batch not in self:
            self._batches.insert(at, batch)
            self._ends_us.insert(at, self._ends_us[at - 1] if at else 0)
        while at < len(self._ends_us) and self._ends_us[at] < end_us:
            self._ends_us[at] = end_us
            at += 1

    def by(self, batch: int) -> int:
        """The end of what was read by a batch; 0 before the first read."""
        at = bisect_right(self._batches, batch)
        return self._ends_us[at - 1] if at else 0


def _columns(logs: Collection[Events]) -> tuple[Int64s, Int64s, Int64s]:
    """Times, numbers of events, and batches of several logs, one after the other."""
    when_us, events, batches = np.concatenate([np.zeros(0, np.int64), *logs]).reshape(-1, 3).T
    return when_us, events, batches


def _sum(counts: Iterable[Int64s], moments_us: Moments) -> Int64s:
    return sum(counts, np.zeros_like(moments_us))


def _before(when_us: Int64s, events: Int64s, moments_us: Moments) -> Int64s:
    """The number of events before each moment."""
    order = np.argsort(when_us, kind="stable")
    reached = np.concatenate([[0], np.cumsum(events[order])])
    return np.asarray(reached[np.searchsorted(when_us[order], moments_us)], np.int64)


def spread(when_us: Int64s, events: Int64s, start_us: int, from_us: int, to_us: int) -> float:
    """The number of events in [from_us, to_us), if those of each moment are spread evenly since the previous moment.

    The first moment's are spread since `start_us`. After the last moment there are no events.
    """
    if not when_us.size:
        return 0.0
    moments, place = np.unique(when_us, return_inverse=True)
    reached = np.cumsum(np.bincount(place, events))
    since_us = np.concatenate([[0], moments - start_us])
    low, high = np.interp([from_us - start_us, to_us - start_us], since_us, np.concatenate([[0], reached]))
    return float(high - low)
