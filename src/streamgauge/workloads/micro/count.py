"""Count: the number of purchases of each gem pack so far, as updates."""

from streamgauge.dataflow.builder import source
from streamgauge.workloads.micro.purchases import Purchases, purchases
from streamgauge.workloads.registry import Feature, Job, Workload


def build(parameters: Purchases, rate_per_s: float) -> Job:
    bought = purchases(parameters, parameters.users, key="gem_pack_id")
    counted = source("purchases", bought.schema).running(keys="gem_pack_id", count="count(*)")
    return Job(counted.sink("counts"), (bought,))


WORKLOAD = Workload(
    name="count",
    title="running count",
    summary="how often each gem pack was bought so far, as updates",
    source="probe",
    parameters=Purchases,
    build=build,
    features=(Feature.COUNTER,),
)
