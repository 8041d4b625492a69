"""The four topologies of Ehrenstein 2020 on Spark against the oracle, in one session and as streams. Whole trials of
them: `tests/engine_conformance/spark_trials/test_applications.py`.
"""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from streamgauge.core.clock import US
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle import lowering as lower
from streamgauge.workloads import registry
from tests.engine_conformance.spark_session.helpers_spark_session import cut, events, streamed
from tests.helpers_times import us_of
from tests.unit.workloads.scalability.helpers_topologies import RATE, measured

pytestmark = pytest.mark.spark
TOPOLOGIES: dict[str, dict[str, str]] = {
    "scalability_sink": {"keys": "4"},
    "scalability_hierarchical": {"height": "2", "range": "1s"},
    "scalability_tumbling": {"keys": "4", "range": "1s"},
    "scalability_hopping": {"keys": "4", "range": "2s", "period": "1s"},
}
SPAN_S, TAIL_S = 8, (12, 16, 20)
CUTS_S = (3, 6, 40)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_topology_is_the_oracles_answer(spark: Any, tmp_path: Path, name: str) -> None:
    """Every result of the span once; the events of the tail only close its windows."""
    workload = registry.get(name)
    flow = with_lineage(workload.build(workload.read(TOPOLOGIES[name]), RATE).flow)
    (source,) = graph.sources(flow)
    rows = [*measured(7, 4, 200, SPAN_S * US), *((0, 0, second * US) for second in TAIL_S)]
    given = events(source.schema, 0, [(*row, row[-1]) for row in rows])
    found = streamed(spark, flow, tmp_path, {source.name: cut(given, CUTS_S)})
    batches = [of_the_span(flow, batch) for batch in found.batches]
    expected = of_the_span(flow, answer(flow, given.select(list(needed_columns(flow)[source.name]))))
    assert len(expected) > 10
    assert len([batch for batch in batches if batch]) > 1, "one batch proves nothing"
    assert sorted((row for batch in batches for row in batch), key=repr) == sorted(expected, key=repr)


def answer(flow: Flow, rows: Any) -> list[tuple[Any, ...]]:
    """The oracle's."""
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("given", rows)
        return con.execute(lower.sql(flow, {"measurements": "given"})).fetchall()


def of_the_span(flow: Flow, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """With times in microseconds."""
    place = list(schema.columns(flow.sink.input)).index("event_time")
    plain = [tuple(us_of(value) for value in row) for row in rows]
    return [row for row in plain if row[place] < SPAN_S * US]


def test_every_topology_is_tried() -> None:
    """None is forgotten above."""
    assert set(TOPOLOGIES) == {name for name in registry.names() if name.startswith("scalability_")}
