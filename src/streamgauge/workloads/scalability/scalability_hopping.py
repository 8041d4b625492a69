"""Overlapping windows: statistics of each sensor and time attribute by hopping window (Ehrenstein 2020, benchmark 4).

The time attribute is the second of the record's own time modulo 7, a weekday whose week takes seven seconds. It
multiplies the keys by seven. A window of `range` starts every `period`, so each measurement is in range / period
windows.
"""

from pydantic import Field

from streamgauge.core.errors import require
from streamgauge.dataflow.builder import hop, source
from streamgauge.workloads.registry import Feature, Job, Seconds, Workload
from streamgauge.workloads.scalability.measurements import SOURCE, Keys, measurements, rate_of_keys

WEEKDAYS = 7
STATISTICS = {
    "measurements": "count(*)",
    "total": "sum(watts)",
    "lowest": "min(watts)",
    "highest": "max(watts)",
}


class HoppingParameters(Keys):
    """Keys and window."""

    range: Seconds = Field(5.0, gt=0, le=86_400, description="length of a window")
    period: Seconds = Field(1.0, ge=0.001, le=86_400, description="time from one window's start to the next")


def build(parameters: HoppingParameters, rate_per_s: float) -> Job:
    period, range_ = f"{parameters.period:g}s", f"{parameters.range:g}s"
    rule = f"must be at most the range ({range_}), or events between windows would be in none"
    require(parameters.period <= parameters.range, "set period", rule, period, f"--set period={range_}")
    measured = measurements(parameters.keys)
    weekday = f"unix_seconds(timestamp_micros(measured_us)) % {WEEKDAYS}"
    statistics = (
        source(measured.name, measured.schema)
        .select(sensor_id="sensor_id", weekday=weekday, watts="watts", name="select_key")
        .window(hop(parameters.range, parameters.period), keys=("sensor_id", "weekday"))
        .aggregate(STATISTICS)
    )
    return Job(statistics.sink("weekdays"), (measured,))


WORKLOAD = Workload(
    name="scalability_hopping",
    title="scalability: hopping windows",
    summary="count, sum, minimum and maximum of each sensor and second modulo 7 by hopping window",
    source=f"{SOURCE}, benchmark 4",
    parameters=HoppingParameters,
    build=build,
    features=(Feature.WINDOW,),
    fixed_rate=rate_of_keys,
)
