"""The Flight servers on the driver's side: beside a generator, and beside the recorder.

`FlightOutlet` delivers events from its queue, and keeps the common cut of all streams. It detects aborted reads: the
reader died or gave up. The server sees remaining batches or a cancelled call. The cancellation may become visible only
after the call, so both are checked. A short range that was already sent is not always detected, but a retried task is
seen as a redelivery.

`FlightInlet` takes results (`do_put`), commits and what batches read (`do_action`).
"""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from streamgauge.core.errors import DriverError
from streamgauge.transports.memory.client import TokenCheck
from streamgauge.transports.memory.queue import FlightQueue
from streamgauge.transports.spi import EndpointConfig, OutletConfig, Receiver

WATCH = "aborts"


class Watch(flight.ServerMiddleware):
    """Watches one call. `read` marks it as a read; at its end, `aborted` is called if it was incomplete."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        self._aborted = aborted
        self._read: tuple[Any, pa.RecordBatchReader] | None = None

    def read(self, context: Any, batches: pa.RecordBatchReader) -> None:
        self._read = context, batches

    def call_completed(self, exception: Any) -> None:
        # The context is only valid until this returns.
        read, self._read = self._read, None
        if read is not None and (read[0].is_cancelled() or next(iter(read[1]), None) is not None):
            self._aborted()


class WatchReads(flight.ServerMiddlewareFactory):
    """Calls `aborted` for every aborted read."""

    def __init__(self, aborted: Callable[[], None]) -> None:
        self._aborted = aborted

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> flight.ServerMiddleware:
        return Watch(self._aborted)


class FlightOutlet(FlightQueue, flight.FlightServerBase):
    """Serves its queue. `do_get` takes a JSON ticket: stream, from_us, to_us, columns, batch, query, reader."""

    def __init__(self, at: EndpointConfig, config: OutletConfig) -> None:
        FlightQueue.__init__(self, config)
        middleware = {"token": TokenCheck(at.token), WATCH: WatchReads(self.note_aborted)}
        flight.FlightServerBase.__init__(self, f"grpc://{at.host}:{at.port}", middleware=middleware)
        self.location = f"grpc://{at.host}:{self.port}"
        self._actions: dict[str, Callable[..., Any]] = {"frontier": self.frontier_within, "cut": Cuts().agree}

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.RecordBatchStream:
        request = json.loads(ticket.ticket)
        columns = tuple(request.pop("columns"))
        try:
            with self.delivering:
                batches = self.take(columns=columns, **request)
        except DriverError as error:
            raise flight.FlightServerError(str(error)) from None
        schema = pa.schema([self._config.schemas[request["stream"]].field(name) for name in columns])
        # A table's reader runs in C++ without the GIL; a Python generator of batches is ten times slower.
        reader = pa.Table.from_batches(batches, schema).to_reader()
        context.get_middleware(WATCH).read(context, reader)
        return flight.RecordBatchStream(reader)

    def do_action(self, context: Any, action: flight.Action) -> Iterator[bytes]:
        arguments = json.loads(action.body.to_pybytes() or b"{}")
        yield json.dumps(self._actions[action.type](**arguments)).encode()


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


ACTION_FIELDS = {"commit": ("query", "batch", "accepted", "sinks"), "read": ("query", "batch", "positions")}
"""The fields that a SUT may report. It never reports times."""


class FlightInlet(flight.FlightServerBase):
    """Passes all calls with the run's token to a receiver."""

    def __init__(self, at: EndpointConfig, receiver: Receiver) -> None:
        super().__init__(f"grpc://{at.host}:{at.port}", middleware={"token": TokenCheck(at.token)})
        self._receiver = receiver
        self.location = f"grpc://{at.host}:{self.port}"

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        try:
            self._receiver.receive(json.loads(descriptor.command), reader.schema, (chunk.data for chunk in reader))
        except DriverError as error:
            raise flight.FlightServerError(str(error)) from None
        writer.write(b"kept")

    def do_action(self, context: Any, action: flight.Action) -> Iterator[bytes]:
        if action.type not in ACTION_FIELDS:
            raise flight.FlightServerError(f"no such action: {action.type}")
        body = json.loads(action.body.to_pybytes())
        fields = (body[name] for name in ACTION_FIELDS[action.type])
        yield json.dumps(getattr(self._receiver, action.type)(*fields)).encode()
