"""Filter: purchases above a price, row by row."""

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.workloads.micro.purchases import PRICE_MAX, Purchases, purchases
from streamgauge.workloads.registry import Feature, Job, Workload


class Parameters(Purchases):
    above: int = Field(90, ge=0, le=PRICE_MAX, description=f"keep purchases above this price (1 to {PRICE_MAX})")


def build(parameters: Parameters, rate_per_s: float) -> Job:
    bought = purchases(parameters, parameters.users)
    dear = source("purchases", bought.schema).where(f"price > {parameters.above}")
    return Job(dear.sink("purchases"), (bought,))


WORKLOAD = Workload(
    name="filter",
    title="filter",
    summary="the purchases above a price",
    source="probe",
    parameters=Parameters,
    build=build,
    features=(Feature.FILTER,),
)
