"""Identity: every purchase comes back as it went in, so every event is checked one by one."""

from __future__ import annotations

from streamgauge.flow.stream import source
from streamgauge.workloads.base import Job, Workload
from streamgauge.workloads.features import Feature
from streamgauge.workloads.purchases import Purchases, purchases


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
