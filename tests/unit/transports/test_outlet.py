"""What waits to be read: only what was offered, on every transport."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.transports.memory.queue import FlightQueue
from streamgauge.transports.outlet import Outlet, UnreadTime
from streamgauge.transports.spi import Chunk, OutletConfig

BATCH = pa.record_batch({"n": pa.array([1, 2], pa.int64()), "event_id": pa.array([1, 2], pa.int64())})
CONFIG = OutletConfig({"ads": BATCH.schema}, 60 * US, 2**30, lambda: 7)


class Sends(Outlet):
    """An outlet that only counts."""

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        self._count(Chunk(from_us, to_us, sum(batch.num_rows for batch in batches.values()), published_us), batches)


class Queue:
    """The queue, read by one reader."""

    def __init__(self) -> None:
        self.queue, self.batch, self.from_us = FlightQueue(CONFIG), 0, 0
        self.offer, self.waiting_us = self.queue.offer, self.queue.waiting_us

    def mark_delivered(self, before_us: int) -> None:
        self.queue.take("ads", self.from_us, before_us, ("n",), self.batch)
        self.batch, self.from_us = self.batch + 1, before_us


OUTLETS: tuple[Callable[[], Sends | Queue], ...] = (lambda: Sends(CONFIG), Queue)


@pytest.mark.parametrize("made", OUTLETS)
def test_nothing_waits_after_a_drain(made: Callable[[], Sends | Queue]) -> None:
    """However long after the last event the next plan begins, and whatever its first chunk has."""
    outlet = made()
    for second in range(3):
        outlet.offer(second * US, (second + 1) * US, {"ads": BATCH}, 7)
    assert outlet.waiting_us() == 3 * US
    outlet.mark_delivered(3 * US)
    assert outlet.waiting_us() == 0
    outlet.offer(3 * US, 40 * US, {"ads": BATCH.slice(0, 0)}, 7)  # levelled
    assert outlet.waiting_us() == 0
    outlet.offer(60 * US, 61 * US, {"ads": BATCH}, 7)
    assert outlet.waiting_us() == US


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 2), st.integers(0, 12))))
def test_waiting_time_is_that_of_unread_chunks(steps: list[tuple[int, int, int, int]]) -> None:
    """As a sum over all chunks says it, from the first with events on; what was read is never waited for again."""
    unread, chunks, end_us, read_us = UnreadTime(), [], 0, 0
    for gap, length, events, behind in steps:
        chunks.append((end_us + gap, end_us + gap + length, events))
        end_us += gap + length
        unread.add(*chunks[-1])
        unread.read(end_us - behind)
        read_us = max(read_us, end_us - behind)
        left = [one for one in chunks if one[1] > read_us]
        while left and not left[0][2]:
            del left[0]
        assert unread.us == sum(to_us - max(from_us, read_us) for from_us, to_us, _ in left)
        assert unread.events == sum(count for *_, count in left)
