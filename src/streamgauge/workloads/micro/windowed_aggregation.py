"""Windowed aggregation: the revenue of each gem pack over a sliding window.

Source: Karimov et al. 2018, section IV.
"""

from streamgauge.dataflow.builder import source
from streamgauge.workloads.micro.purchases import Purchases, Windowed, purchases
from streamgauge.workloads.registry import Feature, Job, Workload


class Parameters(Windowed, Purchases):
    """Window, keys and users."""


def build(parameters: Parameters, rate_per_s: float) -> Job:
    bought = purchases(parameters, parameters.users, key="gem_pack_id")
    windows = source("purchases", bought.schema).window(parameters.window(), keys="gem_pack_id")
    return Job(windows.aggregate(revenue="sum(price)").sink("revenue"), (bought,))


WORKLOAD = Workload(
    name="windowed_aggregation",
    title="windowed aggregation",
    summary="revenue of each gem pack over a sliding window",
    source="Karimov et al. 2018, section IV",
    parameters=Parameters,
    build=build,
    features=(Feature.WINDOW,),
)
