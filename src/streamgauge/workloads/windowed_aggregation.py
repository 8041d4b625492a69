"""Windowed aggregation [K §IV]: the revenue of each gem pack over a sliding window."""

from __future__ import annotations

from streamgauge.flow.stream import source
from streamgauge.workloads.base import Job, Workload
from streamgauge.workloads.purchases import Windowed, purchases


def build(parameters: Windowed, rate_per_s: float) -> Job:
    bought = purchases(parameters)
    windows = source("purchases", bought.schema).window(parameters.window(), keys="gem_pack_id")
    return Job(windows.aggregate(revenue="sum(price)").sink("revenue"), (bought,))


WORKLOAD = Workload(
    name="windowed_aggregation",
    title="windowed aggregation",
    summary="revenue of each gem pack over a sliding window",
    source="[K §IV]",
    parameters=Windowed,
    build=build,
)
