"""What the delivery log says after a trial: when events were published and delivered, and where batches ended.

With a common frontier a batch ends at the same event time in all partitions and streams of its query. Otherwise each
partition has its own pace, and one that a batch does not read stays where earlier batches left it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

import numpy as np

from streamgauge.core.arrays import Int64s
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.transports.spi import Delivery, StreamPartition

IngestTimes = Callable[[str, int, Int64s], Int64s]
"""From a stream, a partition and ascending event times (n,) to the first delivery of each event; 0 for events that were
never delivered.
"""


def ingest_times(trial_log: TrialLog) -> IngestTimes:
    """The ingest times of the delivery log."""
    tables = {
        place: ends_and_stamps((part for part in parts if part.first), attrgetter("ingest_us"))
        for place, parts in reads_by_place(trial_log).items()
    }
    return lambda stream, partition, times: stamps_of(*tables.get((stream, partition), NO_READS), times)


NO_READS: tuple[Int64s, Int64s] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
"""The ends and stamps of a place that was never read."""


def reads_by_place(trial_log: TrialLog) -> dict[StreamPartition, list[Delivery]]:
    """The deliveries of each partition of each stream, by event time."""
    places: dict[StreamPartition, list[Delivery]] = defaultdict(list)
    for partition, log in enumerate(trial_log.deliveries):
        for part in sorted(log, key=attrgetter("from_us")):
            places[part.stream, partition].append(part)
    return places


def ends_and_stamps(
    parts: Iterable[Delivery], stamp: Callable[[Delivery], int], end: Callable[[Delivery], int] = attrgetter("to_us")
) -> tuple[Int64s, Int64s]:
    """The end and the stamp of each read of one place, in the order of the reads."""
    table = np.array([(end(part), stamp(part)) for part in parts], np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


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
    chunks = sorted((chunk.from_us, chunk.published_us) for log in trial_log.chunks for chunk in log)
    published = dict(chunks if by_all else reversed(chunks))  # of one start the last pair counts
    starts, stamps = np.array(sorted(published.items()) or [(0, 0)], np.int64).T
    return lambda times: stamps[np.clip(np.searchsorted(starts, times, side="right") - 1, 0, len(stamps) - 1)]


def cuts(trial_log: TrialLog) -> tuple[list[int], int]:
    """The ascending event times at which all readers of a committed batch ended, and the number of batches without one.

    For one sink's log. The results of a batch without a common end are due at the next of these times.
    """
    reached = [trial_log.running.ends_of((commit.query, commit.batch)) for commit in trial_log.commits]
    return sorted(end for each in reached if len(each) == 1 for end in each), sum(len(each) > 1 for each in reached)


def read_skew_us(trial_log: TrialLog, from_us: int, to_us: int, across_streams: bool = False) -> int:
    """The largest event-time distance between a read event and an earlier unread one of its stream.

    Compared after each batch of the span, because partitions without a common frontier differ. 0 if there was none.
    `across_streams`: the earlier one may be of another stream, which a union puts under the same watermark.
    """
    logs: dict[tuple[str, str], dict[StreamPartition, list[Delivery]]] = defaultdict(lambda: defaultdict(list))
    for partition, log in enumerate(trial_log.deliveries):
        for part in log:
            logs[part.query, "" if across_streams else part.stream][part.stream, partition].append(part)
    return max((_skew_us(trial_log.plan, of, from_us, to_us) for of in logs.values() if len(of) > 1), default=0)


def _skew_us(plan: Plan, logs: Mapping[StreamPartition, list[Delivery]], from_us: int, to_us: int) -> int:
    ends = {
        place: {part.batch: part.to_us for part in sorted(log, key=lambda part: (part.batch, part.to_us))}
        for place, log in logs.items()
    }
    when_us = {part.batch: part.when_us for log in logs.values() for part in log}
    so_far, most_us = dict.fromkeys(logs, 0), 0
    for batch in sorted(when_us):
        so_far = {place: max(end, ends[place].get(batch, 0)) for place, end in so_far.items()}
        if from_us <= when_us[batch] < to_us and min(so_far.values()):
            latest_us = max(
                plan.last_before(plan.number_of(stream), partition, end) or 0
                for (stream, partition), end in so_far.items()
            )
            most_us = max(most_us, latest_us - min(so_far.values()))
    return most_us
