"""The adapter of each transport."""

from __future__ import annotations

import pytest

from streamgauge.engines.spark.io.flight import FlightAdapter
from streamgauge.engines.spark.io.kafka_adapter import KafkaAdapter
from streamgauge.engines.spark.io.registry import ADAPTERS, adapter_for
from streamgauge.engines.spark.options import CAPABILITIES, REDACTION
from streamgauge.engines.spi import Edge, Edges


def edges(transport: str, **options: str) -> Edges:
    return Edges((), Edge("", ""), {}, transport=transport, transport_options=options)


def test_every_transport_that_the_engine_claims_has_an_adapter() -> None:
    assert set(ADAPTERS) == set(CAPABILITIES.transports)
    assert type(adapter_for(edges("flight"), {})) is FlightAdapter
    assert type(adapter_for(edges("kafka"), {})) is KafkaAdapter


@pytest.mark.parametrize(
    ("transport", "options", "expected"),
    [("flight", {}, {}), ("kafka", {}, {}), ("kafka", {"client": "login.properties"}, REDACTION)],
)
def test_credentials_are_hidden_where_clients_log_in(
    transport: str, options: dict[str, str], expected: dict[str, str]
) -> None:
    assert adapter_for(edges(transport, **options), {}).configuration() == expected
