"""Consumer lag: events due and not committed by the SUT, of each partition.

The driver counts what is due, and the commits are those that it saw. A broker's own figures are not asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamgauge.core.arrays import Int64s
from streamgauge.core.clock import US
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.results.run import Lag, LagFigures, PartitionLag
from streamgauge.transports.spi import StreamPartition


def lag_of(record: TrialRecord) -> Lag | None:
    """The lag at whole seconds of the measured span, at its begin and at its end; None without a span."""
    low, high = record.spans.measured_from_us, record.measured_until
    if high <= low:
        return None
    moments = np.unique(np.append(np.arange(low, high, US), high))
    places = lags(record.trial_log, moments, record.spans.end_us)
    table = np.stack(list(places.values()))
    partitions = tuple(
        PartitionLag(stream=stream, partition=partition, **_figures(of_place))
        for (stream, partition), of_place in places.items()
    )
    return Lag(
        sum=LagFigures(**_figures(table.sum(axis=0))), mean=LagFigures(**_figures(table.mean(axis=0))),
        partitions=partitions,
    )  # fmt: skip


def lags(trial_log: TrialLog, moments_us: Int64s, end_us: int) -> dict[StreamPartition, Int64s]:
    """The lag of each partition of each stream at ascending moments, shape (moments,). The plan ends at `end_us`."""
    plan, found = trial_log.plan, {}
    for number, stream in enumerate(plan.streams):
        for partition in range(plan.partitions):
            due = [plan.count_before(number, partition, min(int(when), end_us)) for when in moments_us]
            committed = trial_log.running.committed_of(stream.name, partition, moments_us)
            found[stream.name, partition] = np.maximum(np.array(due, np.int64) - committed, 0)
    return found


def _figures(lag: NDArray[np.number]) -> dict[str, float]:
    return {"begin": float(lag[0]), "end": float(lag[-1]), "max": float(lag.max())}
