"""The Flight server beside a generator: hands out what its queue holds, and keeps the common cut of all streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from streamgauge.errors import DriverError
from streamgauge.transports.flight.aborts import WATCH, WatchReads
from streamgauge.transports.flight.access import TokenCheck
from streamgauge.transports.flight.queue import FlightQueue
from streamgauge.transports.seam import Held, Listen


class FlightOutlet(FlightQueue):
    """A generator's queue with its server: what is offered here can be read there."""

    def __init__(self, at: Listen, held: Held) -> None:
        super().__init__(tuple(held.schemas), held.bound_us, held.bytes_max, held.now_us)
        self._host = at.host
        self._endpoint = Endpoint(self, held.schemas, at.token, at.host, at.port)

    @property
    def location(self) -> str:
        return f"grpc://{self._host}:{self._endpoint.port}"


class Endpoint(flight.FlightServerBase):
    """Serves one queue. `do_get` takes a JSON ticket: stream, from_us, to_us, columns, batch, query, reader."""

    def __init__(self, queue: FlightQueue, schemas: dict[str, pa.Schema], token: str, host: str, port: int) -> None:
        middleware = {"token": TokenCheck(token), WATCH: WatchReads(queue.note_aborted)}
        super().__init__(f"grpc://{host}:{port}", middleware=middleware)
        self._queue, self._schemas = queue, schemas
        self._cuts = Cuts()
        self._actions: dict[str, Callable[..., Any]] = {"frontier": self._frontier, "cut": self._cuts.agree}

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.RecordBatchStream:
        context.get_middleware(WATCH).read(context)
        asked = json.loads(ticket.ticket)
        columns = tuple(asked.pop("columns"))
        try:
            batches = self._queue.take(columns=columns, **asked)
        except DriverError as error:
            raise flight.FlightServerError(str(error)) from None
        full = self._schemas[asked["stream"]]
        schema = pa.schema([full.field(name) for name in columns])
        # A table's stream runs in C++ without the interpreter's lock; a generator of batches would be ten times slower.
        return flight.RecordBatchStream(pa.Table.from_batches(batches, schema))

    def do_action(self, context: Any, action: flight.Action) -> Iterator[bytes]:
        arguments = json.loads(action.body.to_pybytes() or b"{}")
        yield json.dumps(self._actions[action.type](**arguments)).encode()

    def _frontier(self) -> int:
        return self._queue.frontier()


class Cuts:
    """One cut per epoch for all streams of a query: the stream that asks first moves it, the others get the same.

    Queries of one job go each at its own pace, so each has cuts of its own. A stream asks with the position it has;
    whoever stands at the current cut has finished the epoch and opens the next one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current_us: dict[str, int] = {}

    def agree(self, position_us: int, frontier_us: int, query: str = "") -> int:
        with self._lock:
            if position_us >= self._current_us.get(query, 0):
                self._current_us[query] = max(frontier_us, position_us)
            return self._current_us[query]
