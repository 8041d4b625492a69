"""Sums of groups of groups against plain Python, from the levels below and from the sensors."""

import pytest

from streamgauge.core.errors import InputError
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import WindowAggregate
from tests.unit.workloads.helpers_cuts import flow_of
from tests.unit.workloads.scalability.helpers_topologies import Measurement, measured, results

S = 1_000_000
Group = tuple[int, int, int]
"""(level, group, window start)."""
NAME = "scalability_hierarchical"


def sums(measurements: list[Measurement], height: int, children: int, range_us: int) -> dict[Group, tuple[int, int]]:
    """Sensors and watts of each group, level by level."""
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for sensor, watts, time in measurements:
        key = sensor, time // range_us * range_us
        last[key] = max(last.get(key, (-1, -1)), (time, watts))
    below = {key: (1, watts) for key, (_, watts) in last.items()}
    results: dict[Group, tuple[int, int]] = {}
    for level in range(1, height + 1):
        above: dict[tuple[int, int], tuple[int, int]] = {}
        for (member, start), (sensors, watts) in below.items():
            group = member // children**level * children**level
            before = above.get((group, start), (0, 0))
            above[group, start] = before[0] + sensors, before[1] + watts
        results |= {(level, group, start): value for (group, start), value in above.items()}
        below = above
    return results


@pytest.mark.parametrize("aggregation", ["chained", "flat"])
@pytest.mark.parametrize(("height", "children"), [(1, 2), (1, 10), (2, 3), (3, 10), (5, 2)])
def test_sums_of_each_group(height: int, children: int, aggregation: str) -> None:
    """Only the last measurement of a sensor in a window counts, and of those at one time the greatest."""
    measurements = measured(height, children**height, 400, 12 * S)
    tree = {"height": height, "children": children, "aggregation": aggregation, "range": "2s"}
    rows = results(NAME, measurements, **tree)
    result = {(row["level"], row["group_id"], row["window_start"]): (row["sensors"], row["watts"]) for row in rows}
    assert len(result) == len(rows)
    assert result == sums(measurements, height, children, 2 * S)
    assert all(row["mean"] == pytest.approx(row["watts"] / row["sensors"]) for row in rows)


def test_by_hand() -> None:
    """Two groups of two sensors and their root: sensor 0 counts with its last value, sensor 3 is silent."""
    rows = results(NAME, [(0, 5, 1), (1, 7, 2), (0, 6, 3), (2, 9, 4)], height=2, children=2, range="1s")
    result = {(row["level"], row["group_id"]): (row["sensors"], row["watts"], row["event_time"]) for row in rows}
    assert result == {(1, 0): (2, 13, 3), (1, 2): (1, 9, 4), (2, 0): (3, 22, 4)}


@pytest.mark.parametrize(("aggregation", "windows"), [
    ("chained", ["last_values", "level_1", "level_2", "level_3"]), ("flat", ["last_values", "levels"]),
])  # fmt: skip
def test_every_level_reads_the_one_below(aggregation: str, windows: list[str]) -> None:
    """And none is computed twice; the flat variant reads the sensors alone."""
    nodes = graph.operators(flow_of(NAME, aggregation=aggregation))
    assert [node.name for node in nodes if isinstance(node, WindowAggregate)] == windows


def test_a_tree_with_too_many_sensors_is_refused() -> None:
    """With the greatest height that there is for so many children."""
    with pytest.raises(InputError) as refused:
        flow_of(NAME, height=8)
    assert refused.value.problems[0].way_out == "--set height=7"
