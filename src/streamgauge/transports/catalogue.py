"""The transports there are, by name. One more is a folder that fills the seam, and its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.transports.seam import Asked, Carrier, Held, Inlet, Listen, Outlet, Receiver


@dataclass(frozen=True)
class Transport:
    """What opens a transport's two ends on the driver's side."""

    open_outlet: Callable[[Listen, Held], Outlet]
    open_inlet: Callable[[Listen, Receiver], Inlet]


def _flight() -> Transport:
    from streamgauge.transports.flight.endpoint import FlightOutlet
    from streamgauge.transports.flight.inlet import FlightInlet

    return Transport(FlightOutlet, FlightInlet)


def _kafka() -> Transport:
    from streamgauge.transports.kafka.inlet import KafkaInlet
    from streamgauge.transports.kafka.outlet import KafkaOutlet

    return Transport(KafkaOutlet, KafkaInlet)


_TRANSPORTS: dict[str, Callable[[], Transport]] = {"flight": _flight, "kafka": _kafka}

STAMPS = ("flight",)
"""Those that see every hand-out, so that events carry the time of theirs. A broker hands out unseen."""

NAMES = tuple(_TRANSPORTS)


def transport(name: str) -> Transport:
    """A transport by its name, which is one of `NAMES`; only this loads its libraries."""
    return _TRANSPORTS[name]()


def require(name: str) -> None:
    """MachineError where this machine lacks what stands between a transport's ends, and cannot get it."""
    if name == "kafka":
        from streamgauge.transports.kafka.broker import require_jars

        require_jars()


def carrier(name: str) -> Callable[[Asked], Carrier] | None:
    """What opens that which stands between a transport's ends; None where nothing does."""
    if name != "kafka":
        return None
    from streamgauge.transports.kafka.carrier import KafkaCarrier

    return KafkaCarrier
