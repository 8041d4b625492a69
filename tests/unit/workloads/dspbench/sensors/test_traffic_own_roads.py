"""Traffic Monitoring on roads of one's own: by hand, by truth and by class, and the file in SQL against the reader."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle.process_operator import is_independent
from streamgauge.loadgen.datasets.gps_traces import read_roads
from streamgauge.workloads.dspbench.sensors.traffic_monitoring import file_in_sql, match_roads
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.helpers_refusals import assert_refused
from tests.unit.loadgen.datasets.test_road_map import line, written
from tests.unit.workloads.helpers_cuts import BOTH, answered, flow_of, made, table, without_truth


def lines(*each: Any) -> dict[str, Any]:
    return {"type": "MultiLineString", "coordinates": each}


def matcher(file: str) -> Flow:
    traces = source("traces", Schema.from_types(lat="double", lon="double", speed="double"))
    return match_roads(traces, 50, 20.0, file).sink("roads")


def answer(flow: Flow, rows: pa.Table) -> dict[int, dict[str, Any]]:
    return {row["event_id"]: row for row in answered(flow, {"traces": rows}).to_pylist()}


@BOTH
def test_the_nearest_road_of_a_file_by_hand(tmp_path: Path, variant: Any) -> None:
    """In the middle of the box, at the equator, 0.0001 degrees are 11.12 m in either direction."""
    point = {"type": "Point", "coordinates": [0.5, 0.5]}
    path = written(tmp_path, point, line([0, 0], [1, 0]), lines([[0, -0.5], [0.5, -0.5]], [[0.5, 0.5], [1, 0.5]]))
    places = [
        (0.0001, 0.5),  # 0: 11 m from road 1
        (0.0002, 0.5),  # 1: 22 m
        (-0.4999, 0.25),  # 2: the first line of road 2
        (0.4999, 0.75),  # 3: its second line
        (-0.4999, 0.75),  # 4: between its lines there is none
        (0.5, 0.4999),  # 5: 11 m before the second line
        (0.5, 0.4998),  # 6: 22 m before it
    ]
    rows = table([(*place, 50.0) for place in places], lat="float64", lon="float64", speed="float64")
    results = answer(variant(matcher(path)), rows)
    assert {number: row["road_id"] for number, row in results.items()} == {0: 1, 2: 2, 3: 2, 5: 2}


DEGREES = st.integers(0, 20_000).map(lambda number: 7 + number / 10_007)
POINTS = st.lists(st.tuples(DEGREES, DEGREES), min_size=1, max_size=5)
GEOMETRIES = st.one_of(
    st.none(),
    st.just({"type": "Point", "coordinates": [200, 0]}),
    POINTS.map(lambda points: line(*points)),
    st.lists(POINTS, max_size=3).map(lambda each: lines(*each)),
)


@given(st.lists(GEOMETRIES, max_size=6))
def test_sql_reads_the_same_roads(tmp_path_factory: pytest.TempPathFactory, geometries: list[Any]) -> None:
    """Every part, to the last bit."""
    path = written(tmp_path_factory.mktemp("roads"), *geometries, line([7, 7], [8, 8]))
    query = f"WITH {file_in_sql(path)} SELECT * FROM segments ORDER BY line, part"
    results = duckdb_session().sql(query).to_arrow_table()
    parts = read_roads(path).parts
    assert results["road_id"].to_pylist() == parts.road.tolist()
    for name, expected in zip(("ax", "ay", "dx", "dy"), (*parts.start.T, *parts.way.T), strict=True):
        assert np.array_equal(results[name].to_numpy(), expected), name


def test_made_traces_follow_the_roads_of_a_file(tmp_path: Path) -> None:
    """By truth and by class alike. Of a road on the border of the box half of the traces lie outside."""
    path = written(tmp_path, line([10, 50], [10.05, 50], [10.1, 50.1]), line([10, 50.2], [10.3, 50.2]))
    parameters = {"tm.map_matcher.shapefile": path, "tm.map_matcher.radius": 30, "taxis": 50}
    flow, inputs = made("traffic_monitoring", 10_000.0, 0.2, **parameters)
    results = answer(flow, inputs["traces"])
    assert {row["road_id"] for row in results.values()} == {0, 1}
    assert len(results) > 0.5 * len(inputs["traces"])
    assert answer(without_truth(flow), inputs["traces"]) == results
    assert is_independent(flow)


def test_streets_of_the_made_map_beside_a_file_are_refused(tmp_path: Path) -> None:
    """They would do nothing."""
    assert_refused(
        "set streets: belongs to the generated map",
        flow_of, "traffic_monitoring", map_matcher_shapefile=written(tmp_path, line([7, 7], [8, 8])), streets=50,
    )  # fmt: skip
