"""The three ways in which Spark streams: the module of each one's SUT, and the master that it has unless told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.dstream import options
from streamgauge.engines.spark.structured import realtime
from streamgauge.engines.spi import Edges


@dataclass(frozen=True)
class ExecutionMode:
    """`module` is the process of the SUT; `master` a local Spark for a flow on so many processors, with these edges."""

    module: str
    master: Callable[[Flow, int, Edges], str]


MICRO_BATCH = ExecutionMode(
    "streamgauge.engines.spark.structured.main", lambda _, processors, __: f"local[{processors}]"
)
REAL_TIME = ExecutionMode(
    "streamgauge.engines.spark.structured.realtime_main",
    lambda flow, processors, _: realtime.master_for(flow, processors),
)
DSTREAM = ExecutionMode(
    "streamgauge.engines.spark.dstream.main",
    lambda _, processors, edges: options.master_for(processors, edges.transport, len(edges.inputs)),
)
