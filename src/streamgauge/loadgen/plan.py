"""The plan: event times and contents of the whole input. Any process can make any slice of the input from it.

Events of a stream are numbered n = 0, 1, ...; the n-th goes to partition n % partitions, as sequence n // partitions.
Its event time is start_us + floor(time_of(n / share) * 1e6). It does not depend on other events, and never falls as n
rises. Times are microseconds since the epoch. [first, last) is a slice of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.lineage_columns import EVENT_ID, EVENT_TIME, event_id_base
from streamgauge.core.schema import arrow_type
from streamgauge.core.units import PARTITION_BITS, SEQUENCE_BITS, STREAM_BITS
from streamgauge.loadgen.fields import SHARES_RULE, StreamSpec, sum_to_one
from streamgauge.loadgen.random.philox import BLOCK_EVENTS, PhiloxBits, empty
from streamgauge.loadgen.rate_profile import RateProfile

Times = npt.NDArray[np.int64]

BATCH_BYTES_MAX = 2**26
"""The most bytes of a batch, when a whole plan is made into batches."""
EVENTS_MAX = 2**SEQUENCE_BITS
"""The most events of a plan: three months at 1 M/s. Up to here times are exact enough to ascend, and ids fit."""

_GUESS_MARGIN = 2


@dataclass(frozen=True)
class Plan:
    """The complete load: warm-up, measured span and tail. `profile` is the rate of all streams together.

    Raises `InputError` with all problems on creation: shares that do not sum to 1, too many streams or partitions, ...
    """

    streams: tuple[StreamSpec, ...]
    profile: RateProfile
    start_us: int
    duration_s: float
    partitions: int
    seed: int

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise InputError(problems)

    @property
    def end_us(self) -> int:
        """The end (exclusive) of the plan."""
        return self.start_us + round(self.duration_s * US)

    @cached_property
    def _totals(self) -> tuple[int, ...]:
        """Events of each stream, over all partitions."""
        return tuple(self._first_at(stream, self.end_us) for stream in range(len(self.streams)))

    def number_of(self, name: str) -> int:
        """The number of a stream, which the other methods take."""
        return next(number for number, stream in enumerate(self.streams) if stream.name == name)

    def event_times(self, stream: int, partition: int, first: int, last: int) -> Times:
        """Event times of sequences [first, last), shape (last - first,), never falling; also past the plan's end."""
        out, step = empty(last - first, np.int64), self.partitions
        for start in range(first, last, BLOCK_EVENTS):
            end = min(start + BLOCK_EVENTS, last)
            numbers = np.arange(start * step + partition, end * step + partition, step, dtype=np.float64)
            self._fill_times(stream, numbers, out[start - first : end - first])
        return out

    def _fill_times(self, stream: int, numbers: npt.NDArray[np.float64], out: Times) -> None:
        """Event times of the stream's events by their numbers n (whole floats), written to `out` (same shape)."""
        share = self.streams[stream].share
        seconds = self.profile.time_of(numbers if share == 1.0 else numbers / share)
        # Times are not negative, so the cast's truncation is the floor.
        np.multiply(seconds, 1e6, out=out, casting="unsafe")
        np.add(out, self.start_us, out=out)

    def _times_from(self, stream: int, low: int, high: int) -> Times:
        """Event times of the stream's events low..high-1, over all partitions."""
        out = np.empty(high - low, dtype=np.int64)
        self._fill_times(stream, np.arange(low, high, dtype=np.float64), out)
        return out

    def _first_at(self, stream: int, t_us: int) -> int:
        """The smallest n whose event time is at or after `t_us`, regardless of the plan's end."""
        after_s = (t_us - self.start_us) / US
        guess = int(self.profile.events_by(after_s) * self.streams[stream].share)
        low = max(guess - _GUESS_MARGIN, 0)
        times = self._times_from(stream, low, guess + _GUESS_MARGIN + 1)
        place = int(np.searchsorted(times, t_us))
        if 0 < place < len(times) or (place == 0 and low == 0):
            return low + place
        return self._first_at_by_bisection(stream, t_us)

    def _first_at_by_bisection(self, stream: int, t_us: int) -> int:
        """Like `_first_at`, if rounding errors make its guess useless."""
        low, high = 0, EVENTS_MAX
        while low < high:
            middle = (low + high) // 2
            before = self._times_from(stream, middle, middle + 1)[0] < t_us
            low, high = (middle + 1, high) if before else (low, middle)
        return low

    def _numbers_before(self, stream: int, t_us: int) -> int:
        """Events of a stream with event time < t_us, over all partitions, within [0, total]."""
        if t_us <= self.start_us:
            return 0
        return self._totals[stream] if t_us >= self.end_us else self._first_at(stream, t_us)

    def _of_partition(self, numbers: int, partition: int) -> int:
        """The number of events among 0..numbers-1 that go to a partition."""
        return max(-(-(numbers - partition) // self.partitions), 0)

    def count_before(self, stream: int, partition: int, t_us: int) -> int:
        """The exact number of the partition's events with event time < t_us, within [0, total]."""
        return self._of_partition(self._numbers_before(stream, t_us), partition)

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
        if unknown:
            raise InputError(Problem("columns", f"must be of {', '.join(types)}", unknown, "a name from that list"))
        arrays = [self._column(stream, partition, name, first, last) for name in names]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(name, types[name]) for name in names]))

    @cached_property
    def _types(self) -> tuple[dict[str, pa.DataType], ...]:
        """Arrow types of all possible columns of each stream."""
        lineage = {EVENT_TIME: pa.int64(), EVENT_ID: pa.int64()}
        schemas = [stream.schema.types() for stream in self.streams]
        return tuple({name: arrow_type(type_) for name, type_ in types.items()} | lineage for types in schemas)

    def _column(self, stream: int, partition: int, name: str, first: int, last: int) -> pa.Array:
        if name == EVENT_TIME:
            return pa.array(self.event_times(stream, partition, first, last))
        if name == EVENT_ID:
            base = event_id_base(stream, partition)
            ids = empty(last - first, np.int64)
            ids[...] = np.arange(base + first, base + last)
            return pa.array(ids)
        place = self.streams[stream].schema.names.index(name)
        bits = PhiloxBits(self.seed, stream, partition, place)
        values = self.streams[stream].fields[place].of_events(bits, first, last, self.partitions)
        return pa.array(values) if isinstance(values, np.ndarray) else values


def _problems(plan: Plan) -> Iterator[Problem]:
    streams_max, partitions_max = 2**STREAM_BITS, 2**PARTITION_BITS
    if not 1 <= len(plan.streams) <= streams_max:
        yield Problem("streams", f"must be 1 to {streams_max}", len(plan.streams), "a workload with fewer streams")
    shares = [stream.share for stream in plan.streams]
    if shares and not sum_to_one(shares):
        yield Problem("streams", SHARES_RULE, sum(shares), "shares such as 0.5 and 0.5")
    if not 1 <= plan.partitions <= partitions_max:
        yield Problem("partitions", f"must be 1 to {partitions_max}", plan.partitions, "--generators 1")
    if not 0 <= plan.seed < 2**63:
        yield Problem("seed", "must be 0 to 2**63 - 1", plan.seed, "--seed 1")
    if not 0 < plan.duration_s < 1e9:
        yield Problem("duration", "must be above 0 s and below 1e9 s", plan.duration_s, "--duration 60s")
    elif plan.profile.events_by(plan.duration_s) > EVENTS_MAX:
        events = plan.profile.events_by(plan.duration_s)
        yield Problem("rate", f"a plan may hold at most {EVENTS_MAX:.0e} events", events, "a shorter --duration")
