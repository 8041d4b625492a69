"""The times at which events were first delivered, and at which generators published them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from operator import attrgetter

import numpy as np

from streamgauge.core.arrays import Int64s
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.transports.spi import Delivery


class IngestTimes:
    """The first delivery of each event, by stream, partition and event time, from the delivery log."""

    def __init__(self, trial_log: TrialLog) -> None:
        self._trial_log = trial_log

    @cached_property
    def _tables(self) -> dict[tuple[str, int], tuple[Int64s, Int64s]]:
        tables = {}
        for partition, log in enumerate(self._trial_log.deliveries):
            for stream in {part.stream for part in log}:
                firsts = (part for part in log if part.stream == stream and part.first)
                tables[stream, partition] = ends_and_stamps(firsts, attrgetter("ingest_us"))
        return tables

    def times_of(self, stream: str, partition: int, event_times_us: Int64s) -> Int64s:
        """Ingest times for ascending event times; 0 for events that were never delivered."""
        ends, stamps = self._tables.get((stream, partition), (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        return stamps_of(ends, stamps, event_times_us)


def ends_and_stamps(parts: Iterable[Delivery], stamp: Callable[[Delivery], int]) -> tuple[Int64s, Int64s]:
    """The end and the stamp of each read of one place, by event time."""
    ordered = sorted(parts, key=attrgetter("from_us"))
    return np.array([part.to_us for part in ordered], np.int64), np.array([stamp(part) for part in ordered], np.int64)


def stamps_of(ends_us: Int64s, stamps: Int64s, event_times_us: Int64s) -> Int64s:
    """The stamp of the read with each event, for ascending event times (n,); 0 after the last read.

    Reads are contiguous, with ascending ends `ends_us` (m,) and `stamps` (m,).
    """
    if not event_times_us.size:
        return np.zeros(0, np.int64)
    # Searching the few ends among the many events is five times as fast as the reverse.
    first, last = np.searchsorted(ends_us, event_times_us[[0, -1]], side="right")
    borders = np.searchsorted(event_times_us, ends_us[first:last])
    counts = np.diff(borders, prepend=0, append=event_times_us.size)
    return np.repeat(np.append(stamps, 0)[first : last + 1], counts)


def handed_over(trial_log: TrialLog, by_all: bool = True) -> Callable[[Int64s], Int64s]:
    """A function from event times to the times at which that chunk could be read.

    `by_all`: only once the last generator has published it; else once the first has, since no partition waits for
    another one.
    """
    chunks = sorted({(c.from_us, c.to_us) for log in trial_log.chunks for c in log})
    published: dict[int, int] = {}
    for log in trial_log.chunks:
        for chunk in log:
            before_us = published.get(chunk.from_us, chunk.published_us)
            published[chunk.from_us] = (max if by_all else min)(before_us, chunk.published_us)
    starts = np.array([low for low, _ in chunks] or [0], np.int64)
    stamps = np.array([published[low] for low, _ in chunks] or [0], np.int64)
    return lambda times: stamps[np.clip(np.searchsorted(starts, times, side="right") - 1, 0, len(stamps) - 1)]
