"""What a broker's log says of a trial: deliveries by offset, and append times of a sample of the results.

A broker does not report deliveries. So the engine reports the end offsets of each batch, and the recorder stamps when
the batch began. A generator's n-th event is at offset n of its partition, so offsets and planned times determine each
other.

The broker stamps a whole batch of messages at once, in milliseconds. The times are rounded up.
"""

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, partitions_of, sequences_of
from streamgauge.loadgen.plan import Plan
from streamgauge.stats.samples import stratified_indices
from streamgauge.transports.delivery_log import ReadLog
from streamgauge.transports.spi import Delivery, ManagedBroker, OutputProgress, ReadPosition, StreamPartition


@dataclass(frozen=True)
class _Segment:
    """A plan, the offset of its first event of a place, and how many events were `sent` before the next plan."""

    first: int
    plan: Plan
    sent: float = math.inf

    def before(self, place: StreamPartition, when_us: int) -> int:
        """The number of sent events before an event time. Generators may halt before a plan's end."""
        stream, partition = place
        return int(min(self.plan.count_before(self.plan.number_of(stream), partition, when_us), self.sent))


class _Reader:
    """The position of a reader of a place: the end of its last batch."""

    def __init__(self) -> None:
        self._batch, self._from, self.to_offset = -1, 0, 0

    def begin(self, read: ReadPosition) -> int:
        """The start offset of a batch: the end of the batch before. A repeated batch starts where it did before."""
        if read.batch != self._batch:
            self._batch, self._from = read.batch, self.to_offset
        self.to_offset = max(self.to_offset, read.to_offset)
        return self._from


class Offsets:
    """Converts the reads of batches to deliveries, by partition, over all plans of a test bed."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._segments: dict[StreamPartition, list[_Segment]] = {}
        self._reads: dict[StreamPartition, ReadLog] = {}
        self._readers: dict[tuple[StreamPartition, str, int], _Reader] = {}

    def begin(self, plan: Plan, positions: Sequence[Mapping[str, int]]) -> None:
        """Starts the next plan; `positions` has the offset of each stream's next event, for each partition."""
        for partition, of_stream in enumerate(positions):
            for stream, offset in of_stream.items():
                segments = self._segments.setdefault((stream, partition), [])
                if segments:
                    segments[-1] = replace(segments[-1], sent=offset - segments[-1].first)
                segments.append(_Segment(offset, plan))

    def deliveries(self, reads: Iterable[ReadPosition]) -> list[list[Delivery]]:
        """The deliveries of each partition, in the order of the reads."""
        by_partition: list[list[Delivery]] = [[] for _ in range(self._partitions)]
        for read in reads:
            place = (read.stream, read.partition)
            from_offset = self._readers.setdefault((place, read.query, read.reader), _Reader()).begin(read)
            if from_offset >= read.to_offset:
                continue
            from_us, to_us = (self._time_of(place, offset) for offset in (from_offset, read.to_offset))
            log = self._reads.setdefault(place, ReadLog(read.stream))
            parts = log.note(from_us, to_us, read.batch, (read.query, read.reader), read.when_us)
            if parts:
                # The number of the event at that offset in its plan.
                number = read.to_offset - self._segment_at(place, read.to_offset).first
                parts[-1] = replace(parts[-1], to_sequence=number)
            by_partition[read.partition] += [
                replace(part, events=self._events(place, part.from_us, part.to_us)) for part in parts
            ]
        return by_partition

    def reads_of(self, reached: Iterable[OutputProgress]) -> list[ReadPosition]:
        """Reads of every stream, inferred from results. Each query is the only reader of its streams."""
        return [
            ReadPosition(
                one.query,
                0,
                one.batch,
                stream,
                partition,
                self._offset_of((stream, partition), one.until_us),
                one.when_us,
            )
            for one in reached
            for stream, partition in self._segments
        ]

    def samples(self, from_us: int, to_us: int, each: int) -> Iterator[tuple[StreamPartition, list[int], list[int]]]:
        """(place, offsets, event times) of a sample of the last plan's events in [from_us, to_us).

        The sample has one random event of each of `each` equal parts. With a fixed step, it could always meet the
        first event of a chunk.
        """
        for place, segments in self._segments.items():
            segment, partition = segments[-1], place[1]
            stream, plan = segment.plan.number_of(place[0]), segment.plan
            first, last = (plan.count_before(stream, partition, when) for when in (from_us, to_us))
            numbers = [first + one for one in stratified_indices(last - first, each).tolist()]
            times = [int(plan.event_times(stream, partition, number, number + 1)[0]) for number in numbers]
            yield place, [segment.first + number for number in numbers], times

    def first_of(self, place: StreamPartition) -> int:
        """The offset of the first event of the last plan in a place."""
        return self._segments[place][-1].first

    def forget(self, before_us: int) -> None:
        """Drops reads before `before_us`, because the cost of a read grows with the number of remembered reads."""
        for log in self._reads.values():
            log.forget(before_us)

    def reached_us(self) -> list[int]:
        """For each partition, the event time up to which every reader has read every stream.

        By the last plan: a reader that has read everything of an earlier one is at the first event of the last, which
        may be due long after those of other streams. A stream that was never read waits from its first event on.
        """
        read = [(place, reader.to_offset) for (place, _, _), reader in self._readers.items()]
        known = {place for place, _ in read}
        unread = [(place, segments[0].first) for place, segments in self._segments.items() if place not in known]
        return [
            min((self._time_of(*one) for one in (*read, *unread) if one[0][1] == partition), default=0)
            for partition in range(self._partitions)
        ]

    def _segment_at(self, place: StreamPartition, offset: int) -> _Segment:
        segments = self._segments[place]
        return segments[max(0, bisect.bisect_right(segments, offset, key=lambda one: one.first) - 1)]

    def _time_of(self, place: StreamPartition, offset: int) -> int:
        """The event time (exclusive) of everything before that offset."""
        segment = self._segment_at(place, offset)
        stream, number = segment.plan.number_of(place[0]), offset - segment.first
        if number >= segment.plan.count_before(stream, place[1], segment.plan.end_us):
            return segment.plan.end_us
        return int(segment.plan.event_times(stream, place[1], number, number + 1)[0])

    def _offset_of(self, place: StreamPartition, until_us: int) -> int:
        """The offset of the first event at or after `until_us`."""
        segments = self._segments[place]
        segment = segments[max(0, bisect.bisect_right(segments, until_us, key=lambda one: one.plan.start_us) - 1)]
        return segment.first + segment.before(place, until_us)

    def _events(self, place: StreamPartition, from_us: int, to_us: int) -> int:
        return sum(segment.before(place, to_us) - segment.before(place, from_us) for segment in self._segments[place])


SAMPLES_MAX = 20_000
"""The largest sample of the results that arrived since the span began."""


@dataclass(frozen=True)
class AppendTimes:
    """Append times of n results, microseconds (n,): `event_us` of the event, `result_us` of the result.

    `rows` are the results without their emission time.
    """

    rows: pa.Table
    event_us: Int64s
    result_us: Int64s


def append_times(
    broker: ManagedBroker, offsets: Offsets, stream: str, sink: str, from_us: int, to_us: int
) -> AppendTimes | None:  # fmt: skip
    """Append times for results of one stream's events in [from_us, to_us). None without such results.

    Raises:
        DriverError: the broker does not answer.
    """
    rows = broker.results(from_us, lambda count: stratified_indices(count, SAMPLES_MAX).tolist()).get(sink)
    if rows is None:
        return None
    times = rows[EVENT_TIME]
    rows = rows.filter(pc.and_(pc.greater_equal(times, from_us), pc.less(times, to_us)))
    if not len(rows):
        return None
    event_ids = np.asarray(rows[EVENT_ID])
    event_us, partitions, sequences = np.zeros_like(event_ids), partitions_of(event_ids), sequences_of(event_ids)
    # The broker is asked once per partition, for distinct events.
    for partition in np.unique(partitions).tolist():
        of_partition = partitions == partition
        distinct, places = np.unique(sequences[of_partition], return_inverse=True)
        event_offsets = (offsets.first_of((stream, partition)) + distinct).tolist()
        event_us[of_partition] = np.array(broker.appended_us(stream, partition, event_offsets), np.int64)[places]
    return AppendTimes(rows.drop_columns([EMISSION_TIME]), event_us, np.asarray(rows[EMISSION_TIME]))
