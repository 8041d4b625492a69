"""Append times of a broker: when it had events of a trial and their results, for a sample of the results.

The broker stamps a whole batch of messages at once, in milliseconds. The times are rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, partitions_of, sequences_of
from streamgauge.harness.offset_tracker import Offsets
from streamgauge.stats.samples import stratified_indices
from streamgauge.transports.spi import ManagedBroker

SAMPLES_MAX = 20_000
"""The largest sample of the results that arrived since the span began."""


@dataclass(frozen=True)
class AppendTimes:
    """Append times of n results, microseconds (n,): `event_us` of the event, `result_us` of the result.

    `rows` are the results without their emission time.
    """

    rows: pa.Table
    event_us: Int64s
    result_us: Int64s


def append_times(
    broker: ManagedBroker, offsets: Offsets, stream: str, sink: str, from_us: int, to_us: int
) -> AppendTimes | None:  # fmt: skip
    """Append times for results of one stream's events in [from_us, to_us). None without such results.

    Raises:
        DriverError: the broker does not answer.
    """
    rows = broker.results(from_us, _sample).get(sink)
    if rows is None:
        return None
    times = rows[EVENT_TIME]
    rows = rows.filter(pc.and_(pc.greater_equal(times, from_us), pc.less(times, to_us)))
    event_us = _event_times(broker, offsets, stream, np.asarray(rows[EVENT_ID]))
    result_us = np.asarray(rows[EMISSION_TIME])
    return AppendTimes(rows.drop_columns([EMISSION_TIME]), event_us, result_us) if len(rows) else None


def _sample(count: int) -> Sequence[int]:
    chosen: list[int] = stratified_indices(count, SAMPLES_MAX).tolist()
    return chosen


def _event_times(broker: ManagedBroker, offsets: Offsets, stream: str, event_ids: Int64s) -> Int64s:
    """The append time of each event; the broker is asked once per partition, for distinct events."""
    times_us = np.zeros(len(event_ids), np.int64)
    partitions, sequences = partitions_of(event_ids), sequences_of(event_ids)
    for partition in np.unique(partitions).tolist():
        of_partition = partitions == partition
        distinct, places = np.unique(sequences[of_partition], return_inverse=True)
        event_offsets = (offsets.first_of((stream, partition)) + distinct).tolist()
        times_us[of_partition] = np.array(broker.appended_us(stream, partition, event_offsets), np.int64)[places]
    return times_us
