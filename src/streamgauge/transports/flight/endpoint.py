"""The Flight server beside a generator: delivers events from its queue, and keeps the common cut of all streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from streamgauge.core.errors import DriverError
from streamgauge.transports.flight.aborts import WATCH, WatchReads
from streamgauge.transports.flight.access import TokenCheck
from streamgauge.transports.flight.queue import FlightQueue
from streamgauge.transports.spi import EndpointConfig, OutletConfig


class FlightOutlet(FlightQueue):
    """A generator's queue with its server."""

    def __init__(self, at: EndpointConfig, config: OutletConfig) -> None:
        super().__init__(tuple(config.schemas), config.bound_us, config.bytes_max, config.now_us)
        self._host = at.host
        self._endpoint = Endpoint(self, config.schemas, at.token, at.host, at.port)

    @property
    def location(self) -> str:
        return f"grpc://{self._host}:{self._endpoint.port}"

    def extra_columns(self, _: str) -> tuple[str, ...]:
        return ()

    def prepared(self, _: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Unchanged: Flight sends Arrow data."""
        return batch


class Endpoint(flight.FlightServerBase):
    """Serves one queue. `do_get` takes a JSON ticket: stream, from_us, to_us, columns, batch, query, reader."""

    def __init__(self, queue: FlightQueue, schemas: dict[str, pa.Schema], token: str, host: str, port: int) -> None:
        middleware = {"token": TokenCheck(token), WATCH: WatchReads(queue.note_aborted)}
        super().__init__(f"grpc://{host}:{port}", middleware=middleware)
        self._queue, self._schemas = queue, schemas
        self._cuts = Cuts()
        self._actions: dict[str, Callable[..., Any]] = {"frontier": self._frontier, "cut": self._cuts.agree}

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.RecordBatchStream:
        request = json.loads(ticket.ticket)
        columns = tuple(request.pop("columns"))
        try:
            with self._queue.delivering:
                batches = self._queue.take(columns=columns, **request)
        except DriverError as error:
            raise flight.FlightServerError(str(error)) from None
        full = self._schemas[request["stream"]]
        schema = pa.schema([full.field(name) for name in columns])
        # A table's reader runs in C++ without the GIL; a Python generator of batches is ten times slower.
        reader = pa.Table.from_batches(batches, schema).to_reader()
        context.get_middleware(WATCH).read(context, reader)
        return flight.RecordBatchStream(reader)

    def do_action(self, context: Any, action: flight.Action) -> Iterator[bytes]:
        arguments = json.loads(action.body.to_pybytes() or b"{}")
        yield json.dumps(self._actions[action.type](**arguments)).encode()

    def _frontier(self) -> int:
        return self._queue.frontier()


class Cuts:
    """One cut per epoch for all readers of a query. Its first reader moves the cut; the others get the same one.

    Each query has separate cuts. An engine asks its readers once per epoch in a fixed order. If every reader moved the
    cut, one that asks after a new chunk would be an epoch ahead. A reader beyond the cut (after a restart) is never
    sent back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current_us: dict[str, int] = {}
        self._leaders: dict[str, str] = {}

    def agree(self, position_us: int, frontier_us: int, query: str = "", reader: str = "") -> int:
        with self._lock:
            current_us = max(self._current_us.get(query, 0), position_us)
            if reader == self._leaders.setdefault(query, reader):
                current_us = max(current_us, frontier_us)
            self._current_us[query] = current_us
            return current_us
