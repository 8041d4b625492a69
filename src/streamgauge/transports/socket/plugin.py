"""The transport for Spark's socket receivers, as the registry finds it. Results come back over Flight."""

from __future__ import annotations

from streamgauge.transports.flight.plugin import open_inlet
from streamgauge.transports.spi import EndpointConfig, Outlet, OutletConfig, Transport


def _open_outlet(at: EndpointConfig, config: OutletConfig) -> Outlet:
    from streamgauge.transports.socket.endpoint import SocketOutlet

    return SocketOutlet(at, config)


# The driver does not observe when a batch reads from the socket: no `stamps`.
TRANSPORT = Transport(_open_outlet, open_inlet)
