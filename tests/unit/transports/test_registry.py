"""Every transport that has a name carries events one way and results the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.transports.flight import client
from streamgauge.transports.registry import BROKERED, NAMES, STAMPS, problems, transport, with_absolute_paths
from streamgauge.transports.spi import EndpointConfig, Outlet, OutletConfig

AT = EndpointConfig("127.0.0.1", 0, "a-token")
SCHEMA = pa.schema([(name, pa.int64()) for name in (EVENT_TIME, INGEST_TIME, EVENT_ID)])
EVENTS = pa.record_batch({EVENT_TIME: [1, 2, 3], EVENT_ID: [0, 1, 2]})


class RecordingReceiver:
    """A receiver that remembers."""

    def __init__(self) -> None:
        self.results: list[tuple[dict[str, Any], pa.Table]] = []
        self.committed: list[tuple[str, int]] = []

    def now_us(self) -> int:
        return 7

    def receive(
        self, address: dict[str, Any], schema: pa.Schema, batches: Iterator[pa.RecordBatch], stamped: bool = False
    ) -> None:
        self.results.append((address, pa.Table.from_batches(batches, schema)))

    def commit(
        self, query: str, batch: int, accepted: list[list[int]], sinks: list[str], when_us: int | None = None
    ) -> bool:
        self.committed.append((query, batch))
        return True


@pytest.mark.parametrize("name", NAMES)
def test_an_outlet_counts_what_is_offered(name: str) -> None:
    """The driver's side of every transport keeps the same books."""
    outlet: Outlet = transport(name).open_outlet(AT, OutletConfig({"ads": SCHEMA}, 10 * US, 2**20, lambda: 7))
    outlet.offer(0, 1000, {"ads": outlet.prepared("ads", EVENTS)}, 5)
    (chunk,), deliveries = outlet.drain_logs()
    assert (chunk.events, chunk.published_us, deliveries) == (3, 5, [])
    assert (outlet.frontier(), outlet.waiting_us(), outlet.overflowed) == (1000, 1000, False)
    assert (outlet.drain_aborted(), outlet.drain_delivering()) == ([], [])


def test_flight_carries_both_ways() -> None:
    """What the driver offers the system reads, and what the system sends the recorder gets."""
    flight, receiver = transport("flight"), RecordingReceiver()
    outlet = flight.open_outlet(AT, OutletConfig({"ads": SCHEMA}, 10 * US, 2**20, lambda: 7))
    inlet = flight.open_inlet(AT, receiver)
    outlet.offer(0, 1000, {"ads": EVENTS}, 5)
    read = pa.Table.from_batches(
        client.read_range(outlet.location, AT.token, "ads", 0, 1000, (EVENT_TIME, INGEST_TIME), 0)
    )
    assert read.to_pydict() == {EVENT_TIME: [1, 2, 3], INGEST_TIME: [7, 7, 7]}
    client.send_results(inlet.location, AT.token, {"query": "q", "batch": 4}, iter([EVENTS]))
    assert client.act(inlet.location, AT.token, "commit", query="q", batch=4, accepted=[], sinks=[]) is True
    assert receiver.results == [({"query": "q", "batch": 4}, pa.Table.from_batches([EVENTS]))]
    assert receiver.committed == [("q", 4)]
    inlet.close()


def test_names_are_known_without_loading_a_transport() -> None:
    """What checks a name, or lists them, needs no Flight."""
    code = "import sys, streamgauge.transports.registry as c; assert c.NAMES; assert 'pyarrow' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_known_of_a_transport_is_in_its_entry() -> None:
    """Which stamp deliveries, which meet at a broker, which have options, and which of those name files."""
    there = {name: transport(name) for name in NAMES}
    assert (STAMPS, BROKERED) == (("flight",), ("kafka",))
    assert {name for name, each in there.items() if each.settings} == {"kafka"}
    assert {file for name, each in there.items() for file in each.files} <= {
        one.name for one in there["kafka"].settings
    }


def test_options_of_a_transport_without_any_are_refused() -> None:
    """By name, with the transport that has options as the way out."""
    (problem,) = problems("socket", {"acks": "all"})
    assert problem.setting == "transport option acks"
    assert "--transport kafka" in problem.way_out
    assert problems("kafka", {"acks": "all"}) == []


def test_files_among_options_are_found_from_anywhere() -> None:
    """What names no file stays as it is, and so does an empty one, which is refused as what it is."""
    found = with_absolute_paths("kafka", {"client": "login.txt", "acks": "all"})
    assert found == {"client": os.path.abspath("login.txt"), "acks": "all"}
    assert with_absolute_paths("kafka", {"client": ""}) == {"client": ""}
    assert with_absolute_paths("flight", {"client": "login.txt"}) == {"client": "login.txt"}
