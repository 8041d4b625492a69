"""The lineage columns, and the format of event ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
from streamgauge.core.units import PARTITION_BITS, SEQUENCE_BITS

EVENT_TIME = "event_time"
INGEST_TIME = "ingest_time"
EMISSION_TIME = "emission_time"
EVENT_ID = "event_id"
EVENT_ORDINAL = "event_ordinal"
"""The index of a row in the exploded array of its event, from 0."""
EVENT_BRANCH = "event_branch"
"""The input of a union from which a row came, from 0, if ids alone are ambiguous."""
WINDOW_START = "window_start"
WINDOW_END = "window_end"
LINEAGE = (EVENT_TIME, INGEST_TIME, EVENT_ID)


def event_id_base(stream: int, partition: int) -> int:
    """The id of sequence number 0 of a partition; ids of one partition are consecutive.

    8 bits of stream, 12 of partition, 43 of sequence (8.8e12 events).
    """
    return (stream << (PARTITION_BITS + SEQUENCE_BITS)) | (partition << SEQUENCE_BITS)


def partitions_of(event_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The partition of each event id, shape (events,)."""
    return (event_ids >> SEQUENCE_BITS) & (2**PARTITION_BITS - 1)


def sequences_of(event_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sequence number of each event id within its partition, shape (events,)."""
    return event_ids & (2**SEQUENCE_BITS - 1)
