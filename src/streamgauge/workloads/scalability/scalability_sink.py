"""Sink: every measurement is changed and written, without state (Ehrenstein 2020, benchmark 1).

The original writes each record to a log, or to a database or another topic. Here `sink=topic` gives the changed record,
and `sink=log` the line of text that a log would get. Both are results, so every one is verified.
"""

from typing import Literal

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.workloads.registry import Feature, Job, Workload
from streamgauge.workloads.scalability.measurements import SOURCE, Keys, measurements, rate_of_keys

_COLUMNS = {
    "topic": {"sensor_id": "sensor_id", "measured_us": "measured_us", "milliwatts": "watts * 1000"},
    "log": {
        "line": "concat('sensor ', try_cast(sensor_id as string), ' at ', try_cast(measured_us as string), ': ', "
        "try_cast(watts as string), ' W')"
    },
}


class SinkParameters(Keys):
    """Keys, and what is written."""

    sink: Literal["topic", "log"] = Field("topic", description="topic: the changed record; log: a line of text")


def build(parameters: SinkParameters, rate_per_s: float) -> Job:
    measured = measurements(parameters.keys)
    changed = source(measured.name, measured.schema).select(_COLUMNS[parameters.sink], name="map")
    return Job(changed.sink("records"), (measured,))


WORKLOAD = Workload(
    name="scalability_sink",
    title="scalability: sink",
    summary="each measurement changed and written, without state",
    source=f"{SOURCE}, benchmark 1",
    parameters=SinkParameters,
    build=build,
    features=(Feature.ROWS,),
    fixed_rate=rate_of_keys,
)
