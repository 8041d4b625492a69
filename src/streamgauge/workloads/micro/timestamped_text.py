"""Timestamped text: parses text records with a number and a creation time, and subtracts a constant from the time.

It is the workload of the latency study of Spark Streaming. The study subtracts the creation time from the clock of the
processing machine, and so measures latency inside the system. Here latency is measured outside, and the constant makes
results verifiable.
"""

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.datasets.texts import (
    ID_DIGITS,
    RECORD_BYTES_MAX,
    RECORD_BYTES_MIN,
    TIME_DIGITS,
    TimestampedText,
)
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.registry import Feature, Job, Parameters, Workload


class TimestampedTextParameters(Parameters):
    """The size of a record, and the subtracted constant."""

    record_bytes: int = Field(
        25, ge=RECORD_BYTES_MIN, le=RECORD_BYTES_MAX, description="bytes of a record, its number and time included"
    )
    zero_us: int = Field(0, ge=0, le=10**15, description="microseconds subtracted from each creation time")


def build(parameters: TimestampedTextParameters, rate_per_s: float) -> Job:
    records = StreamSpec("records", (TimestampedText("record", parameters.record_bytes, rate_per_s),))
    times = (
        source("records", records.schema)
        .select(
            id=f"try_cast(substring(record, 1, {ID_DIGITS}) AS bigint)",
            created_us=f"try_cast(substring(record, {ID_DIGITS + 2}, {TIME_DIGITS}) AS bigint)",
            name="parser",
        )
        .select(id="id", since_us=f"created_us - {parameters.zero_us}", name="subtract")
    )
    return Job(times.sink("times"), (records,))


WORKLOAD = Workload(
    name="stamped_text",
    title="stamped text",
    summary="text records with a number and a creation time, taken apart, one subtraction each",
    source="latency study of Spark Streaming",
    parameters=TimestampedTextParameters,
    build=build,
    features=(Feature.ROWS,),
)
