"""The transports there are, by name. One more is a folder that fills the seam, and its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.transports.seam import Held, Inlet, Listen, Outlet, Receiver


@dataclass(frozen=True)
class Transport:
    """What opens a transport's two ends on the driver's side."""

    open_outlet: Callable[[Listen, Held], Outlet]
    open_inlet: Callable[[Listen, Receiver], Inlet]


def _flight() -> Transport:
    from streamgauge.transports.flight.endpoint import FlightOutlet
    from streamgauge.transports.flight.inlet import FlightInlet

    return Transport(FlightOutlet, FlightInlet)


_TRANSPORTS: dict[str, Callable[[], Transport]] = {"flight": _flight}

NAMES = tuple(_TRANSPORTS)


def transport(name: str) -> Transport:
    """A transport by its name, which is one of `NAMES`; only this loads its libraries."""
    return _TRANSPORTS[name]()
