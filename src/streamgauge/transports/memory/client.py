"""The client for engines: query the frontier, read a range, send results. Small, because it is shipped to executors.

Every call carries the run's random token, which both servers check before anything is read (`TokenCheck`).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

HEADER = "authorization"


class TokenCheck(flight.ServerMiddlewareFactory):
    """Refuses every call without the run's token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> None:
        credentials = next((values[0] for name, values in headers.items() if name.lower() == HEADER), "")
        if not hmac.compare_digest(credentials.encode(), self._expected):
            raise flight.FlightUnauthenticatedError("the run's token is missing or wrong")


def call_options(token: str, timeout_s: float | None = None) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(timeout=timeout_s, headers=[(HEADER.encode(), f"Bearer {token}".encode())])


@cache
def connect(location: str) -> flight.FlightClient:
    """One client per location and process, so that reused workers reuse connections."""
    return flight.FlightClient(location)


def act(location: str, token: str, action: str, **arguments: Any) -> Any:
    """One JSON request to an endpoint. Returns the decoded reply."""
    client, options = connect(location), call_options(token, 60.0)
    answers = client.do_action(flight.Action(action, json.dumps(arguments).encode()), options)
    return json.loads(next(iter(answers)).body.to_pybytes())


def frontiers(locations: Sequence[str], token: str, position_us: Sequence[int], events_max: int | None) -> list[int]:
    """The event time that each generator has reached, or up to which a reader at its position in `position_us` gets at
    most its part of `events_max`.
    """
    part = None if events_max is None else max(1, events_max // len(locations))
    positions = zip(locations, position_us, strict=True)
    return [act(location, token, "frontier", position_us=from_us, events_max=part) for location, from_us in positions]


def common_cut(
    locations: Sequence[str],
    token: str,
    position_us: int,
    query: str = "",
    reader: str = "",
    events_max: int | None = None,
) -> int:
    """The next cut for a reader at `position_us`. It is equal for all readers of a query in one epoch.

    No later than the event time that all generators have reached, and than `events_max` events of all streams last.
    """
    reached_us = min(frontiers(locations, token, [position_us] * len(locations), events_max))
    times_us = {"position_us": position_us, "frontier_us": reached_us}
    return int(act(locations[0], token, "cut", query=query, reader=reader, **times_us))


def read_range(
    location: str,
    token: str,
    stream: str,
    from_us: int,
    to_us: int,
    columns: Sequence[str],
    batch: int,
    query: str = "",
    reader: int = 0,
) -> Iterator[pa.RecordBatch]:
    """The events of one partition in [from_us, to_us). `reader` is the number of the query's reader."""
    ticket = {
        "stream": stream, "from_us": from_us, "to_us": to_us, "columns": list(columns), "batch": batch,
        "query": query, "reader": reader,
    }  # fmt: skip
    for chunk in connect(location).do_get(flight.Ticket(json.dumps(ticket).encode()), call_options(token)):
        yield chunk.data


class Results(AbstractContextManager["Results"]):
    """Sends one task's results for one sink; the call opens with the first batch.

    `address` is query, batch, partition, attempt, sink. A context manager: on exit the recorder has all rows.
    """

    def __init__(self, location: str, token: str, address: dict[str, Any]) -> None:
        self._location, self._token, self._address = location, token, address
        self._put: Any = None
        self.rows = 0

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._put is None:
            return
        writer, reply = self._put
        with writer:
            if error is None:
                writer.done_writing()
                reply.read()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._put is None:
            descriptor = flight.FlightDescriptor.for_command(json.dumps(self._address).encode())
            self._put = connect(self._location).do_put(descriptor, batch.schema, call_options(self._token))
        self._put[0].write_batch(batch)
        self.rows += batch.num_rows


def send_results(location: str, token: str, address: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> int:
    """Sends one task's results for one sink. Returns the number of rows."""
    with Results(location, token, address) as results:
        for batch in batches:
            results.write(batch)
    return results.rows
