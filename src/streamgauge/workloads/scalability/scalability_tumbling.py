"""Non-overlapping windows: statistics of each sensor by tumbling window (Ehrenstein 2020, benchmark 3)."""

from pydantic import Field

from streamgauge.dataflow.builder import source, tumble
from streamgauge.workloads.registry import Feature, Job, Seconds, Workload
from streamgauge.workloads.scalability.measurements import SOURCE, Keys, measurements, rate_of_keys

_MEAN = "try_divide(sum(watts), count(*))"
STATISTICS = {
    "measurements": "count(*)",
    "total": "sum(watts)",
    "mean": _MEAN,
    "variance": f"try_divide(sum(watts * watts), count(*)) - {_MEAN} * {_MEAN}",
    "lowest": "min(watts)",
    "highest": "max(watts)",
}
"""The variance is that of the population."""


class TumblingParameters(Keys):
    """Keys and window."""

    range: Seconds = Field(5.0, gt=0, le=86_400, description="length of a window")


def build(parameters: TumblingParameters, rate_per_s: float) -> Job:
    measured = measurements(parameters.keys)
    windows = source(measured.name, measured.schema).window(tumble(parameters.range), keys="sensor_id")
    return Job(windows.aggregate(STATISTICS).sink("statistics"), (measured,))


WORKLOAD = Workload(
    name="scalability_tumbling",
    title="scalability: tumbling windows",
    summary="count, sum, mean, variance, minimum and maximum of each sensor by tumbling window",
    source=f"{SOURCE}, benchmark 3",
    parameters=TumblingParameters,
    build=build,
    features=(Feature.WINDOW,),
    fixed_rate=rate_of_keys,
)
