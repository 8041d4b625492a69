"""Spark's three execution modes: the module of the SUT process, and the default master."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.dstream import options
from streamgauge.engines.spark.dstream.progress import DStreamProgress
from streamgauge.engines.spark.structured import realtime
from streamgauge.engines.spi import Edges


@dataclass(frozen=True)
class ExecutionMode:
    """`module` is the SUT process. `master` gives a local Spark for (flow, number of processors, edges). `progress` is
    the class of its batches' progress.
    """

    module: str
    master: Callable[[Flow, int, Edges], str]
    progress: type[BatchProgress] = BatchProgress


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
    DStreamProgress,
)
