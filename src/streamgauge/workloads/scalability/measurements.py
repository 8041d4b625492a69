"""The stream of all four topologies: power measurements of sensors. Each sensor is a message key at a fixed frequency.

Source: Ehrenstein 2020, section 3.4: a generator produces the messages of one key.
"""

from typing import Any

from pydantic import Field

from streamgauge.loadgen.fields import Integer, RecordTime, RoundRobinKey, StreamSpec
from streamgauge.loadgen.random import TABLE_DOMAIN_MAX
from streamgauge.workloads.registry import Parameters

STREAM = "measurements"
SENSORS_MAX = TABLE_DOMAIN_MAX
WATTS_MAX = 999
SOURCE = "Ehrenstein 2020"


class Frequency(Parameters):
    """The frequency of a key."""

    frequency: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="measurements of each sensor per second; 0: the rate divided by the number of sensors",
    )


class Keys(Frequency):
    """Parameters of the topologies whose number of keys is free."""

    keys: int = Field(1000, ge=1, le=SENSORS_MAX, description="number of message keys: the sensors")


def measurements(sensors: int) -> StreamSpec:
    """`measurements(sensor_id, watts, measured_us)`: sensors in turn, so each has its fixed frequency."""
    fields = (RoundRobinKey("sensor_id", sensors), Integer("watts", 0, WATTS_MAX), RecordTime("measured_us"))
    return StreamSpec(STREAM, fields, key="sensor_id")


def rate_of_keys(parameters: Any) -> float | None:
    """The rate that the parameters fix; None if the frequency follows from the rate."""
    return parameters.frequency * parameters.keys or None
