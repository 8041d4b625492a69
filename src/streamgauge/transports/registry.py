"""The transports there are, by name. One more is a folder that implements the interface, and its entry here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamgauge.core.errors import Problem
from streamgauge.core.options import Setting, problems_of
from streamgauge.transports.spi import (
    BrokerRequest,
    EndpointConfig,
    Inlet,
    ManagedBroker,
    Outlet,
    OutletConfig,
    Receiver,
)

Options = Mapping[str, str]


@dataclass(frozen=True)
class Transport:
    """A transport as the catalogue has it: what opens its two ends on the driver's side, which alone loads its
    libraries, and what is to be known before.

    `open_broker` opens what stands between both ends; None where nothing does. `stamps`: it sees every hand-out, so
    that events carry the time of theirs. `settings` are its options, of which `files` name files of the user's;
    `problems` says what is wrong with those given, where names and choices are not all. `in_force` are its settings as
    a result tells them. `require` raises MachineError where this machine lacks what it needs, and cannot get it.
    """

    open_outlet: Callable[[EndpointConfig, OutletConfig], Outlet]
    open_inlet: Callable[[EndpointConfig, Receiver], Inlet]
    open_broker: Callable[[BrokerRequest], ManagedBroker] | None = None
    stamps: bool = False
    settings: tuple[Setting, ...] = ()
    files: tuple[str, ...] = ()
    problems: Callable[[Options], Iterable[Problem]] | None = None
    in_force: Callable[[Options], dict[str, str]] = lambda _: {}
    require: Callable[[Options], None] = lambda _: None


def _flight() -> Transport:
    def outlet(at: EndpointConfig, held: OutletConfig) -> Outlet:
        from streamgauge.transports.flight.endpoint import FlightOutlet

        return FlightOutlet(at, held)

    return Transport(outlet, _flight_inlet, stamps=True)


def _flight_inlet(at: EndpointConfig, receiver: Receiver) -> Inlet:
    from streamgauge.transports.flight.inlet import FlightInlet

    return FlightInlet(at, receiver)


def _kafka() -> Transport:
    from streamgauge.transports.kafka.client.settings import SETTINGS, KafkaSettings, problems

    def outlet(at: EndpointConfig, held: OutletConfig) -> Outlet:
        from streamgauge.transports.kafka.client.outlet import KafkaOutlet

        return KafkaOutlet(at, held)

    def inlet(at: EndpointConfig, receiver: Receiver) -> Inlet:
        from streamgauge.transports.kafka.client.inlet import KafkaInlet

        return KafkaInlet(at, receiver)

    def broker(request: BrokerRequest) -> ManagedBroker:
        from streamgauge.transports.kafka.broker.cluster import KafkaCluster

        return KafkaCluster(request)

    def in_force(options: Options) -> dict[str, str]:
        return {"producer": KafkaSettings.of(options).in_force}

    def require(options: Options) -> None:
        if not options.get("brokers"):
            from streamgauge.transports.kafka.broker.broker import require_jars

            require_jars()

    # A broker hands out unseen: no `stamps`.
    return Transport(
        outlet, inlet, broker, settings=SETTINGS, files=("client",), problems=problems, in_force=in_force,
        require=require,
    )  # fmt: skip


def _socket() -> Transport:
    def outlet(at: EndpointConfig, held: OutletConfig) -> Outlet:
        from streamgauge.transports.socket.outlet import SocketOutlet

        return SocketOutlet(at, held)

    # Of what went into a socket nobody knows when it is in a batch: no `stamps`.
    return Transport(outlet, _flight_inlet)


_TRANSPORTS: dict[str, Callable[[], Transport]] = {"flight": _flight, "kafka": _kafka, "socket": _socket}

NAMES = tuple(_TRANSPORTS)


def transport(name: str) -> Transport:
    """A transport by its name, which is one of `NAMES`."""
    return _TRANSPORTS[name]()


STAMPS = tuple(name for name in NAMES if transport(name).stamps)
"""Those that see every hand-out."""
BROKERED = tuple(name for name in NAMES if transport(name).open_broker is not None)
"""Those whose ends meet at a place of its own."""

_ALTERNATIVES = "leave it out, or --transport kafka"


def problems(name: str, options: Options) -> list[Problem]:
    """What is wrong with a transport's options."""
    there = transport(name)
    if there.problems is not None:
        return list(there.problems(options))
    return list(problems_of(options, there.settings, f"the transport {name}", "transport option", _ALTERNATIVES))


def with_absolute_paths(name: str, options: Options) -> dict[str, str]:
    """Options with the whole paths of files; an empty one stays so, and is refused as what it is."""
    files = transport(name).files if name in NAMES else ()
    return {key: os.path.abspath(value) if key in files and value else value for key, value in options.items()}
