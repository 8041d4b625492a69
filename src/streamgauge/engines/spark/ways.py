"""The three ways in which Spark streams: the module of each one's SUT, and the master that it has unless told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.engines.seam import Edges
from streamgauge.engines.spark import dstream, realtime
from streamgauge.flow.nodes import Flow


@dataclass(frozen=True)
class Way:
    """`module` is the process of the SUT; `master` a local Spark for a flow on so many processors, with these edges."""

    module: str
    master: Callable[[Flow, int, Edges], str]


MICRO_BATCH = Way("streamgauge.engines.spark.main", lambda _, processors, __: f"local[{processors}]")
REAL_TIME = Way(
    "streamgauge.engines.spark.realtime_main", lambda flow, processors, _: realtime.master_for(flow, processors)
)
DSTREAM = Way(
    "streamgauge.engines.spark.dstream_main",
    lambda _, processors, edges: dstream.master_for(processors, edges.transport, len(edges.inputs)),
)
