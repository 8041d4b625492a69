"""Throughput: messages of one size from source to sink without computation (Bordin 2017, micro-benchmark).

A message is a number and incompressible bytes, so that its size can be varied. Every byte of a result is verified.
"""

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.fields import Integer, Payload, StreamSpec
from streamgauge.workloads.registry import Feature, Job, Parameters, Workload


class Throughput(Parameters):
    """The size of a message."""

    message_bytes: int = Field(100, ge=1, le=65_536, description="bytes of a message beside its four of content")


def build(parameters: Throughput, rate_per_s: float) -> Job:
    messages = StreamSpec("messages", (Integer("content", 0, 2**30 - 1), Payload("body", parameters.message_bytes)))
    return Job(source("messages", messages.schema).sink("echoes"), (messages,))


WORKLOAD = Workload(
    name="throughput",
    title="throughput",
    summary="messages of a chosen size from source to sink, with nothing in between",
    source="Bordin 2017, micro-benchmark",
    parameters=Throughput,
    build=build,
    features=(Feature.NOTHING,),
)
