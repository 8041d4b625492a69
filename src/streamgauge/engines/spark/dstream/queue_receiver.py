"""The receiver of a queue: each batch is the range available when the batch is created; its tasks read it.

As with Spark's `queueStream` or direct streams, nothing runs between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamgauge.engines.spark.dstream.progress import Block
from streamgauge.engines.spark.dstream.state import Batch
from streamgauge.engines.spi import Edges
from streamgauge.transports.flight import client


class QueueReceiver:
    """Cuts the queues of all generators at one event time."""

    def __init__(self, edges: Edges, query: str, reading: Callable[[dict[str, str]], Callable[..., Any]]) -> None:
        self._locations, self._token = [edge.location for edge in edges.inputs], edges.inputs[0].token
        self._query, self._reading = query, reading
        self._reached_us = 0

    def stream(self, context: Any) -> Any:
        """An empty RDD: rows are read as a frame, not as Python objects."""
        nothing = context.sparkContext.emptyRDD()
        return context.queueStream([nothing], default=nothing)

    def next(self, _: int, number: int) -> Batch | None:
        from_us = self._reached_us
        to_us = client.common_cut(self._locations, self._token, from_us, self._query, "batches")
        if to_us <= from_us:
            return None
        self._reached_us = to_us
        return Batch(number, from_us, to_us, to_us)

    def begin(self, _: int, made: Batch, __: Any) -> Batch:
        """The batch is already complete."""
        return made

    def received_blocks(self, _: Batch) -> Sequence[Block]:
        """Empty, because a queue has no blocks."""
        return ()

    def reading(self, batch: Batch, _: Any) -> Callable[..., Any]:
        """A function that reads a source's rows of a batch."""
        return self._reading({"from_us": str(batch.from_us), "to_us": str(batch.to_us), "batch": str(batch.number)})
