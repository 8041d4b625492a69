"""The plan: event times and contents of the whole input. Any process can make any slice of the input from it.

Events of a stream have numbers n. An assignment says which numbers the sequences 0, 1, ... of a partition have: they
take turns (n % partitions), or partitions have the events whose keys hash to them. Numbers never fall within a
partition. The event time is start_us + floor(time_of(n / share) * 1e6). It does not depend on other events, and never
falls as n rises. So offset and event time determine each other.
Times are microseconds since the epoch. [first, last) is a slice of sequences.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.errors import Rule, require, require_all
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, arrow_type, event_id_base
from streamgauge.core.units import PARTITION_BITS, SEQUENCE_BITS, STREAM_BITS
from streamgauge.loadgen.fields import SHARES_RULE, FieldSpec, KeyByRate, RecordTime, StreamSpec, sum_to_one
from streamgauge.loadgen.random import BLOCK_EVENTS, TABLE_DOMAIN_MAX, Partitions, PhiloxBits, empty
from streamgauge.loadgen.rate_profile import RateProfile


class RoundRobin:
    """Event n goes to partition n modulo their number."""

    exact = True

    def __init__(self, partitions: int) -> None:
        self._step = partitions
        self.shares = np.full(partitions, 1 / partitions)

    def numbers(self, partition: int, first: int, last: int) -> Floats:
        return np.arange(first * self._step + partition, last * self._step + partition, self._step, dtype=np.float64)

    def count(self, partition: int, number: float) -> int:
        return max(-(-(int(number) - partition) // self._step), 0)


class ByKeyShare:
    """Each partition has the events whose keys hash to it, evenly spaced at its share of the rate.

    Partitions begin one after the other, so that their events do not come at the same times.
    """

    exact = False

    def __init__(self, shares: Floats) -> None:
        self.shares = shares
        self._phases = np.arange(len(shares)) / len(shares)

    def numbers(self, partition: int, first: int, last: int) -> Floats:
        return np.asarray((np.arange(first, last) + self._phases[partition]) / self.shares[partition])

    def count(self, partition: int, number: float) -> int:
        return max(math.ceil(number * self.shares[partition] - self._phases[partition]), 0)


class ByRow:
    """Event n is row n of a file, again from its beginning, and each row goes to one partition.

    `of_rows` has the partition of each row, shape (rows,).
    """

    exact = True

    def __init__(self, of_rows: Partitions, partitions: int) -> None:
        self._rows = [np.flatnonzero(of_rows == partition) for partition in range(partitions)]
        self._round = len(of_rows)
        self.shares = np.array([len(rows) / len(of_rows) for rows in self._rows])

    def numbers(self, partition: int, first: int, last: int) -> Floats:
        rounds, places = np.divmod(np.arange(first, last), len(self._rows[partition]))
        return (rounds * self._round + self._rows[partition][places]).astype(np.float64)

    def count(self, partition: int, number: float) -> int:
        rounds, row = divmod(max(int(number), 0), self._round)
        return rounds * len(self._rows[partition]) + int(np.searchsorted(self._rows[partition], row))


Assignment = RoundRobin | ByKeyShare | ByRow
"""How the events of one stream are split into partitions.

- `exact`: whether numbers are whole, and each of 0, 1, ... is that of exactly one event.
- `shares`: the share of the stream's events in each partition, shape (partitions,).
- `numbers`: the numbers of a partition's events [first, last), shape (last - first,).
- `count`: the number of a partition's events below a number; up to rounding, unless numbers are whole.
"""
BATCH_BYTES_MAX = 2**26
"""The most bytes of a batch, when a whole plan is made into batches."""
EVENTS_MAX = 2**SEQUENCE_BITS
"""The most events of a plan: three months at 1 M/s. Up to here times are exact enough to ascend, and ids fit."""
MADE_US = 50_000
"""The shortest event time for which a generator makes events at once."""

_GUESS_MARGIN = 2


@dataclass(frozen=True)
class Plan:
    """The complete load: warm-up, measured span and tail. `profile` is the rate of all streams together.

    `keyed`: whether the keys of streams decide the partitions of their events, as a Kafka producer would.

    Raises `InputError` with all problems on creation: shares that do not sum to 1, too many streams or partitions, ...
    """

    streams: tuple[StreamSpec, ...]
    profile: RateProfile
    start_us: int
    duration_s: float
    partitions: int
    seed: int
    keyed: bool = False

    def __post_init__(self) -> None:
        require_all(*_rules(self))

    @property
    def end_us(self) -> int:
        """The end (exclusive) of the plan."""
        return self.start_us + round(self.duration_s * US)

    @cached_property
    def _totals(self) -> tuple[int, ...]:
        """Events of each stream, over all partitions."""
        return tuple(self._count_at(stream, self.end_us) for stream in range(len(self.streams)))

    @cached_property
    def _assignments(self) -> tuple[Assignment, ...]:
        return tuple(self._assignment(stream) for stream in self.streams)

    def _assignment(self, stream: StreamSpec) -> Assignment:
        key = self.key_of(stream)
        if key is None:
            return RoundRobin(self.partitions)
        if (rows := key.partitions_of_rows(self.partitions)) is not None:
            return ByRow(rows, self.partitions)
        shares = key.partition_shares(self.partitions)
        assert shares is not None
        return ByKeyShare(shares)

    def key_of(self, stream: StreamSpec) -> FieldSpec | None:
        """The field that decides the partition of a stream's events; None if partitions take turns."""
        if not self.keyed or self.partitions == 1 or stream.key is None:
            return None
        return stream.fields[stream.schema.names.index(stream.key)]

    def partition_shares(self, stream: int) -> Floats:
        """The share of a stream's events in each partition, shape (partitions,)."""
        return self._assignments[stream].shares

    def number_of(self, name: str) -> int:
        """The number of a stream, which the other methods take."""
        return next(number for number, stream in enumerate(self.streams) if stream.name == name)

    def event_times(self, stream: int, partition: int, first: int, last: int) -> Int64s:
        """Event times of sequences [first, last), shape (last - first,), never falling; also past the plan's end."""
        out, assignment = empty(last - first, np.int64), self._assignments[stream]
        for start in range(first, last, BLOCK_EVENTS):
            end = min(start + BLOCK_EVENTS, last)
            self._fill_times(stream, assignment.numbers(partition, start, end), out[start - first : end - first])
        return out

    def _fill_times(self, stream: int, numbers: Floats, out: Int64s) -> None:
        """Event times of the stream's events by their numbers n (whole floats), written to `out` (same shape)."""
        share = self.streams[stream].share
        seconds = self.profile.time_of(numbers if share == 1.0 else numbers / share)
        # Times are not negative, so the cast's truncation is the floor.
        np.multiply(seconds, 1e6, out=out, casting="unsafe")
        np.add(out, self.start_us, out=out)

    def _times_from(self, stream: int, low: int, high: int) -> Int64s:
        """Event times of the stream's events low..high-1, over all partitions."""
        out = np.empty(high - low, dtype=np.int64)
        self._fill_times(stream, np.arange(low, high, dtype=np.float64), out)
        return out

    def _count_at(self, stream: int, t_us: int) -> int:
        """Events of a stream with event time < t_us, over all partitions, regardless of the plan's end."""
        if self._assignments[stream].exact:
            return _first_at(partial(self._times_from, stream), t_us, int(self._number_at(stream, t_us)))
        return sum(self._first_of_partition(stream, partition, t_us) for partition in range(self.partitions))

    def _first_of_partition(self, stream: int, partition: int, t_us: int) -> int:
        """The partition's first sequence whose event time is at or after `t_us`, regardless of the plan's end."""
        assignment = self._assignments[stream]
        if not assignment.shares[partition]:
            return 0
        guess = assignment.count(partition, self._number_at(stream, t_us))
        return _first_at(partial(self.event_times, stream, partition), t_us, guess)

    def _number_at(self, stream: int, t_us: int) -> float:
        """About the number of a stream's events before a time."""
        return self.profile.events_by((t_us - self.start_us) / US) * self.streams[stream].share

    def _numbers_before(self, stream: int, t_us: int) -> int:
        """Events of a stream with event time < t_us, over all partitions, within [0, total]."""
        if t_us <= self.start_us:
            return 0
        return self._totals[stream] if t_us >= self.end_us else self._count_at(stream, t_us)

    def count_before(self, stream: int, partition: int, t_us: int) -> int:
        """The exact number of the partition's events with event time < t_us, within [0, total]."""
        assignment = self._assignments[stream]
        if assignment.exact:
            return assignment.count(partition, self._numbers_before(stream, t_us))
        return self._first_of_partition(stream, partition, min(t_us, self.end_us)) if t_us > self.start_us else 0

    def last_before(self, stream: int, partition: int, t_us: int) -> int | None:
        """The time of the partition's last event before `t_us`, or None."""
        count = self.count_before(stream, partition, t_us)
        return int(self.event_times(stream, partition, count - 1, count)[0]) if count else None

    def planned_events(self, from_us: int, to_us: int, stream: int | None = None) -> int:
        """Events with from_us <= event time < to_us, over all partitions, of one stream or of all."""
        streams = range(len(self.streams)) if stream is None else (stream,)
        return sum(max(self._numbers_before(s, to_us) - self._numbers_before(s, from_us), 0) for s in streams)

    def batch(
        self, stream: int, partition: int, first: int, last: int, columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """The events of sequences [first, last): the named columns in that order (default: all fields, event_time).

        `columns` may name `event_time` and `event_id`, both int64. Raises `InputError` for an unknown name.
        """
        names = (*self.streams[stream].schema.names, EVENT_TIME) if columns is None else tuple(columns)
        types = self._types[stream]
        unknown = [name for name in names if name not in types]
        require(not unknown, "columns", f"must be of {', '.join(types)}", unknown, "a name from that list")
        arrays = [self._column(stream, partition, name, first, last) for name in names]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(name, types[name]) for name in names]))

    @cached_property
    def _types(self) -> tuple[dict[str, pa.DataType], ...]:
        """Arrow types of all possible columns of each stream."""
        lineage = {EVENT_TIME: pa.int64(), EVENT_ID: pa.int64()}
        return tuple(
            {field.name: arrow_type(field.sql_type) for field in stream.fields} | lineage for stream in self.streams
        )

    @cached_property
    def _fields(self) -> tuple[dict[str, tuple[int, FieldSpec]], ...]:
        """Fields by name with their places, for each stream. A search for each column would cost their square."""
        return tuple({field.name: (place, field) for place, field in enumerate(each.fields)} for each in self.streams)

    def _column(self, stream: int, partition: int, name: str, first: int, last: int) -> pa.Array:
        place, field = self._fields[stream].get(name, (-1, None))
        if name == EVENT_TIME or isinstance(field, RecordTime):
            times = self.event_times(stream, partition, first, last)
            return pa.array(times // field.unit_us if isinstance(field, RecordTime) else times)
        if field is None:  # the event's id
            base = event_id_base(stream, partition)
            return pa.array(np.arange(base + first, base + last))
        key = self.key_of(self.streams[stream])
        key_field = -1 if key is None else self._fields[stream][key.name][0]
        bits = PhiloxBits(self.seed, stream, partition, place, key_field, self.partitions)
        if isinstance(field, KeyByRate) and self.profile.changes:
            seconds = (self.event_times(stream, partition, first, last) - self.start_us) / US
            values = field.at_rates(bits, first, last, self.profile.shape_at(seconds))
        else:
            values = field.of_events(bits, first, last, partial(self._numbers, stream, partition, first, last))
        return pa.array(values) if isinstance(values, np.ndarray) else values

    def _numbers(self, stream: int, partition: int, first: int, last: int) -> Int64s:
        return self._assignments[stream].numbers(partition, first, last).astype(np.int64)


def _first_at(times: Callable[[int, int], Int64s], t_us: int, guess: int) -> int:
    """The first of 0, 1, ... with a time at or after `t_us`, near a guess. `times(low, high)` has those of a slice."""
    low = max(guess - _GUESS_MARGIN, 0)
    near = times(low, max(guess, 0) + _GUESS_MARGIN + 1)
    place = int(np.searchsorted(near, t_us))
    if 0 < place < len(near) or (place == 0 and low == 0):
        return low + place
    # Rounding errors made the guess useless.
    return bisect_left(range(EVENTS_MAX), t_us, key=lambda number: times(number, number + 1)[0])


def _rules(plan: Plan) -> tuple[Rule, ...]:
    streams_max, partitions_max = 2**STREAM_BITS, 2**PARTITION_BITS
    shares, seconds = [stream.share for stream in plan.streams], plan.duration_s
    has_partitions, lasts = 1 <= plan.partitions <= partitions_max, 0 < seconds < 1e9
    events = plan.profile.events_by(seconds) if lasts else 0.0
    return (
        Rule(1 <= len(shares) <= streams_max, "streams", f"must be 1 to {streams_max}", len(shares),
             "a workload with fewer streams"),
        Rule(not shares or sum_to_one(shares), "streams", SHARES_RULE, sum(shares), "shares such as 0.5 and 0.5"),
        Rule(has_partitions, "partitions", f"must be 1 to {partitions_max}", plan.partitions, "--partitions 1"),
        *(Rule(_can_split(plan.key_of(stream), plan.partitions), "partitions",
               f"must be 1 with the key {stream.key} of stream {stream.name}: only keys of at most "
               f"{TABLE_DOMAIN_MAX:,} values, choices and columns of a file can be split by their hash",
               plan.partitions, "--partitions 1") for stream in plan.streams if has_partitions),
        Rule(0 <= plan.seed < 2**63, "seed", "must be 0 to 2**63 - 1", plan.seed, "--seed 1"),
        Rule(lasts, "duration", "must be above 0 s and below 1e9 s", seconds, "--duration 60s"),
        Rule(events <= EVENTS_MAX, "rate", f"a plan may hold at most {EVENTS_MAX:.0e} events", events,
             "a shorter --duration"),
    )  # fmt: skip


def _can_split(key: FieldSpec | None, partitions: int) -> bool:
    """Whether the values of a key can be restricted to those of a partition."""
    return key is None or (
        key.partitions_of_rows(partitions) is not None or key.partition_shares(partitions) is not None
    )
