"""The transport for Spark's socket receivers, as the registry finds it. Results come back over Flight."""

from streamgauge.transports.memory.plugin import INLET
from streamgauge.transports.spi import Transport

# The driver does not observe when a batch reads from the socket: no `stamps`.
TRANSPORT = Transport("streamgauge.transports.socket.endpoint:SocketOutlet", INLET)
