"""The transport over Arrow Flight, as the registry finds it."""

from streamgauge.transports.spi import Transport

INLET = "streamgauge.transports.flight.endpoints:FlightInlet"
TRANSPORT = Transport("streamgauge.transports.flight.endpoints:FlightOutlet", INLET, stamps=True)
