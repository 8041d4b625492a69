"""The driver's request to the SUT process. Does not load Spark."""

from __future__ import annotations

from dataclasses import dataclass

from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spi import Edges


@dataclass(frozen=True)
class SparkJob:
    """The driver's request, passed by file."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    master: str
    folder: str
    checkpoint: str
    jars: tuple[str, ...] = ()
    parallelism: int | None = None
