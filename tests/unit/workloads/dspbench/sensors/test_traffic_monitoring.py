"""Traffic Monitoring: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.dataflow.operators.api import TIME
from streamgauge.engines.operator_runtime import OperatorRuntime
from streamgauge.loadgen.datasets.gps_traces import BOX, SPEED_GRID, roads
from streamgauge.workloads.dspbench.sensors.traffic_monitoring import (
    BLOCK_SPEEDS,
    SPEED_MAX,
    WINDOW_MAX,
    average_speeds,
    is_near,
    map_in_sql,
    match_roads,
)
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.loadgen.datasets.helpers_degrees import to_degrees
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, answered, made, results_in_batches, table, without_truth

Point = tuple[float, float]
"""Metres east and north of the box's corner."""
Reading = tuple[int, float]
"""(road, speed); the n-th has event time and event id n."""


flow_of = partial(helpers_cuts.flow_of, "traffic_monitoring")
READING = {"road_id": "int32", "speed": "float64"}


def matcher(streets: int, radius: float) -> Flow:
    traces = source("traces", Schema.from_types(lat="double", lon="double", speed="double"))
    return match_roads(traces, streets, radius).sink("roads")


def calculator(window: int = 30) -> Flow:
    return average_speeds(source("readings", Schema.from_types(road_id="int", speed="double")), window).sink("speeds")


def answer(flow: Flow, stream: str, rows: pa.Table) -> list[dict[str, Any]]:
    """The results by event id."""
    return answered(flow, {stream: rows}).to_pylist()


def traces_at(places: list[Point]) -> pa.Table:
    """Traces of 50 km/h at places of the plane."""
    metres = np.array(places, np.float64).reshape(-1, 2)
    return trace_table([(*degrees, 50.0) for degrees in zip(*to_degrees(*metres.T), strict=True)])


def trace_table(rows: Sequence[Sequence[float | None]]) -> pa.Table:
    return table(rows, lat="float64", lon="float64", speed="float64")


def roads_of(flow: Flow, places: list[Point]) -> dict[int, int]:
    """Number of a place to its road, of those that have one."""
    return {row["event_id"]: row["road_id"] for row in answer(flow, "traces", traces_at(places))}


def averages(flow: Flow, readings: list[Reading]) -> dict[int, tuple[int, float, int]]:
    """Number of a reading to (road, average, count), of those that were accepted."""
    results = answer(flow, "readings", table(readings, **READING))
    return {row["event_id"]: (row["road_id"], row["average_speed"], row["count"]) for row in results}


@pytest.mark.parametrize("streets", [2, 3, 7, 50, 200])
def test_sql_comes_to_the_same_map(streets: int) -> None:
    """Every part of every road, to the last bit."""
    query = f"WITH {map_in_sql(streets)} SELECT * FROM segments ORDER BY road_id, part"
    results = duckdb_session().sql(query).to_arrow_table()
    vertices = roads(streets)
    assert results["road_id"].to_pylist() == [road for road in range(len(vertices)) for _ in range(3)]
    start, way = vertices[:, :-1].reshape(-1, 2), np.diff(vertices, axis=1).reshape(-1, 2)
    for name, expected in zip(("ax", "ay", "dx", "dy"), (*start.T, *way.T), strict=True):
        assert np.array_equal(results[name].to_numpy(), expected), name


@BOTH
def test_a_trace_belongs_to_the_nearest_road_within_the_radius(variant: Any) -> None:
    """On the map of two streets each way; road 0 and road 2 begin at the crossing (13620, 12639)."""
    flow = variant(matcher(2, 11.18))
    crossing = np.array([13_620.0, 12_639.0])
    assert roads(2)[[0, 2], 0].tolist() == [crossing.tolist()] * 2
    (east_to, north_to) = roads(2)[0, 1] - crossing, roads(2)[2, 1] - crossing

    def beside(way_: Any, along: float, off: float) -> Point:
        """`along` metres along the way and `off` to its left."""
        unit = way_ / math.hypot(*way_)
        return tuple(crossing + along * unit + off * np.array([-unit[1], unit[0]]))

    places = [
        (13_617.0, 12_635.0),  # 0: 5 m from the crossing, by which both roads are equally far: the smaller number
        (13_611.0, 12_627.0),  # 1: 15 m from it
        (13_612.0, 12_632.0),  # 2: sqrt(64 + 49) = 10.63 m from it
        (13_612.0, 12_631.0),  # 3: sqrt(64 + 64) = 11.31 m from it
        beside(east_to, 200.0, 11.0),  # 4
        beside(east_to, 200.0, -11.0),  # 5
        beside(east_to, 200.0, 11.3),  # 6: too far
        beside(north_to, 200.0, 11.0),  # 7
        beside(north_to, 200.0, -11.3),  # 8: too far
        beside(north_to, 8.0, 1.0),  # 9: nearer to road 2 than to road 0
        (24_000.0, 24_000.0),  # 10: nowhere near
    ]
    assert roads_of(flow, places) == {0: 0, 2: 0, 4: 0, 5: 0, 7: 2, 9: 2}
    assert roads_of(variant(matcher(2, 4.999)), places[:1]) == {}
    assert roads_of(variant(matcher(2, 5.001)), places[:1]) == {0: 0}
    assert roads_of(variant(matcher(2, 500.0)), places[:9]).keys() == set(range(9))


@BOTH
def test_a_trace_as_far_away_as_the_radius_has_no_road(variant: Any) -> None:
    """South west of the crossing where the map begins, at a distance whose square is, to the last bit, the radius's."""
    corner = roads(2)[0, 0]
    for metres in range(1, 20):
        place = (corner[0] - metres, corner[1] - metres / 2)
        east, north = BOX.to_plane(*to_degrees(*(np.array([one]) for one in place)))
        squared = ((east - corner[0]) ** 2 + (north - corner[1]) ** 2).item()
        if (radius := math.sqrt(squared)) * radius == squared:
            break
    assert radius * radius == squared
    assert roads_of(variant(matcher(2, radius)), [place]) == {}
    assert roads_of(variant(matcher(2, math.nextafter(radius, math.inf))), [place]) == {0: 0}


@BOTH
def test_a_degree_of_longitude_is_as_long_as_it_is(variant: Any) -> None:
    """9.5 m and 12.5 m west of a crossing; as long as one of latitude, the first would be 12.4 m, too far."""
    (x, y), radius = roads(2)[0, 0], 10.0
    lat, lon = (float(one) for one in to_degrees(x, y))
    rows = trace_table([(lat, lon - 9.5 / 85_301, 1.0), (lat, lon - 9.5 / 65_000, 1.0)])
    assert [row["event_id"] for row in answer(variant(matcher(2, radius)), "traces", rows)] == [0]


OFFSETS = st.one_of(st.integers(-14, 14).map(float), st.floats(-20, 20))
NEAR = st.tuples(st.integers(0, 2 * 4 * 3 - 1), st.integers(0, 2), st.sampled_from([0.0, 0.25, 1.0]), OFFSETS, OFFSETS)


@given(st.lists(NEAR, max_size=30), st.sampled_from([3.0, 11.18, 40.0]))
def test_roads_against_plain_python(near: list[tuple[int, int, float, float, float]], radius: float) -> None:
    """Truth and class both say what a search of all roads says, at crossings and bends too."""
    vertices = roads(4)
    places = []
    for road, part, along, east, north in near:
        start, end = vertices[road, part], vertices[road, part + 1]
        x, y = start + along * (end - start)
        places.append((float(x) + east, float(y) + north))
    flow = matcher(4, radius)
    assert roads_of(without_truth(flow), places) == roads_of(flow, places)


def test_a_trace_is_matched_alone() -> None:
    """Whatever comes with it in a batch, nothing too; results tell their rows, and come in their order."""
    start, end = roads(50)[:40, 1], roads(50)[:40, 2]
    rows = traces_at([tuple(place) for place in (start + end) / 2 + np.linspace(-20, 20, 40)[:, None]])
    for name in ("ingest_time", TIME):
        rows = rows.append_column(name, rows["event_id"])
    node = with_lineage(matcher(50, 11.18)).sink.input
    assert isinstance(node, Process)
    instance = OperatorRuntime(node)
    whole = instance.each(rows).to_pylist()
    assert 10 < len(whole) < 40
    parts = [instance.each(rows.slice(low, high - low)) for low, high in itertools.pairwise([0, 0, 1, 17, 18, 40])]
    assert pa.concat_tables(parts).to_pylist() == whole


@BOTH
def test_speeds_worked_by_hand(variant: Any) -> None:
    """A road's own speeds alone; what is rejected leaves no trace."""
    readings: list[Reading] = [
        (1, 40.0),  # 0: the first: average 40
        (1, 60.0),  # 1: the second: 50
        (2, 80.0),  # 2: another road's first
        (1, 50.0),  # 3: c = 150 / 3 = 50
        (1, 200.0),  # 4: c = 350 / 4 = 87.5; sigma**2 = (100 + 100 + 150**2) / 3 = 7567; 112.5 <= 2 * 87: accepted
        *[(3, 50.0)] * 5,  # 5 to 9: 50, every time
        (3, 51.0),  # 10: c = 301 / 6 = 50.17; sigma**2 = 1 / 5; 0.833 <= 0.894: accepted
        (3, 54.0),  # 11: c = 355 / 7 = 50.71; sigma**2 = (30 / 36 + (54 - 301 / 6)**2) / 6 = 2.59; 3.29 > 3.22
        (3, 53.0),  # 12: c = 354 / 7 = 50.57; sigma**2 = (30 / 36 + (53 - 301 / 6)**2) / 6 = 1.477; 2.429 <= 2.431
        *[(4, 50.0)] * 6,  # 13 to 18
        (4, 51.0),  # 19: c = 351 / 7 = 50.14; sigma**2 = 1 / 6; 0.857 > 0.816: rejected, as is any other speed than
        (4, 50.0),  # 20: this one
    ]  # fmt: skip
    assert averages(variant(calculator()), readings) == {
        0: (1, 40.0, 1), 1: (1, 50.0, 2), 2: (2, 80.0, 1), 3: (1, 50.0, 3), 4: (1, 87.5, 4),
        **{5 + place: (3, 50.0, place + 1) for place in range(5)},
        10: (3, pytest.approx(301 / 6), 6), 12: (3, pytest.approx(354 / 7), 7),
        **{13 + place: (4, 50.0, place + 1) for place in range(6)}, 20: (4, 50.0, 7),
    }  # fmt: skip


@BOTH
def test_a_speed_just_at_the_limit_is_accepted(variant: Any) -> None:
    """Six speeds that average 50, their squared distances 9 + 9 + 1 + 1 = 20; then 64:
    c = 364 / 7 = 52; sigma**2 = (20 + 14**2) / 6 = 36; 64 - 52 = 12 = 2 * 6. A 64th of a km/h more is too much.
    """
    before: list[Reading] = [(1, speed) for speed in (53.0, 47.0, 51.0, 49.0, 50.0, 50.0)]
    flow = variant(calculator())
    assert averages(flow, [*before, (1, 64.0)])[6] == (1, 52.0, 7)
    assert averages(flow, [*before, (1, 64.0 + 1 / 64)]).keys() == set(range(6))


@BOTH
def test_the_oldest_speed_leaves_the_window_but_not_yet_the_average(variant: Any) -> None:
    """Window 2: an average is of the two before and the new one; two are judged by, and that is the count."""
    readings: list[Reading] = [
        (1, 10.0),  # 0: 10
        (1, 20.0),  # 1: (10 + 20) / 2 = 15
        (1, 30.0),  # 2: (10 + 20 + 30) / 3 = 20; of two speeds any third is accepted
        (1, 100.0),  # 3: (20 + 30 + 100) / 3 = 50
        (1, 40.0),  # 4: (30 + 100 + 40) / 3
    ]
    assert averages(variant(calculator(2)), readings) == {
        0: (1, 10.0, 1), 1: (1, 15.0, 2), 2: (1, 20.0, 2), 3: (1, 50.0, 2), 4: (1, pytest.approx(170 / 3), 2),
    }  # fmt: skip


@BOTH
def test_a_speed_is_taken_in_64ths(variant: Any) -> None:
    """To the nearest; the half upwards; the smallest there is as 0."""
    speeds = [1 / 64 + 1 / 200, 2.5 / 64, 1e-9]
    assert [averages(variant(calculator()), [(1, speed)])[0][1] for speed in speeds] == [1 / 64, 3 / 64, 0.0]


SPEEDS = st.one_of(
    st.sampled_from([50.0, 51.0, 49.0]),
    st.integers(1, 20).map(lambda n: 40.0 + n),
    st.integers(0, 64 * SPEED_MAX).map(lambda n: n / 64),
)
READINGS = st.lists(st.tuples(st.integers(1, 2), SPEEDS), max_size=60)


@given(READINGS, st.sampled_from([2, 6, 7, 12, 30]))
def test_class_and_truth_agree_on_speeds(readings: list[Reading], window: int) -> None:
    """Whatever comes."""
    assert_class_is_truth(calculator(window), readings)


def assert_class_is_truth(flow: Flow, readings: list[Reading]) -> dict[int, tuple[int, float, int]]:
    """The same readings are accepted, with the same averages."""
    truth, results = averages(flow, readings), averages(without_truth(flow), readings)
    assert results == {number: (road, pytest.approx(c), n) for number, (road, c, n) in truth.items()}
    return results


def test_more_speeds_than_a_block_of_the_truth() -> None:
    """Truth goes on from one block to the next, on roads of all lengths around it."""
    random = np.random.default_rng(1)
    lengths = [BLOCK_SPEEDS - 1, BLOCK_SPEEDS, BLOCK_SPEEDS + 1, 3 * BLOCK_SPEEDS + 5, 1]
    order = random.permutation(np.repeat(np.arange(len(lengths)), lengths)).tolist()
    readings = [(road, float(speed)) for road, speed in zip(order, random.normal(60, 15, len(order)), strict=True)]
    assert 0 < len(readings) - len(assert_class_is_truth(calculator(), readings)) < len(readings) / 4


def test_the_rule_stays_within_64_bits() -> None:
    """The largest window of the greatest speeds there may be, and what is farthest off: as in Python's own numbers."""
    top = SPEED_MAX * SPEED_GRID
    n, m = WINDOW_MAX, WINDOW_MAX + 1
    for low in (0, 1, top - 1, top):
        for v in (0, 1, top - 1, top):
            speeds = [top] * (m // 2) + [low] * (m - m // 2)
            recent = speeds[1:]
            arguments = (v, n, sum(recent), sum(x * x for x in recent), m, sum(speeds))
            a, c = Fraction(sum(speeds), m), Fraction(sum(recent) + v, n + 1)
            expected = (v - c) ** 2 <= 4 * (sum((x - a) ** 2 for x in recent) + (v - a) ** 2) / n
            assert bool(is_near(*(np.array([one], np.int64) for one in arguments))[0]) == expected


@given(
    READINGS, st.lists(st.integers(0, 3), min_size=60, max_size=60), st.lists(st.integers(0, 190), max_size=5),
    st.sampled_from([2, 6, 30]),
)  # fmt: skip
def test_the_answer_does_not_depend_on_where_batches_end(
    readings: list[Reading], steps: list[int], cuts: list[int], window: int
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    times = list(itertools.accumulate(steps[: len(readings)]))
    results_in_batches(calculator(window), table(readings, **READING), times, cuts)


def test_what_is_malformed_or_elsewhere_is_left_out() -> None:
    """Standing taxis, speeds and places that cannot be or are none, and traces outside of the box."""
    (x, y), nan, inf = roads(50)[0, 0], math.nan, math.inf
    lat, lon = (float(one) for one in to_degrees(x, y))
    good = [(lat, lon, 30.0), (lat, lon, 1 / 64), (lat, lon, float(SPEED_MAX))]
    bad: list[tuple[float | None, float | None, float | None]] = [
        (lat, lon, 0.0), (lat, lon, -5.0), (lat, lon, None), (lat, lon, nan), (lat, lon, inf), (lat, lon, -inf),
        (lat, lon, SPEED_MAX + 1 / 64), (None, lon, 30.0), (lat, None, 30.0), (nan, lon, 30.0), (lat, nan, 30.0),
        (inf, lon, 30.0), (lat, -inf, 30.0), (BOX.north + 1e-6, lon, 30.0), (BOX.south - 1e-6, lon, 30.0),
        (lat, BOX.west - 1e-6, 30.0), (lat, lon + 1, 30.0),
    ]  # fmt: skip
    rows = [*bad[:8], good[0], *bad[8:], *good[1:]]
    for flow in (flow_of(), without_truth(flow_of())):
        results = answer(flow, "traces", trace_table(rows))
        assert [(row["event_id"], row["count"]) for row in results] == [(8, 1), (len(rows) - 2, 2), (len(rows) - 1, 3)]


def test_truth_and_classes_agree_on_the_default_traces() -> None:
    """Two seconds of them: the same rows and averages; most traces have a road, and most of those are accepted."""
    flow, inputs = made("traffic_monitoring", 10_000.0, 2.0)
    rows = inputs["traces"]
    by_truth, by_class = answer(flow, "traces", rows), answer(without_truth(flow), "traces", rows)
    assert by_class == [row | {"average_speed": pytest.approx(row["average_speed"])} for row in by_truth]
    assert 0.7 < len(by_truth) / len(rows) < 0.93
    assert max(row["count"] for row in by_truth) == 30


def test_planted_outliers_are_rejected() -> None:
    """Where a road has had its thirty speeds, nearly all of those that are planted, and few others."""
    few = {"streets": 3, "taxis": 5, "slow_downs": 0, "stopped": 0, "outside": 0}
    (flow, with_outliers), (_, without) = (
        made("traffic_monitoring", 10_000.0, 2.0, outliers=share, **few) for share in (0.05, 0)
    )
    rows, plain = with_outliers["traces"], without["traces"]
    outliers = set(np.asarray(rows["event_id"])[np.asarray(rows["speed"]) > 1.5 * np.asarray(plain["speed"])].tolist())
    before = flow.sink.input.inputs[0]  # type: ignore[union-attr]
    speeds = answer(Flow((replace(flow.sink, input=before),)), "traces", rows)
    accepted = {row["event_id"] for row in answer(flow, "traces", rows)}
    turn: dict[int, int] = defaultdict(int)
    late = {True: [0, 0], False: [0, 0]}
    for row in speeds:
        turn[row["road_id"]] += 1
        if turn[row["road_id"]] > 60:
            late[row["event_id"] in outliers][row["event_id"] in accepted] += 1
    (far_rejected, far_accepted), (near_rejected, near_accepted) = late[True], late[False]
    assert far_rejected > 300
    assert far_accepted < far_rejected / 50
    assert near_rejected < near_accepted / 50
