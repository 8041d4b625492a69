"""Hierarchical aggregation: power of groups of sensors, of groups of groups, and so on (Ehrenstein 2020, benchmark 2).

The sensors are the leaves of a full tree. In each window a group's power is the sum over its children: of a sensor its
last measurement in the window, of a group that group's own sum. A sensor without a measurement does not count.

- `aggregation=chained` computes each level from the aggregates of the level below, as the original does.
- `aggregation=flat` computes every level from the sensors, for comparison. Both give the same results.

A group has the number of its first sensor: with 10 children, group 20 of level 1 has the sensors 20 to 29.
"""

from typing import Literal

from pydantic import Field

from streamgauge.core.errors import require
from streamgauge.dataflow.builder import Stream, source, tumble
from streamgauge.dataflow.nodes import Window
from streamgauge.workloads.registry import Feature, Job, Seconds, Workload
from streamgauge.workloads.scalability.measurements import (
    SENSORS_MAX,
    SOURCE,
    WATTS_MAX,
    Frequency,
    measurements,
    rate_of_keys,
)

HEIGHT_MAX = 20
_PACKED = WATTS_MAX + 1
LATEST = f"max(measured_us * {_PACKED}L + watts)"
"""The last measurement as one number, the time above the watts; of several at one time, that of the most watts."""
WATTS = f"latest % {_PACKED}"
GROUP = ("level", "group_id")
SUMS = {"sensors": "sum(sensors)", "watts": "sum(watts)"}


class HierarchicalParameters(Frequency):
    """The tree and the window."""

    height: int = Field(3, ge=1, le=HEIGHT_MAX, description="levels of groups above the sensors")
    children: int = Field(
        10, ge=2, le=SENSORS_MAX, description="children of each group; there are children^height sensors"
    )
    range: Seconds = Field(5.0, gt=0, le=86_400, description="length of a window, and so the time between results")
    aggregation: Literal["chained", "flat"] = Field(
        "chained", description="chained: each level from the one below; flat: every level from the sensors"
    )

    @property
    def keys(self) -> int:
        """The number of sensors."""
        return int(self.children**self.height)


def build(parameters: HierarchicalParameters, rate_per_s: float) -> Job:
    rule = f"and children must give at most {SENSORS_MAX:,} sensors, not {parameters.keys:,}"
    most = max(height for height in range(1, HEIGHT_MAX + 1) if parameters.children**height <= SENSORS_MAX)
    require(parameters.keys <= SENSORS_MAX, "set height", rule, parameters.height, f"--set height={most}")
    measured, window = measurements(parameters.keys), tumble(parameters.range)
    last = (
        source(measured.name, measured.schema)
        .window(window, keys="sensor_id")
        .aggregate(latest=LATEST, name="last_values")
    )
    levels = _chained if parameters.aggregation == "chained" else _flat
    groups = levels(last, window, [parameters.children**level for level in range(1, parameters.height + 1)])
    results = groups.select(
        {name: name for name in (*GROUP, "window_start", "window_end", "sensors", "watts")},
        mean="try_divide(watts, sensors)",
        name="mean",
    )
    return Job(results.sink("groups"), (measured,))


def _chained(last: Stream, window: Window, sizes: list[int]) -> Stream:
    """Each level from the one below. Rows of lower levels pass through as groups of one row, so that one query gives
    all levels without computing any of them twice.
    """
    members = last.select(
        level="1", group_id=f"sensor_id - sensor_id % {sizes[0]}", sensors="1L", watts=WATTS, name="members_1"
    )
    groups = members.window(window, keys=GROUP).aggregate(SUMS, name="level_1")
    for level, size in enumerate(sizes[1:], 2):
        groups = (
            groups.explode(step="array(0, 1)", name=f"copies_{level}")
            .where(f"step = 0 or level = {level - 1}", name=f"children_{level}")
            .select(
                level="level + step",
                group_id=f"group_id - step * (group_id % {size})",
                sensors="sensors",
                watts="watts",
                name=f"members_{level}",
            )
            .window(window, keys=GROUP)
            .aggregate(SUMS, name=f"level_{level}")
        )
    return groups


def _flat(last: Stream, window: Window, sizes: list[int]) -> Stream:
    """Every level from the last values of the sensors: one row for each group that a sensor is in."""
    levels = " ".join(f"when group_size = {size} then {level}" for level, size in enumerate(sizes, 1))
    return (
        last.explode(group_size=f"array({', '.join(map(str, sizes))})", name="ancestors")
        .select(
            level=f"case {levels} end",
            group_id="sensor_id - sensor_id % group_size",
            sensors="1L",
            watts=WATTS,
            name="members",
        )
        .window(window, keys=GROUP)
        .aggregate(SUMS, name="levels")
    )


WORKLOAD = Workload(
    name="scalability_hierarchical",
    title="scalability: hierarchical aggregation",
    summary="power of nested groups of sensors, each level computed from the one below, by window",
    source=f"{SOURCE}, benchmark 2",
    parameters=HierarchicalParameters,
    build=build,
    features=(Feature.FLAT_MAP, Feature.WINDOW),
    fixed_rate=rate_of_keys,
)
