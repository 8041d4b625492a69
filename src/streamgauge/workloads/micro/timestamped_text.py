"""Stamped text [L]: records of text with a number and a creation time; each is taken apart and one time subtracted.

It is the workload of the study of where Spark's latency goes. There the record's creation time is subtracted from the
clock of the machine that works on it, which measures latency in the system itself; here latency is measured outside,
and what is subtracted is fixed, so that every answer can be checked.
"""

from __future__ import annotations

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.datasets.timestamped_text import (
    ID_DIGITS,
    RECORD_BYTES_MAX,
    RECORD_BYTES_MIN,
    TIME_DIGITS,
    TimestampedText,
)
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.features import Feature
from streamgauge.workloads.registry import Job, Parameters, Workload


class TimestampedTextParameters(Parameters):
    """The size of a record, and what is subtracted."""

    record_bytes: int = Field(
        25, ge=RECORD_BYTES_MIN, le=RECORD_BYTES_MAX, description="bytes of a record, its number and time included"
    )
    zero_us: int = Field(0, ge=0, le=10**15, description="what is subtracted from each creation time, microseconds")


def build(parameters: TimestampedTextParameters, rate_per_s: float) -> Job:
    records = StreamSpec("records", (TimestampedText("record", parameters.record_bytes, rate_per_s),))
    parsed = source("records", records.schema).select(
        id=f"try_cast(substring(record, 1, {ID_DIGITS}) AS bigint)",
        created_us=f"try_cast(substring(record, {ID_DIGITS + 2}, {TIME_DIGITS}) AS bigint)",
        name="parser",
    )
    since = parsed.select(id="id", since_us=f"created_us - {parameters.zero_us}", name="subtract")
    return Job(since.sink("times"), (records,))


WORKLOAD = Workload(
    name="stamped_text",
    title="stamped text",
    summary="text records with a number and a creation time, taken apart, one subtraction each",
    source="study of Spark's latency [L]",
    parameters=TimestampedTextParameters,
    build=build,
    features=(Feature.ROWS,),
)
