"""Figures of a trial that is still running, each kept up to date by what is new: no look goes through the logs again.

What a look costs still grows, little: it puts one sample a batch in order, and copies a column of numbers, one a read.
Fed by `run.journal`, which knows what is new; what is asked once, at the end, is computed there from the logs.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streamgauge.measure.records import Commit
from streamgauge.transports.seam import Chunk, HandOut

if TYPE_CHECKING:
    from streamgauge.load.plan import Plan

Ints = NDArray[np.int64]

Batch = tuple[str, int]
"""(query, its batch's number)."""
Place = tuple[str, int, str, int]
"""(query, partition, stream, which of the query's readers of it): what has an offset of its own."""
_BATCHES_KEPT = 50


class Running:
    """Sums and columns of all that was given; nothing is ever taken back."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.offered_events = 0
        self.chunk_us_max = 0
        self._read_at, self._read_to = array("q"), array("q")
        self._taken: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        self._ends: dict[Batch, int] = {}
        self._sinks_of: dict[Batch, list[str]] = defaultdict(list)
        self._furthest: dict[str, dict[Batch, int]] = defaultdict(dict)
        self._firsts: dict[Batch, tuple[int, int]] = {}
        self._peaks: dict[Batch, tuple[int, int]] = {}
        self._moved: set[Batch] = set()
        self._partitions = 1
        self._readers: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self._reaches: dict[Place, dict[int, int]] = defaultdict(dict)

    def add_chunks(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self.offered_events += chunk.events
            self.chunk_us_max = max(self.chunk_us_max, chunk.to_us - chunk.from_us)

    def add_reads(self, parts: Iterable[HandOut], partition: int = 0) -> None:
        self._partitions = max(self._partitions, partition + 1)
        for part in parts:
            self._place(part, partition)
            self._read_at.append(part.when_us)
            self._read_to.append(part.to_us)
            self._taken[part.stream][part.query, part.reader] += 0 if part.again else part.events
            batch = (part.query, part.batch)
            self._ends[batch] = max(self._ends.get(batch, 0), part.to_us)
            for sink in self._sinks_of.get(batch, ()):
                self._reach(sink, batch)
            if not part.again:
                since, when = self._firsts.get(batch, (part.from_us, part.when_us))
                self._firsts[batch] = (min(since, part.from_us), min(when, part.when_us))
                self._moved.add(batch)

    def add_commits(self, commits: Iterable[Commit]) -> None:
        for commit in commits:
            batch = (commit.query, commit.batch)
            self._sinks_of[batch].append(commit.sink)
            if batch in self._ends:
                self._reach(commit.sink, batch)

    def taken_events(self) -> int:
        """Events that every reader of their stream has had."""
        return sum(min(readers.values()) for readers in self._taken.values())

    def read_until(self, before_us: int) -> int:
        """The greatest event time up to which a read before then went; 0 where there was none."""
        ends = np.array(self._read_to, np.int64)[np.array(self._read_at, np.int64) < before_us]
        return int(ends.max(initial=0))

    def furthest(self, sink: str) -> list[int]:
        """The event times up to which the sink's two furthest committed batches, and those before them, had read every
        partition, ascending; fewer at first.
        """
        return sorted(self._reach_of(batch) for batch in self._furthest[sink])

    def read_everywhere(self, sink: str) -> int:
        """The event time up to which the sink's furthest committed batch but one, and those before it, had read every
        partition and stream: each goes at a pace of its own where there is no common frontier. 0 before a second one.
        """
        best = self._furthest[sink]
        if len(best) < 2:
            return 0
        query, last = min(best, key=best.__getitem__)
        return min(
            self._reach_by((query, partition, *reader), last)
            for partition in range(self._partitions)
            for reader in self._readers[query]
        )

    def peaks(self) -> list[tuple[int, int]]:
        """(time, events) of the backlog just before each batch's first hand-out, by time."""
        for batch in self._moved:
            since, when = self._firsts[batch]
            self._peaks[batch] = (when, self._plan.planned_events(max(since, self._plan.start_us), when))
        self._moved.clear()
        return sorted(self._peaks.values(), key=lambda pair: pair[0])

    def firsts(self) -> Iterable[tuple[Batch, tuple[int, int]]]:
        """Batches with the event time from which each one read, and when it began to."""
        return self._firsts.items()

    def end_of(self, batch: Batch) -> int:
        """The event time up to which a batch has read."""
        return self._ends[batch]

    def waits(self) -> list[tuple[int, int]]:
        """(time, event time in microseconds) that waited just before each batch's first hand-out, by time."""
        start_us = self._plan.start_us
        return sorted((when, max(0, when - max(since, start_us))) for since, when in self._firsts.values())

    def _place(self, part: HandOut, partition: int) -> None:
        reaches = self._reaches[part.query, partition, part.stream, part.reader]
        reaches[part.batch] = max(reaches.get(part.batch, 0), part.to_us)
        self._readers[part.query].add((part.stream, part.reader))
        if len(reaches) > 2 * _BATCHES_KEPT:
            # Nobody asks for so early a batch any more; one that did would learn that less was read, never more.
            early = sorted(reaches)[:-_BATCHES_KEPT]
            reaches[early[-1]] = max(reaches.pop(batch) for batch in early)

    def _reach_of(self, batch: Batch) -> int:
        """The event time up to which a batch, and those before it, had read wherever its query has read anything."""
        query, last = batch
        return min(self._reach_by(place, last) for place in self._reaches if place[0] == query)

    def _reach_by(self, place: Place, last: int) -> int:
        there = self._reaches.get(place, {})  # asking for a place that nobody has read makes it no place
        return max((to_us for batch, to_us in there.items() if batch <= last), default=0)

    def _reach(self, sink: str, batch: Batch) -> None:
        """Ends of batches only grow, so the two furthest so far are all that it takes."""
        best = self._furthest[sink]
        best[batch] = self._ends[batch]
        if len(best) > 2:
            del best[min(best, key=best.__getitem__)]
