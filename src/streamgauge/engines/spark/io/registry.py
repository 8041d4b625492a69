"""The registry of transport adapters. Only the adapter of the job's transport is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamgauge.engines.spark.io.spi import TransportAdapter
from streamgauge.engines.spi import Edges

Options = Mapping[str, str]


def _flight(edges: Edges, options: Options) -> TransportAdapter:
    from streamgauge.engines.spark.io.flight import FlightAdapter

    return FlightAdapter(edges, options)


def _kafka(edges: Edges, options: Options) -> TransportAdapter:
    from streamgauge.engines.spark.io.kafka_adapter import KafkaAdapter

    return KafkaAdapter(edges, options)


ADAPTERS: Mapping[str, Callable[[Edges, Options], TransportAdapter]] = {"flight": _flight, "kafka": _kafka}
"""Those of micro-batch mode, by transport. Sockets have only DStream's receivers."""


def adapter_for(edges: Edges, options: Options) -> TransportAdapter:
    """The adapter of the job's transport. `options` are the engine's."""
    return ADAPTERS[edges.transport](edges, options)
