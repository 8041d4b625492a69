"""The registry of transports. To add one, implement the interface in a package, and register its `plugin.py` here.

A second broker would also touch: the engines that read it (adapters, jars, transports and tuning profiles),
the hash of keys (`loadgen.random`), the stage of the time in a broker (`engines.latency_probe`), and the help of
`--transport` and `--brokers`. Programs of the user's own speak Kafka only.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module

from streamgauge.core.errors import Problem, nearest
from streamgauge.core.machine_check import port_problem
from streamgauge.core.plugin_options import problems_of
from streamgauge.transports.spi import Transport

_PLUGINS = {
    "memory": "streamgauge.transports.memory.plugin",
    "kafka": "streamgauge.transports.kafka.plugin",
    "socket": "streamgauge.transports.socket.plugin",
}
"""The module of each transport, with its `TRANSPORT`. By name, because transports import the interface beside this."""

NAMES = tuple(_PLUGINS)


def transport(name: str) -> Transport:
    """A transport by its name, which is one of `NAMES`."""
    return import_module(_PLUGINS[name]).TRANSPORT


STAMPS = tuple(name for name in NAMES if transport(name).stamps)
"""Transports that observe every delivery."""
BROKERED = tuple(name for name in NAMES if transport(name).broker)
"""Transports with a broker."""


def problems(name: str, options: Mapping[str, str]) -> list[Problem]:
    """The problems of a transport's options."""
    spec = transport(name)
    if spec.problems is not None:
        return list(spec.problems(options))
    way_out = f"leave it out, or use --transport {' or '.join(one for one in NAMES if transport(one).settings)}"
    return list(problems_of(options, spec.settings, f"the transport {name}", "transport option", way_out))


def choice_problems(
    name: str, options: Mapping[str, str], port: int | None, readable: Sequence[str], reader: str
) -> list[Problem]:
    """The problems of a transport that the engine `reader` shall read, which can read the `readable` ones."""
    if name not in NAMES:
        rule, way_out = f"must be one of {', '.join(NAMES)}", f"--transport {nearest(name, NAMES)}"
        found = [Problem("transport", rule, name, way_out)]
    elif name not in readable:
        rule = f"must be one that {reader} can read: {', '.join(readable)}"
        found = [Problem("transport", rule, name, f"--transport {readable[0]}")]
    else:
        found = problems(name, options)
    if name in BROKERED and port is not None:
        rule = f"does not apply to the transport {name}: its broker takes a free port"
        found.append(Problem("port", rule, port, "leave --port out"))
    return found


LOOPBACK = "127.0.0.1"


def port_problems(address: str, first: int | None, number: int, prometheus: int | None) -> Iterator[Problem]:
    """An address of another machine, else the first of the driver's ports that is not free; and Prometheus's port.

    The driver takes `number` ports from `first` on. An empty address is refused elsewhere.
    """
    ports = range(first, first + number) if first is not None else range(0)
    if address:
        if reason := port_problem(address, 0):
            yield Problem("bind", f"must be an address of this machine ({reason})", address, "--bind 127.0.0.1")
        else:
            yield from _busy(address, "port", ports, "leave --port out to use free ports")
    way_out = "--prometheus with another port"
    if prometheus in ports:
        rule = f"must differ from the driver's own ports, {ports[0]} to {ports[-1]}"
        yield Problem("prometheus", rule, prometheus, way_out)
    elif prometheus is not None:
        yield from _busy(LOOPBACK, "prometheus", [prometheus], way_out)


def _busy(host: str, setting: str, ports: Iterable[int], way_out: str) -> Iterator[Problem]:
    """The first of the ports that is not free."""
    for port in ports:
        if reason := port_problem(host, port):
            yield Problem(setting, f"must be free on {host} ({reason})", port, way_out)
            return


def with_absolute_paths(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options with absolute file paths. An empty value stays empty, so that validation refuses it."""
    files = transport(name).files if name in NAMES else ()
    return {key: os.path.abspath(value) if key in files and value else value for key, value in options.items()}
