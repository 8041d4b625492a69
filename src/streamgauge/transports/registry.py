"""The registry of transports. To add one, implement the interface in a package and register it here.

A second broker would also touch: Spark's adapters (`engines.spark.io.registry`) and its jars
(`engines.spark.session.connectors`), the transports and tuning profiles of engines, the hash of keys
(`loadgen.random.key_hash`), the stage of the time in a broker (`engines.latency_probe`), and the help of `--transport`
and `--brokers`. Programs of the user's own speak Kafka only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamgauge.core.errors import Problem
from streamgauge.core.plugin_options import CLIENT_FILE, Setting, problems_of
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
    """A transport in the registry. Only the `open_*` functions load its libraries.

    - `open_outlet`, `open_inlet`: open the two endpoints on the driver's side.
    - `open_broker`: starts or connects the broker; None without a broker.
    - `stamps`: whether it observes every delivery, so that events carry an ingest time.
    - `settings`: its options. `files`: those that name user files.
    - `problems`: additional validation of options.
    - `effective_settings`: settings for the result.
    - `require`: raises MachineError if this machine lacks what it needs and cannot get it, and InputError if named
      brokers do not answer.
    """

    open_outlet: Callable[[EndpointConfig, OutletConfig], Outlet]
    open_inlet: Callable[[EndpointConfig, Receiver], Inlet]
    open_broker: Callable[[BrokerRequest], ManagedBroker] | None = None
    stamps: bool = False
    settings: tuple[Setting, ...] = ()
    files: tuple[str, ...] = ()
    problems: Callable[[Options], Iterable[Problem]] | None = None
    effective_settings: Callable[[Options], dict[str, str]] = lambda _: {}
    require: Callable[[Options], None] = lambda _: None


def _flight() -> Transport:
    def outlet(at: EndpointConfig, config: OutletConfig) -> Outlet:
        from streamgauge.transports.flight.endpoints import FlightOutlet

        return FlightOutlet(at, config)

    return Transport(outlet, _flight_inlet, stamps=True)


def _flight_inlet(at: EndpointConfig, receiver: Receiver) -> Inlet:
    from streamgauge.transports.flight.endpoints import FlightInlet

    return FlightInlet(at, receiver)


def _kafka() -> Transport:
    from streamgauge.transports.kafka.settings import SETTINGS, KafkaSettings, problems

    def outlet(at: EndpointConfig, config: OutletConfig) -> Outlet:
        from streamgauge.transports.kafka.outlet import KafkaOutlet

        return KafkaOutlet(at, config)

    def inlet(at: EndpointConfig, receiver: Receiver) -> Inlet:
        if at.program is not None:
            from streamgauge.transports.kafka.program_inlet import ProgramInlet

            return ProgramInlet(at, receiver)
        from streamgauge.transports.kafka.inlet import KafkaInlet

        return KafkaInlet(at, receiver)

    def broker(request: BrokerRequest) -> ManagedBroker:
        from streamgauge.transports.kafka.cluster import KafkaCluster

        return KafkaCluster(request)

    def effective_settings(options: Options) -> dict[str, str]:
        return {"producer": KafkaSettings.from_options(options).effective_settings}

    def require(options: Options) -> None:
        if options.get("brokers"):
            from streamgauge.transports.kafka.admin import require_brokers

            settings = KafkaSettings.from_options(options)
            require_brokers(settings.brokers, settings.login)
        else:
            from streamgauge.transports.kafka.broker import require_jars

            require_jars()

    # The driver does not observe a broker's deliveries: no `stamps`.
    return Transport(
        outlet, inlet, broker, settings=SETTINGS, files=(CLIENT_FILE,), problems=problems,
        effective_settings=effective_settings, require=require,
    )  # fmt: skip


def _socket() -> Transport:
    def outlet(at: EndpointConfig, config: OutletConfig) -> Outlet:
        from streamgauge.transports.socket.endpoint import SocketOutlet

        return SocketOutlet(at, config)

    # The driver does not observe when a batch reads from the socket: no `stamps`.
    return Transport(outlet, _flight_inlet)


_TRANSPORTS: dict[str, Callable[[], Transport]] = {"flight": _flight, "kafka": _kafka, "socket": _socket}

NAMES = tuple(_TRANSPORTS)


def transport(name: str) -> Transport:
    """A transport by its name, which is one of `NAMES`."""
    return _TRANSPORTS[name]()


STAMPS = tuple(name for name in NAMES if transport(name).stamps)
"""Transports that observe every delivery."""
BROKERED = tuple(name for name in NAMES if transport(name).open_broker is not None)
"""Transports with a broker."""

_CONFIGURABLE = " or ".join(name for name in NAMES if transport(name).settings)


def problems(name: str, options: Options) -> list[Problem]:
    """The problems of a transport's options."""
    spec = transport(name)
    if spec.problems is not None:
        return list(spec.problems(options))
    way_out = f"leave it out, or use --transport {_CONFIGURABLE}"
    return list(problems_of(options, spec.settings, f"the transport {name}", "transport option", way_out))


def with_absolute_paths(name: str, options: Options) -> dict[str, str]:
    """Options with absolute file paths. An empty value stays empty, so that validation refuses it."""
    files = transport(name).files if name in NAMES else ()
    return {key: os.path.abspath(value) if key in files and value else value for key, value in options.items()}
