"""The data source at both edges of a Spark job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.io.flight_source import named
from streamgauge.engines.spark.job_settings import JobSettings
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.row_counts import RowCounting
from streamgauge.engines.spark.streaming_queries import StreamingQueries
from streamgauge.engines.spi import Edge, Edges
from tests.unit.engines.spark.test_job_settings import BOUGHT, MEAN, REVENUE


def test_named_sources_differ_by_nothing_but_their_names() -> None:
    one, other = named("one"), named("other")
    assert (one.name(), other.name()) == ("one", "other")
    assert one.streamReader is other.streamReader


class LoadReached(Exception):
    """Ends a test where a query would load its source."""


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_each_query_reads_a_source_of_its_own() -> None:
    """Queries that share one write to one map in Spark's JVM, each from its own thread; a session parses types."""
    registered: list[str] = []

    def formatted(name: str) -> Any:
        assert registered[-1] == name
        raise LoadReached

    session: Any = SimpleNamespace(
        dataSource=SimpleNamespace(register=lambda source: registered.append(source.name())),
        readStream=SimpleNamespace(format=formatted),
    )
    two = Flow((*REVENUE.sink("revenues").sinks, *MEAN.sink("means").sinks))
    edges = Edges((Edge("", ""),), Edge("", ""), {BOUGHT.node.name: ("pack", "price")})
    streaming = StreamingQueries(session, JobSettings(SparkJob(two, edges, {}, "local[1]", "", "")), RowCounting())
    for query in queries(two):
        with pytest.raises(LoadReached):
            streaming.start(query)
    assert len(set(registered)) == len(queries(two)) == 2
