"""Windowed aggregation [K §IV]: the revenue of each gem pack over a sliding window."""

from __future__ import annotations

from streamgauge.flow.stream import source
from streamgauge.workloads.base import Job, Workload
from streamgauge.workloads.features import Feature
from streamgauge.workloads.purchases import Purchases, Windowed, purchases


class Parameters(Windowed, Purchases):
    """Window, keys and users."""


def build(parameters: Parameters, rate_per_s: float) -> Job:
    bought = purchases(parameters, parameters.users)
    windows = source("purchases", bought.schema).window(parameters.window(), keys="gem_pack_id")
    return Job(windows.aggregate(revenue="sum(price)").sink("revenue"), (bought,))


WORKLOAD = Workload(
    name="windowed_aggregation",
    title="windowed aggregation",
    summary="revenue of each gem pack over a sliding window",
    source="[K §IV]",
    parameters=Parameters,
    build=build,
    features=(Feature.WINDOW,),
)
