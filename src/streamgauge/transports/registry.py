"""The registry of transports. To add one, implement the interface in a package, and register its `plugin.py` here.

A second broker would also touch: the engines that read it (adapters, jars, transports and tuning profiles),
the hash of keys (`loadgen.random`), the stage of the time in a broker (`engines.latency_probe`), and the help of
`--transport` and `--brokers`. Programs of the user's own speak Kafka only.
"""

import os
from collections.abc import Mapping
from importlib import import_module

from streamgauge.core.errors import Problem
from streamgauge.core.plugin_options import problems_of
from streamgauge.transports.spi import Transport

_PLUGINS = {
    "flight": "streamgauge.transports.flight.plugin",
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

_CONFIGURABLE = " or ".join(name for name in NAMES if transport(name).settings)


def problems(name: str, options: Mapping[str, str]) -> list[Problem]:
    """The problems of a transport's options."""
    spec = transport(name)
    if spec.problems is not None:
        return list(spec.problems(options))
    way_out = f"leave it out, or use --transport {_CONFIGURABLE}"
    return list(problems_of(options, spec.settings, f"the transport {name}", "transport option", way_out))


def with_absolute_paths(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options with absolute file paths. An empty value stays empty, so that validation refuses it."""
    files = transport(name).files if name in NAMES else ()
    return {key: os.path.abspath(value) if key in files and value else value for key, value in options.items()}
