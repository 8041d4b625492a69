"""Spike Detection (SD): sensor readings far from their device's moving average.

The average is over the device's last `window` readings, the current one included. A reading is a spike if it differs
from the average by more than `threshold` times the average's absolute value. (Without the absolute value, every reading
of a device below zero would be a spike.)

- The difference must exceed this by a billionth of the average (`TIE`): a sensor that always shows 22.1 has no spikes,
  though its average is rounded.
- Class and truth sum in the same order, so that they agree even if readings of both signs nearly cancel.
- While a sum exceeds the largest double, the average is unknown and there are no spikes.
- Malformed: readings that are null or not finite. They give no result and enter no average.

This is a process rather than the flow language's `count` window, because malformed readings must be removed first. With
a filter before the window, the reader of the stream could not pack its rows for it.

Source: Bordin 2017, section 3.3.10.
"""

import math
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.operators.api import ROW
from streamgauge.dataflow.operators.grouped_arrays import last_sums_sql, valid_mask
from streamgauge.loadgen.datasets.sensors import Reading
from streamgauge.loadgen.fields import Key, StreamSpec, with_malformed
from streamgauge.workloads.helpers.last_values import OverLastValues
from streamgauge.workloads.registry import FINITE_MAX, TIE, Feature, Job, Parameters, Workload, double, unless

MEANS = {"temp": 22.0, "humid": 40.0, "light": 300.0, "volt": 2.7}
"""Ordinary values of a sensor in the Intel Berkeley lab: degrees Celsius, percent, lux, volts."""


class SpikeDetection(Parameters):
    """The thesis's parameters and the sensors'."""

    parser_value_field: Literal["temp", "humid", "light", "volt"] = Field(
        "temp", description="the quantity of a reading that is checked: temp, humid, light, volt"
    )
    moving_average_window: int = Field(
        1000, ge=1, le=100_000, description="number of a device's last readings that are averaged, with the current one"
    )
    spike_detector_threshold: float = Field(
        0.03,
        ge=0,
        allow_inf_nan=False,
        description="least distance of a spike from the average, as a share of the average",
    )
    devices: int = Field(54, ge=1, le=100_000, description="number of sensors")
    spikes: float = Field(0.001, ge=0, le=1, description="share of the readings that are planted spikes")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the readings that are null or not finite")


class MovingAverage(OverLastValues):
    """The average of each device's last `window` readings, at every reading."""

    key = "device"

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        values = batch.column("value").to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(np.isfinite(values) & valid_mask(batch.column("device")))
        devices = batch.column("device").take(pa.array(rows))
        windows = self._recent.add(self._keys.encode(devices), values[rows])
        columns = [devices, pa.array(windows.sums / windows.counts), pa.array(values[rows]), pa.array(rows)]
        return pa.RecordBatch.from_arrays(columns, names=["device", "avg", "value", ROW])


def truth(window: int) -> str:
    """The moving average, as DuckDB SQL."""
    summed = last_sums_sql(
        "(SELECT * FROM input WHERE isfinite(value) AND device IS NOT NULL)", "device", {"total": "value"}, window
    )
    return f"SELECT device, value, _row, total / counted AS avg FROM ({summed})"


def build(parameters: SpikeDetection, rate_per_s: float) -> Job:
    device = Key("device", parameters.devices)
    readings = (
        with_malformed(
            Reading(name, device, 0, mean, parameters.spikes), parameters.malformed, None, math.nan, math.inf
        )
        for name, mean in MEANS.items()
    )
    sensors = StreamSpec("sensors", (device, *readings), key="device")
    far = f"abs(value - avg) > ({double(parameters.spike_detector_threshold)} + {double(TIE)}) * abs(avg)"
    spikes = (
        source("sensors", sensors.schema)
        .select(device="device", value=parameters.parser_value_field)
        .process(
            MovingAverage,
            keys="device",
            gives=Schema.from_types(device="int", avg="double", value="double"),
            parameters={"window": parameters.moving_average_window},
            truth=truth(parameters.moving_average_window),
            name="moving_average",
        )
        .where(far, name="spike_detector")
        .select(device="device", avg="avg", value="value", message="'spike detected'", name="message")
    )
    sound = f"device IS NOT NULL AND abs({parameters.parser_value_field}) <= {FINITE_MAX}"
    return Job(spikes.sink("spikes"), (sensors,), {"sensors": unless(sound)})


WORKLOAD = Workload(
    name="spike_detection",
    title="spike detection",
    summary="sensor readings far from the moving average of their device's last 1000 readings",
    source="Bordin 2017, section 3.3.10",
    parameters=SpikeDetection,
    build=build,
    features=(Feature.FILTER, Feature.COUNT_WINDOW, Feature.PYTHON),
    prefix="sd",
)
