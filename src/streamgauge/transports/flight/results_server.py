"""The Flight server beside the recorder: takes results (`do_put`), commits and what batches read (`do_action`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.flight as flight

from streamgauge.core.errors import DriverError
from streamgauge.transports.flight.access import TokenCheck
from streamgauge.transports.spi import EndpointConfig, Receiver

ACTION_FIELDS = {"commit": ("query", "batch", "accepted", "sinks"), "read": ("query", "batch", "positions")}
"""The fields that a SUT may report. It never reports times."""


class FlightInlet(flight.FlightServerBase):
    """Passes all calls with the run's token to a receiver."""

    def __init__(self, at: EndpointConfig, receiver: Receiver) -> None:
        super().__init__(f"grpc://{at.host}:{at.port}", middleware={"token": TokenCheck(at.token)})
        self._host, self._receiver = at.host, receiver

    @property
    def location(self) -> str:
        return f"grpc://{self._host}:{self.port}"

    def close(self) -> None:
        self.shutdown()

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
        do = getattr(self._receiver, action.type)
        yield json.dumps(do(*(body[name] for name in ACTION_FIELDS[action.type]))).encode()
