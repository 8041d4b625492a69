"""The transports there are, by name. One more is a folder that fills the seam, and its line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamgauge.errors import Problem
from streamgauge.options import Setting, problems_of
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


def _socket() -> Transport:
    from streamgauge.transports.flight.inlet import FlightInlet
    from streamgauge.transports.socket.outlet import SocketOutlet

    return Transport(SocketOutlet, FlightInlet)


_TRANSPORTS: dict[str, Callable[[], Transport]] = {"flight": _flight, "kafka": _kafka, "socket": _socket}

STAMPS = ("flight",)
"""Those that see every hand-out, so that events carry the time of theirs. A broker hands out unseen, and of what went
into a socket nobody knows when it is in a batch.
"""
BROKERED = ("kafka",)
"""Those whose ends meet at a place of its own."""

NAMES = tuple(_TRANSPORTS)


def transport(name: str) -> Transport:
    """A transport by its name, which is one of `NAMES`; only this loads its libraries."""
    return _TRANSPORTS[name]()


def settings(name: str) -> tuple[Setting, ...]:
    """What may be asked of a transport by options."""
    if name != "kafka":
        return ()
    from streamgauge.transports.kafka.settings import SETTINGS

    return SETTINGS


_INSTEAD = "leave it out, or --transport kafka"


def problems(name: str, options: Mapping[str, str]) -> list[Problem]:
    """What is wrong with a transport's options."""
    if name != "kafka":
        return list(problems_of(options, (), f"the transport {name}", "transport option", _INSTEAD))
    from streamgauge.transports.kafka.settings import problems

    return list(problems(options))


def found_anywhere(options: Mapping[str, str]) -> dict[str, str]:
    """Options with the whole paths of files; an empty one stays so, and is refused as what it is."""
    return {name: os.path.abspath(value) if name == "client" and value else value for name, value in options.items()}


def in_force(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Settings of the driver's end, as a result tells them."""
    if name != "kafka":
        return {}
    from streamgauge.transports.kafka.settings import KafkaSettings

    return {"producer": KafkaSettings.of(options).in_force}


def require(name: str, options: Mapping[str, str]) -> None:
    """MachineError where this machine lacks what stands between a transport's ends, and cannot get it."""
    if name == "kafka" and not options.get("brokers"):
        from streamgauge.transports.kafka.broker import require_jars

        require_jars()


def carrier(name: str) -> Callable[[Asked], Carrier] | None:
    """What opens that which stands between a transport's ends; None where nothing does."""
    if name != "kafka":
        return None
    from streamgauge.transports.kafka.carrier import KafkaCarrier

    return KafkaCarrier
