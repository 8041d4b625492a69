"""The transport over Arrow Flight, as the registry finds it. Its libraries are loaded when an endpoint opens."""

from __future__ import annotations

from streamgauge.transports.spi import EndpointConfig, Inlet, Outlet, OutletConfig, Receiver, Transport


def _open_outlet(at: EndpointConfig, config: OutletConfig) -> Outlet:
    from streamgauge.transports.flight.endpoints import FlightOutlet

    return FlightOutlet(at, config)


def open_inlet(at: EndpointConfig, receiver: Receiver) -> Inlet:
    from streamgauge.transports.flight.endpoints import FlightInlet

    return FlightInlet(at, receiver)


TRANSPORT = Transport(_open_outlet, open_inlet, stamps=True)
