"""When the driver offered events, and when it delivered them: two timestamps of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamgauge.metrics.log.ingest_times import handed_over
from streamgauge.studies.latency_breakdown.saved_results import SavedResults
from streamgauge.studies.latency_breakdown.stages import Times

if TYPE_CHECKING:
    from streamgauge.metrics.log.trial_log import TrialLog


def offered(trial_log: TrialLog, results: SavedResults, all_generators: bool) -> Times:
    """When the event of each result could be read, its chunk offered; `all_generators`: with the chunks of all
    generators, as none can be read before. -1 of one that was not.
    """
    if all_generators:
        return handed_over(trial_log)(results.event_us)
    published_us = np.full(len(results.event_us), -1, np.int64)
    for partition in np.unique(results.partitions):
        of_partition = results.partitions == partition
        chunks = [(one.to_us, one.published_us) for one in trial_log.chunks[partition]]
        published_us[of_partition] = _at(results.event_us[of_partition], chunks)[0]
    return published_us


def delivered(trial_log: TrialLog, results: SavedResults) -> tuple[Times, Times]:
    """In which batch the event of each result was read first, and when; -1 of none."""
    deliveries = np.full((2, len(results.event_us)), -1, np.int64)
    for partition in np.unique(results.partitions):
        of_partition = np.flatnonzero(results.partitions == partition)
        reads = [(part.to_us, part.batch, part.when_us) for part in trial_log.deliveries[partition] if part.first]
        deliveries[:, of_partition] = _at(results.event_us[of_partition], reads, 2)
    return deliveries[0], deliveries[1]


def _at(event_us: Times, log: Sequence[tuple[int, ...]], values: int = 1) -> Times:
    """Of each event the values of the first entry that ends after it, entries being (end, values...); -1 of none."""
    ends = np.array(sorted(log), np.int64).reshape(-1, values + 1)
    places = np.searchsorted(ends[:, 0], event_us, side="right")
    available = places < len(ends)
    entries = np.full((values, len(event_us)), -1, np.int64)
    entries[:, available] = ends[places[available], 1:].T
    return entries
