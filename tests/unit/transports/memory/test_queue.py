"""The queue of one generator: nothing is lost, nothing is changed, every event is counted once."""

from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.transports.memory.queue import LARGE_ROWS, SMALL_ROWS, FlightQueue
from streamgauge.transports.spi import OutletConfig, Overflow

STREAMS = ("purchases", "ads")
COLUMNS = ("event_id", "price", "ingest_time")
CHUNK_US = 1000
START = 1_700_000_000_000_000


def chunk_of(first: int, rows: int) -> pa.RecordBatch:
    ids = np.arange(first, first + rows, dtype=np.int64)
    return pa.record_batch({"event_id": ids, "price": (ids % 97).astype(np.int32)})


def queue_of(chunks: int = 0, bound_us: int = 3600 * US, bytes_max: int = 2**40) -> FlightQueue:
    """A queue with chunks in it, whose clock moves by one at each look."""
    ticks = count(1)
    queue = FlightQueue(OutletConfig(dict.fromkeys(STREAMS), bound_us, bytes_max, lambda: next(ticks)))
    for index in range(chunks):
        offer(queue, index)
    return queue


def offer(queue: FlightQueue, index: int, rows: int = 10, first: int = 0) -> None:
    """The chunk [START + index, START + index + 1) in chunks, `rows` of each stream."""
    low = START + index * CHUNK_US
    queue.offer(low, low + CHUNK_US, {name: chunk_of(first, rows) for name in STREAMS}, low + CHUNK_US + 7)


def test_a_limited_frontier_passes_over_chunks_without_events() -> None:
    """A reader that stood before them would read nothing for ever."""
    queue = queue_of()
    for index, rows in enumerate((0, 0, 10, 0, 10)):
        offer(queue, index, rows)
    assert [queue.frontier_within(at(first), 5) for first in range(6)] == [at(n) for n in (3, 3, 3, 5, 5, 5)]
    assert queue.frontier_within() == at(5)


def at(index: int) -> int:
    return START + index * CHUNK_US


class Model:
    """What a queue ought to do, in plain lists: for each chunk its ids and whether and when it was delivered."""

    def __init__(self) -> None:
        self.queue = queue_of()
        self.borders: list[tuple[int, int]] = []
        self.ids: list[dict[str, list[int]]] = []
        self.stamps: list[dict[str, int]] = []
        self.committed = 0
        self.handed, self.reread = 0, 0
        self.made = 0

    def offer(self, rows: tuple[int, int], gap: int) -> None:
        low = (self.borders[-1][1] if self.borders else START) + gap * CHUNK_US
        batches, ids = {}, {}
        for name, many in zip(STREAMS, rows, strict=True):
            batches[name] = chunk_of(self.made, many)
            ids[name] = list(range(self.made, self.made + many))
            self.made += many
        self.queue.offer(low, low + CHUNK_US, batches, low + CHUNK_US)
        self.borders.append((low, low + CHUNK_US))
        self.ids.append(ids)
        self.stamps.append({})

    def take(self, stream: str, first: int, last: int, batch: int) -> None:
        """Chunks first to last, both included, counted from the first that is not committed."""
        chosen = range(self.committed, len(self.borders))[first : last + 1]
        if not chosen:
            return
        got = self.queue.take(stream, self.borders[chosen[0]][0], self.borders[chosen[-1]][1], COLUMNS, batch)
        rows = [row for one in got for row in one.to_pylist()]
        assert [row["event_id"] for row in rows] == [value for index in chosen for value in self.ids[index][stream]]
        assert all(row["price"] == row["event_id"] % 97 for row in rows)
        self._check_stamps(stream, chosen, [row["ingest_time"] for row in rows])

    def _check_stamps(self, stream: str, chosen: range, stamps: list[int]) -> None:
        position = 0
        for index in chosen:
            mine = set(stamps[position : position + len(self.ids[index][stream])])
            position += len(self.ids[index][stream])
            if stream in self.stamps[index]:
                self.reread += len(self.ids[index][stream])
                assert mine <= {self.stamps[index][stream]}
            else:
                self.handed += len(self.ids[index][stream])
                assert len(mine) <= 1
                self.stamps[index][stream] = mine.pop() if mine else -1

    def commit(self, chunks: int) -> None:
        self.committed = min(self.committed + chunks, len(self.borders))
        if self.committed:
            self.queue.commit(self.borders[self.committed - 1][1])

    def rows_since(self, chunk: int) -> int:
        return sum(len(ids) for chunk in self.ids[chunk:] for ids in chunk.values())


OFFERS = st.tuples(st.just("offer"), st.tuples(st.integers(0, 40), st.integers(0, 5)), st.integers(0, 2))
TAKES = st.tuples(st.just("take"), st.sampled_from(STREAMS), st.integers(0, 4), st.integers(0, 6))
COMMITS = st.tuples(st.just("commit"), st.integers(0, 3))


@given(st.lists(st.one_of(OFFERS, TAKES, COMMITS), max_size=40))
def test_what_is_taken_is_what_was_offered(steps: list[tuple]) -> None:
    """Whatever the order of offers, takes, takes again and commits: every row, unchanged, in order, with its stamp."""
    model = Model()
    for number, (kind, *arguments) in enumerate(steps):
        if kind == "take":
            stream, first, more = arguments
            model.take(stream, first, first + more, number)
        else:
            getattr(model, kind)(*arguments)
    chunks, deliveries = model.queue.drain_logs()
    assert sum(chunk.events for chunk in chunks) == model.rows_since(0)
    assert sum(part.events for part in deliveries if not part.again) == model.handed
    assert sum(part.events for part in deliveries if part.again) == model.reread
    assert model.queue._bytes == 12 * model.rows_since(model.committed)
    assert model.queue.frontier_us == (model.borders[-1][1] if model.borders else 0)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (1, 4), (0, 1), (3, 9)])
def test_what_is_committed_or_not_yet_there_is_refused(low: int, high: int) -> None:
    """The message names the stream, the range, and what is stored; nothing is logged. An older commit that comes later
    changes nothing.
    """
    queue = queue_of(4)
    for committed in (2, 1):
        queue.commit(at(committed))
    with pytest.raises(
        DriverError, match=rf"ads: \[{at(low)}, {at(high)}\) was requested, but only \[{at(2)}, {at(4)}\) is stored"
    ):
        queue.take("ads", at(low), at(high), COLUMNS, 0)
    assert queue.drain_logs()[1] == []


@pytest.mark.parametrize(("low", "high"), [(0, 1500), (500, 2000), (1999, 2000)])
def test_a_cut_inside_a_chunk_is_refused(low: int, high: int) -> None:
    """A cut that is no border would lose the chunk silently."""
    queue = queue_of(2)
    with pytest.raises(DriverError, match="inside the chunk"):
        queue.take("ads", START + low, START + high, COLUMNS, 0)


def test_a_commit_forgets_who_read_what() -> None:
    """Else every read would look through those of all trials before."""
    queue = queue_of()
    for index in range(20):
        offer(queue, index)
        queue.take("ads", at(index), at(index + 1), COLUMNS, index)
        queue.commit(at(index))
    reads = queue._reads["ads"]
    assert (len(reads._first), [len(had) for had in reads._had.values()]) == (1, [1])


def test_the_bound_in_seconds_refuses_and_adds_nothing() -> None:
    """At the bound a chunk is refused whole; after the slowest stream was read there is room again."""
    queue = queue_of(3, bound_us=3 * CHUNK_US)
    before = (queue.frontier_us, queue._bytes)
    with pytest.raises(Overflow, match="queue full"):
        offer(queue, 3)
    assert (queue.overflowed, queue.memory_full_us) == (True, None)
    assert (queue.frontier_us, queue._bytes) == before
    assert sum(chunk.events for chunk in queue.drain_logs()[0]) == 60
    queue.take("ads", at(0), at(3), COLUMNS, 0)
    with pytest.raises(Overflow):
        offer(queue, 3)
    queue.take("purchases", at(0), at(1), COLUMNS, 0)
    offer(queue, 3)
    assert queue.frontier_us == at(4)


def test_a_chunk_without_events_moves_the_frontier_of_a_full_queue() -> None:
    """Between trials, so that what lies in it can be read as far as any other partition has come."""
    queue = queue_of(3, bound_us=3 * CHUNK_US)
    offer(queue, 3, rows=0)
    assert (queue.frontier_us, queue.overflowed) == (at(4), False)
    with pytest.raises(Overflow):
        offer(queue, 4)


def test_the_bound_in_bytes_refuses_until_something_is_committed() -> None:
    """Reading frees no memory, since a re-read may come; a commit does."""
    queue = queue_of(3, bytes_max=2 * 10 * 12 * 3)
    queue.take("ads", at(0), at(3), COLUMNS, 0)
    queue.take("purchases", at(0), at(3), COLUMNS, 0)
    with pytest.raises(Overflow, match="bytes"):
        offer(queue, 3)
    assert (queue.overflowed, queue.memory_full_us) == (True, CHUNK_US)
    queue.commit(at(1))
    offer(queue, 3)


def test_small_batches_are_merged() -> None:
    """A thousand chunks of 100 rows leave as one batch, not as a thousand."""
    queue = queue_of()
    for index in range(1000):
        offer(queue, index, rows=100, first=index * 100)
    assert [one.num_rows for one in queue.take("ads", at(0), at(1000), COLUMNS, 0)] == [100_000]


def test_large_batches_are_cut() -> None:
    """No batch is larger than what stays in a reader's cache; large chunks are not copied into one."""
    queue = queue_of()
    for index in range(2):
        offer(queue, index, rows=LARGE_ROWS + SMALL_ROWS, first=index * (LARGE_ROWS + SMALL_ROWS))
    got = queue.take("ads", at(0), at(2), ("event_id",), 0)
    assert max(one.num_rows for one in got) <= LARGE_ROWS
    assert sum(one.num_rows for one in got) == 2 * (LARGE_ROWS + SMALL_ROWS)


def test_only_the_requested_columns_are_given() -> None:
    """In their order; ingest time is one stamp for a delivery."""
    (got,) = queue_of(1).take("ads", at(0), at(1), ("ingest_time", "price"), 0)
    assert got.schema.names == ["ingest_time", "price"]
    assert len(set(got.column(0).to_pylist())) == 1
