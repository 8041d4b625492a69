"""What the SUT's adapter uses: ask for the frontier, read a range, send results.

Small, because it is shipped to executors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from streamgauge.transports.flight.access import call_options

_TIMEOUT_S = 60.0
_clients: dict[str, flight.FlightClient] = {}


def connect(location: str) -> flight.FlightClient:
    """A client per location and process: workers are reused, so connections are too."""
    if location not in _clients:
        _clients[location] = flight.FlightClient(location)
    return _clients[location]


def act(location: str, token: str, action: str, **arguments: Any) -> Any:
    """One small JSON question to an endpoint."""
    client, options = connect(location), call_options(token, _TIMEOUT_S)
    answers = client.do_action(flight.Action(action, json.dumps(arguments).encode()), options)
    return json.loads(next(iter(answers)).body.to_pybytes())


def common_frontier(locations: Sequence[str], token: str) -> int:
    """The earliest event time that all generators have reached."""
    return min(act(location, token, "frontier") for location in locations)


def common_cut(locations: Sequence[str], token: str, position_us: int) -> int:
    """The next cut for a stream that stands at `position_us`; the same for all streams of an epoch."""
    frontier_us = common_frontier(locations, token)
    return int(act(locations[0], token, "cut", position_us=position_us, frontier_us=frontier_us))


def read_range(
    location: str, token: str, stream: str, from_us: int, to_us: int, columns: Sequence[str], batch: int
) -> Iterator[pa.RecordBatch]:
    """The events of one partition in [from_us, to_us)."""
    ticket = {"stream": stream, "from_us": from_us, "to_us": to_us, "columns": list(columns), "batch": batch}
    reader = connect(location).do_get(flight.Ticket(json.dumps(ticket).encode()), call_options(token))
    for chunk in reader:
        yield chunk.data


def send_results(location: str, token: str, address: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> int:
    """Send one task's results; returns how many rows there were. `address` is query, batch, partition, attempt."""
    first = next(batches, None)
    if first is None:
        return 0
    descriptor = flight.FlightDescriptor.for_command(json.dumps(address).encode())
    writer, reply = connect(location).do_put(descriptor, first.schema, call_options(token))
    rows = 0
    with writer:
        for batch in _chain(first, batches):
            writer.write_batch(batch)
            rows += batch.num_rows
        writer.done_writing()
        reply.read()  # the recorder has everything
    return rows


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
