"""The progress of a DStream's batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.core.engine_reports import ADD_BATCH, BatchProgress
from streamgauge.engines.spark.observe.event_log import MS

Block = Sequence[int]
"""A received block: partition, Spark's stream, block number, lines."""


@dataclass(frozen=True)
class DStreamProgress(BatchProgress):
    """Also has the batch's received blocks, if they are reported."""

    blocks: Sequence[Block] = ()


def progress_of(query: str, batch: int, info: Any, blocks: Sequence[Block] = ()) -> DStreamProgress:
    """The progress of a finished batch, from Spark's `BatchInfo`. Uses the times of its output operation, because
    Spark's event loop takes the times of the batch late.
    """
    (output,) = info.outputOperationInfos().values()
    start_us, end_us = output.startTime() * MS, output.endTime() * MS
    return DStreamProgress(
        query=query,
        batch=batch,
        start_us=start_us,
        end_us=end_us,
        steps_us={ADD_BATCH: end_us - start_us},
        blocks=blocks,
    )
