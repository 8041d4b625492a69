"""What waits to be read: only what was offered, on every transport.

Who has read what: several readers of one stream, each counted once, all with the first delivery's stamp.
"""

from collections.abc import Callable
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.transports.logs import Outlet, ReadLog, UnreadTime
from streamgauge.transports.memory.queue import FlightQueue
from streamgauge.transports.spi import Chunk, Delivery, OutletConfig

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


@pytest.mark.parametrize("made", OUTLETS)
def test_a_gap_behind_unread_events_does_not_wait(made: Callable[[], Sends | Queue]) -> None:
    """Only its events do: those of the plan before, and those after it."""
    outlet = made()
    outlet.offer(0, US, {"ads": BATCH}, 7)
    outlet.offer(60 * US, 61 * US, {"ads": BATCH}, 7)
    assert outlet.waiting_us() == 2 * US
    outlet.mark_delivered(US)
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


def kinds(parts: list[Delivery]) -> list[tuple[int, int, str, int]]:
    """(from, to, what it was, stamp)."""
    names = {(False, False): "first", (True, False): "again", (False, True): "shared", (True, True): "both"}
    named = [names[part.again, part.shared] for part in parts]
    return [(part.from_us, part.to_us, name, part.ingest_us) for part, name in zip(parts, named, strict=True)]


def test_another_reader_gets_the_first_stamp_and_counts_nothing() -> None:
    """The second query's read is work done twice, not a re-read, and not ingested again."""
    reads = ReadLog("purchases")
    assert kinds(reads.note(0, 10, 0, ("q0", 0), 100)) == [(0, 10, "first", 100)]
    (part,) = reads.note(0, 10, 0, ("q1", 0), 105)
    assert kinds([part]) == [(0, 10, "shared", 100)]
    assert (part.query, part.reader, part.when_us) == ("q1", 0, 105)
    assert kinds(reads.note(0, 10, 0, ("q1", 0), 110)) == [(0, 10, "again", 100)]
    assert kinds(reads.note(0, 10, 0, ("q1", 1), 120)) == [(0, 10, "shared", 100)]


def test_a_read_is_cut_where_its_history_changes() -> None:
    """A slower reader that asks for more than the others have had."""
    reads = ReadLog("purchases")
    reads.note(0, 10, 0, ("q0", 0), 100)
    reads.note(10, 20, 1, ("q0", 0), 200)
    reads.note(0, 5, 0, ("q1", 0), 250)
    assert kinds(reads.note(0, 30, 1, ("q1", 0), 300)) == [
        (0, 5, "again", 100),
        (5, 10, "shared", 100),
        (10, 20, "shared", 200),
        (20, 30, "first", 300),
    ]


def test_what_waits_is_what_the_slowest_lacks() -> None:
    """Two readers: the stream has been read as far as both have."""
    reads = ReadLog("purchases")
    assert reads.reached_us == 0
    reads.note(0, 30, 0, ("q0", 0), 100)
    assert reads.reached_us == 30
    reads.note(0, 10, 0, ("q1", 0), 110)
    assert reads.reached_us == 10
    reads.note(10, 30, 1, ("q1", 0), 120)
    reads.note(0, 10, 0, ("q1", 0), 130)
    assert reads.reached_us == 30  # what is read again was not waiting


def test_forgotten_history_is_gone() -> None:
    """Committed ranges are not asked for again, so nothing of them is kept; what is not committed is still known.

    A search reads for hours, and every read looks through all that is kept.
    """
    reads, readers = ReadLog("purchases"), (("q0", 0), ("q1", 0))
    for number in range(1000):
        for reader in readers:
            reads.note(10 * number, 10 * number + 10, number, reader, 100 + number)
        reads.forget(10 * number)  # the last range stays
        assert (len(reads._first), [len(had) for had in reads._had.values()]) == (1, [1] * len(readers))
    assert kinds(reads.note(9990, 10_000, 1000, ("q2", 0), 5000)) == [(9990, 10_000, "shared", 1099)]


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 10), st.sampled_from([("a", 0), ("a", 1), ("b", 0)])), max_size=25
    )
)
def test_every_moment_is_first_once_and_new_to_a_reader_once(steps: list[tuple[int, int, tuple[str, int]]]) -> None:
    """Against a plain model of single microseconds: whatever the order of reads."""
    reads, stamps, had = ReadLog("purchases"), dict[int, int](), set[tuple[int, tuple[str, int]]]()
    for number, (low, length, reader) in enumerate(steps):
        parts = reads.note(low, low + length, number, reader, 1000 + number)
        assert [part.from_us for part in parts] == [low, *(part.to_us for part in parts[:-1])]
        assert parts[-1].to_us == low + length
        assert all(a.to_us == b.from_us for a, b in pairwise(parts))
        for part in parts:
            for moment in range(part.from_us, part.to_us):
                assert part.again == ((moment, reader) in had)
                assert part.first == (moment not in stamps)
                assert part.shared == (moment in stamps and not part.again)
                assert part.ingest_us == stamps.setdefault(moment, 1000 + number)
                had.add((moment, reader))
