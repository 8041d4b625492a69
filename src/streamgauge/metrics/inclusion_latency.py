"""How long events of a running aggregate waited until a result included them: `until_counted`.

The latency of an update counts from its newest event. Of a frequent key, that event came just before its batch was
read, so the waiting of all other events is in no update's latency. Here every event of a batch counts, until the
batch's results had come.

The delivery log knows which batch took which events, and the plan when each was due; the system is not consulted.
Events are counted in blocks, all of them. No row waits inside the system: a running aggregate reads rows as they come
(`dataflow.schema`), and a user job with updates gives in each batch what the batch has changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from streamgauge.core.arrays import Int64s
from streamgauge.metrics.delivery_times import ends_and_stamps, stamps_of
from streamgauge.metrics.event_latency import Kind, SinkLatencies, summary
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.live_figures import Batch
from streamgauge.metrics.records import Commit
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.latency import Latency
from streamgauge.transports.spi import Delivery, StreamPartition

BLOCK_EVENTS = 1 << 20
"""Looked at together: a few arrays of 8 MiB."""
ONE_BY_ONE = "until_counted: not given, since every event gives an update of its own, which counts from it"
NO_BATCHES = "not known: no batch of the engine names the events that it took in"


@dataclass(frozen=True)
class InclusionTimes:
    """Latency of all events of the span until a result includes them; if unknown, `latency.note` has the reason.

    `latency` is None if the figure does not apply, and `note` has the reason.
    """

    latency: Latency | None = None
    histogram: Histogram | None = None
    note: str = ""

    def beside(self, found: SinkLatencies) -> SinkLatencies:
        """The sink's latencies with this figure added."""
        notes = (*found.latencies.notes, *([self.note] if self.note else []))
        latencies = found.latencies.model_copy(update={"until_counted_us": self.latency, "notes": notes})
        if self.histogram is None:
            return found._replace(latencies=latencies)
        return found._replace(
            latencies=latencies,
            negatives=found.negatives + self.histogram.n_negative,
            histograms={**found.histograms, "until_counted": self.histogram},
        )


def inclusion_times_of(record: TrialRecord, kind: Kind, streams: Collection[str], in_batches: bool) -> InclusionTimes:
    """The figure of a flow's only sink; none if its results are not updates.

    `in_batches`: the engine gives results batch by batch, not one for each event.
    """
    if kind != "update":
        return InclusionTimes()
    return inclusion_latency(record, streams) if in_batches else InclusionTimes(note=ONE_BY_ONE)


def inclusion_latency(record: TrialRecord, streams: Collection[str]) -> InclusionTimes:
    """The latency of these streams' events that were due in the measured span and offered.

    An event that no committed batch had taken by the deadline counts as a lower bound, like a missing result.
    """
    times = InclusionLatency(record.trial_log)
    if not times.known:
        return InclusionTimes(Latency(note=NO_BATCHES))
    tally = _Tally(record.deadline_us)
    for place, event_times_us in _events(record, streams):
        tally.add(event_times_us, times.times_of(place, event_times_us))
    latency = summary(tally.whole, len(tally.batches)).model_copy(update={"lower_bounds": tally.missing})
    return InclusionTimes(latency, tally.whole)


def results_us(commit: Commit) -> int:
    """When all results of a batch had come: the last row, or the commit of a batch that changed nothing."""
    return commit.emitted_us if commit.rows else commit.committed_us


class InclusionLatency:
    """When each event was included: a function of stream, partition and event time, from one sink's log."""

    def __init__(self, trial_log: TrialLog) -> None:
        came_us = {(commit.query, commit.batch): results_us(commit) for commit in trial_log.commits}
        self._readers = {
            (stream, partition): _reads(trial_log, stream, partition, came_us)
            for partition, log in enumerate(trial_log.deliveries)
            for stream in {part.stream for part in log}
        }

    @property
    def known(self) -> bool:
        """Whether the log names the events of any batch whose results came."""
        return any(stamps.any() for readers in self._readers.values() for _, stamps in readers)

    def times_of(self, place: StreamPartition, event_times_us: Int64s) -> Int64s:
        """When events (n,) with ascending times were included in results; 0 if never.

        If a query reads a stream at several places, an event is included once the last of them has read it.
        """
        found = [stamps_of(ends, stamps, event_times_us) for ends, stamps in self._readers.get(place, ())]
        if not found:
            return np.zeros(event_times_us.size, np.int64)
        return np.where(np.all(found, axis=0), np.max(found, axis=0), 0)


def _reads(trial_log: TrialLog, stream: str, partition: int, came_us: dict[Batch, int]) -> list[tuple[Int64s, Int64s]]:
    """For each reader of the sink's queries: the ends of its reads of a place, and when each was in results."""
    queries = {query for query, _ in came_us}
    readers: dict[int, list[Delivery]] = defaultdict(list)
    for part in trial_log.deliveries[partition]:
        if part.stream == stream and part.query in queries and not part.again:
            readers[part.reader].append(part)
    return [ends_and_stamps(parts, lambda part: came_us.get((part.query, part.batch), 0)) for parts in readers.values()]


def _events(record: TrialRecord, streams: Collection[str]) -> Iterator[tuple[StreamPartition, Int64s]]:
    """Event times of the span's events, block by block."""
    plan, low_us = record.trial_log.plan, record.spans.measured_from_us
    high_us = max(low_us, min(record.spans.measured_to_us, record.offered_until()))
    wanted = [(number, stream.name) for number, stream in enumerate(plan.streams) if stream.name in streams]
    for number, name in wanted:
        for partition in range(plan.partitions):
            first, last = (plan.count_before(number, partition, when_us) for when_us in (low_us, high_us))
            for start in range(first, last, BLOCK_EVENTS):
                end = min(start + BLOCK_EVENTS, last)
                yield (name, partition), plan.event_times(number, partition, start, end)


@dataclass
class _Tally:
    """Everything counted so far. The time at which results had come identifies their batch."""

    deadline_us: int
    whole: Histogram = field(default_factory=Histogram)
    batches: set[int] = field(default_factory=set)
    missing: int = 0

    def add(self, event_times_us: Int64s, counted_us: Int64s) -> None:
        came = counted_us > 0
        self.whole.add(np.where(came, counted_us, self.deadline_us) - event_times_us)
        self.missing += int(np.count_nonzero(~came))
        borders = np.flatnonzero(np.diff(counted_us, prepend=-1))
        self.batches.update(set(counted_us[borders].tolist()) - {0})
