"""The transport over Arrow Flight, as the registry finds it."""

from streamgauge.transports.spi import Transport

INLET = "streamgauge.transports.memory.endpoints:FlightInlet"
TRANSPORT = Transport("streamgauge.transports.memory.endpoints:FlightOutlet", INLET, stamps=True)
