"""When a broker had events of a trial, and their results, by its own clock: of some results, evenly over the span.

Its stamps are whole milliseconds of the machine's clock, of a whole batch of messages each; they are rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_ID, EVENT_TIME, partitions_of, sequences_of
from streamgauge.harness.offset_tracker import Offsets
from streamgauge.stats.stratified import stratified_indices
from streamgauge.transports.spi import ManagedBroker

Ints = NDArray[np.int64]

SAMPLES_MAX = 20_000
"""Results that are chosen of those that came since the span began, at most."""


@dataclass(frozen=True)
class AppendTimes:
    """Of n results, microseconds (n,): `event_us` when the broker had the event, `result_us` when it had the result.

    `rows` are the results as they came, but for their emission time.
    """

    rows: pa.Table
    event_us: Ints
    result_us: Ints


def append_times(
    broker: ManagedBroker, offsets: Offsets, stream: str, sink: str, from_us: int, to_us: int
) -> AppendTimes | None:  # fmt: skip
    """Of results of one stream's events in [from_us, to_us); None where nothing is known of any.

    Raises:
        DriverError: the broker does not say.
    """
    rows = broker.results(from_us, _some).get(sink)
    if rows is None:
        return None
    times = rows[EVENT_TIME]
    rows = rows.filter(pc.and_(pc.greater_equal(times, from_us), pc.less(times, to_us)))
    event_us = _events(broker, offsets, stream, np.asarray(rows[EVENT_ID]))
    result_us = np.asarray(rows[EMISSION_TIME])
    return AppendTimes(rows.drop_columns([EMISSION_TIME]), event_us, result_us) if len(rows) else None


def _some(count: int) -> Sequence[int]:
    chosen: list[int] = stratified_indices(count, SAMPLES_MAX).tolist()
    return chosen


def _events(broker: ManagedBroker, offsets: Offsets, stream: str, event_ids: Ints) -> Ints:
    found = np.zeros(len(event_ids), np.int64)
    partitions, sequences = partitions_of(event_ids), sequences_of(event_ids)
    for partition in np.unique(partitions).tolist():
        mine = partitions == partition
        different, places = np.unique(sequences[mine], return_inverse=True)
        wanted = (offsets.first_of((stream, partition)) + different).tolist()
        found[mine] = np.array(broker.appended_us(stream, partition, wanted), np.int64)[places]
    return found
