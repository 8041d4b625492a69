"""Identity: returns every purchase unchanged, so every event is verified."""

from streamgauge.dataflow.builder import source
from streamgauge.workloads.micro.purchases import Purchases, purchases
from streamgauge.workloads.registry import Feature, Job, Workload


def build(parameters: Purchases, rate_per_s: float) -> Job:
    bought = purchases(parameters, parameters.users)
    return Job(source("purchases", bought.schema).sink("purchases"), (bought,))


WORKLOAD = Workload(
    name="identity",
    title="identity",
    summary="every event through the engine unchanged: the floor of latency, the cost of both edges",
    source="probe",
    parameters=Purchases,
    build=build,
    features=(Feature.NOTHING,),
)
