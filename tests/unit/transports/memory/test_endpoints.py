"""The endpoint: a real Flight server on the loopback, asked as an engine's adapter asks.

Tokens are compared before anything is read.
"""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.transports.memory import client
from streamgauge.transports.memory.client import TokenCheck, call_options
from streamgauge.transports.memory.endpoints import Cuts, FlightOutlet, Watch
from streamgauge.transports.memory.queue import FlightQueue
from streamgauge.transports.spi import BusyTracker, EndpointConfig, OutletConfig

STREAMS = ("purchases", "ads")
SCHEMA = pa.schema([("price", pa.int32()), *((name, pa.int64()) for name in (EVENT_TIME, INGEST_TIME, EVENT_ID))])
COLUMNS = ("price", EVENT_TIME, INGEST_TIME, EVENT_ID)
CHUNK_US, ROWS, TOKEN = 1000, 50, "a-token"


@pytest.fixture
def pair() -> Iterator[list[FlightOutlet]]:
    """Two generators' outlets."""
    config = OutletConfig(dict.fromkeys(STREAMS, SCHEMA), 3600 * US, 2**30, lambda: 123_456)
    both = [FlightOutlet(EndpointConfig("127.0.0.1", 0, TOKEN), config) for _ in range(2)]
    yield both
    for one in both:
        one.shutdown()


@pytest.fixture
def served(pair: list[FlightOutlet]) -> FlightOutlet:
    return pair[0]


def get(reader: flight.FlightClient, to_us: int, *columns: str, options: Any = None) -> Any:
    """A reader of the stream of ads up to a time."""
    ticket = {"stream": "ads", "from_us": 0, "to_us": to_us, "columns": columns, "batch": 0}
    return reader.do_get(flight.Ticket(json.dumps(ticket).encode()), options)


def offer(queue: FlightQueue, chunks: range) -> None:
    for index in chunks:
        ids = np.arange(index * ROWS, (index + 1) * ROWS)
        batch = pa.record_batch({"price": (ids % 7).astype(np.int32), EVENT_TIME: ids * 20, EVENT_ID: ids})
        queue.offer(index * CHUNK_US, (index + 1) * CHUNK_US, dict.fromkeys(STREAMS, batch), 0)


@pytest.mark.parametrize("options", [None, *map(call_options, ("", "wrong", "a-toke"))])
def test_without_the_token_everything_is_refused(served: FlightOutlet, options: Any) -> None:
    """Reading and asking both need the run's token, whether a client sends another one or none at all."""
    offer(served, range(2))
    with flight.FlightClient(served.location) as plain:
        with pytest.raises(flight.FlightUnauthenticatedError):
            get(plain, CHUNK_US, "price", options=options).read_all()
        with pytest.raises(flight.FlightUnauthenticatedError):
            list(plain.do_action(flight.Action("frontier", b"{}"), options))
    assert served.drain_logs()[1] == []


def test_what_is_read_is_what_the_queue_holds(served: FlightOutlet) -> None:
    """The range arrives whole, in order, with its lineage and the stamp of its delivery."""
    offer(served, range(10))
    read = pa.Table.from_batches(client.read_range(served.location, TOKEN, "ads", 0, 5 * CHUNK_US, COLUMNS, 3))
    assert read == pa.Table.from_batches(served.take("ads", 0, 5 * CHUNK_US, COLUMNS, 4))
    assert read.column(EVENT_ID).to_pylist() == list(range(5 * ROWS))
    assert set(read.column(INGEST_TIME).to_pylist()) == {123_456}


@pytest.mark.parametrize("immediate", [True, False], ids=["cancelled at once", "cancelled later"])
@pytest.mark.parametrize("aborted", [True, False])
def test_a_read_that_is_cut_off_is_counted(
    served: FlightOutlet, aborted: bool, immediate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that goes after the first part of many; one that takes all, or asks for nothing, is none of those.

    Whether the server hears of the cancelling before the call has ended is a race, so both are tried.
    """
    if not immediate:  # the context of a call that ends before its cancelling is known
        never = SimpleNamespace(is_cancelled=lambda: False)
        monkeypatch.setattr(Watch, "read", lambda watch, _, batches: setattr(watch, "_read", (never, batches)))
    rows = 4_000_000  # more than lies between server and reader unread
    batch = pa.record_batch({name: np.zeros(rows, np.int64) for name in (EVENT_TIME, EVENT_ID)})
    served.offer(0, CHUNK_US, dict.fromkeys(STREAMS, batch), 0)
    with flight.FlightClient(served.location) as reader:
        answer = get(reader, CHUNK_US, EVENT_TIME, EVENT_ID, options=call_options(TOKEN))
        answer.read_chunk()
        answer.cancel() if aborted else answer.read_all()
        client.act(served.location, TOKEN, "frontier")
        list(client.read_range(served.location, TOKEN, "ads", CHUNK_US, CHUNK_US, COLUMNS, 1))
    served.shutdown()  # returns when every call has ended
    assert list(served.aborted_us) == ([123_456] if aborted else [])


def test_the_time_for_which_a_reader_waits_for_its_delivery_is_known(
    served: FlightOutlet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the taking, by a queue that takes 30 ms for it, and by one that then refuses."""
    now, take = [1000], served.take

    def slow(*args: Any, **more: Any) -> Any:
        now[0] += 30_000
        return take(*args, **more)

    monkeypatch.setattr(served, "delivering", BusyTracker(lambda: now[0]))
    monkeypatch.setattr(served, "take", slow)
    offer(served, range(2))
    list(client.read_range(served.location, TOKEN, "ads", 0, CHUNK_US, COLUMNS, 0))
    assert served.delivering.news() == [(1000, 31_000)]
    with pytest.raises(flight.FlightServerError):
        list(client.read_range(served.location, TOKEN, "ads", 0, 9 * CHUNK_US, COLUMNS, 0))
    assert served.delivering.news() == [(31_000, 61_000)]
    assert served.delivering.news() == []


def test_the_batch_of_a_read_is_logged_and_an_empty_range_has_a_schema(served: FlightOutlet) -> None:
    """The engine's batch number travels with the ticket: it ties a delivery to a commit. A reader can make an empty
    table of no rows.
    """
    offer(served, range(1))
    list(client.read_range(served.location, TOKEN, "ads", 0, CHUNK_US, COLUMNS, 42))
    assert [part.batch for part in served.drain_logs()[1]] == [42]
    reader = get(flight.FlightClient(served.location), 0, *COLUMNS, options=call_options(TOKEN))
    assert reader.schema == SCHEMA
    assert reader.read_all().num_rows == 0


@pytest.mark.parametrize(("low", "high"), [(0, 3 * CHUNK_US), (2 * CHUNK_US, 9 * CHUNK_US)])
def test_a_range_that_is_not_kept_is_an_error(served: FlightOutlet, low: int, high: int) -> None:
    """Committed or beyond the frontier: the reader hears why, and the server goes on."""
    offer(served, range(4))
    served.commit(CHUNK_US)
    with pytest.raises(flight.FlightServerError, match="was requested, but only"):
        list(client.read_range(served.location, TOKEN, "ads", low, high, COLUMNS, 0))
    assert client.act(served.location, TOKEN, "frontier") == 4 * CHUNK_US


def test_the_common_frontier_is_the_slowest_generators(pair: list[FlightOutlet]) -> None:
    """No partition is cut later than all generators have reached."""
    offer(pair[0], range(5))
    offer(pair[1], range(3))
    locations = [one.location for one in pair]
    assert client.common_cut(locations, TOKEN, 0) == 3 * CHUNK_US


@pytest.mark.parametrize(("position", "events_max", "border"), [
    (0, None, 5), (0, 4 * 100, 2), (1, 4 * 100, 3), (4, 4 * 100, 5), (0, 4 * 100 - 1, 1), (2, 1, 3), (5, 1, 5),
])  # fmt: skip
def test_a_cut_may_be_limited_to_so_many_events(
    pair: list[FlightOutlet], position: int, events_max: int | None, border: int
) -> None:
    """Of both streams and generators together; a chunk of each is always within."""
    for one in pair:
        offer(one, range(5))
    locations = [one.location for one in pair]
    cut_us = client.common_cut(locations, TOKEN, position * CHUNK_US, events_max=events_max)
    assert cut_us == border * CHUNK_US


@pytest.mark.parametrize("steps", [
    [(0, 50, "", "a", 50), (0, 50, "", "b", 50), (50, 40, "", "a", 50), (90, 60, "", "a", 90)],
    [(0, 50, "", "a", 50), (0, 50, "", "b", 50), (50, 50, "", "a", 50), (50, 80, "", "b", 50), (50, 90, "", "a", 90),
     (50, 95, "", "b", 90)],
    [(0, 50, "slow", "a", 50), (0, 50, "fast", "a", 50), (50, 80, "fast", "a", 80), (0, 80, "slow", "b", 50),
     (50, 90, "slow", "a", 90)],
], ids=["never back", "a chunk between two readers", "queries apart"])  # fmt: skip
def test_cuts_of_an_epoch(steps: list[tuple[int, int, str, str, int]]) -> None:
    """A reader that stands further than the frontier (a restart) stays where it is. A chunk that comes in between must
    not put the second reader an epoch ahead, for as long as data flow. A fast query's next epoch does not move the cut
    that a slow one's second stream still has to get.
    """
    cuts = Cuts()
    assert [cuts.agree(*request) for *request, _ in steps] == [cut for *_, cut in steps]


def test_cuts_agree_when_all_readers_come_at_once() -> None:
    """At the same moment, with frontiers of their own, they get one answer."""
    cuts, begin = Cuts(), threading.Barrier(8)

    def agree(frontier_us: int) -> int:
        begin.wait()
        return cuts.agree(0, frontier_us, reader=str(frontier_us))

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(agree, range(100, 108)))) == 1


@pytest.mark.parametrize("name", ["authorization", "Authorization", "AUTHORIZATION"])
def test_the_right_token_passes(name: str) -> None:
    """Header names come in any case."""
    TokenCheck("secret").start_call(None, {name: ["Bearer secret"]})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": [""]},
        {"authorization": ["secret"]},
        {"authorization": ["Bearer "]},
        {"authorization": ["Bearer secre"]},
        {"authorization": ["Bearer secret2"]},
        {"authorization": ["bearer secret"]},
        {"other": ["Bearer secret"]},
        {"authorization": ["Bearer wrong", "Bearer secret"]},
        {"authorization": ["Bearer sécret"]},  # comparing in constant time must not fail outside ASCII
    ],
)
def test_everything_else_is_refused(headers: dict[str, list[str]]) -> None:
    """Missing, shortened, lengthened, or in another place; the message does not hold the token."""
    with pytest.raises(flight.FlightUnauthenticatedError, match="token is missing or wrong") as caught:
        TokenCheck("secret").start_call(None, headers)
    assert "secret" not in str(caught.value)
