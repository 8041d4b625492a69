"""When the driver offered events, and when it delivered them: two timestamps of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamgauge.engines.latency_probe import Times
from streamgauge.metrics.delivery_times import handed_over
from streamgauge.studies.latency_breakdown.saved_results import SavedResults

if TYPE_CHECKING:
    from streamgauge.metrics.trial_log import TrialLog


def offered(trial_log: TrialLog, results: SavedResults, all_generators: bool) -> Times:
    """When the chunk of each result's event was offered, and so could be read; -1 if it was not.

    `all_generators`: events can be read only after every generator has offered its chunk.
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
    """The batch that first read the event of each result, and when; -1 if none did."""
    deliveries = np.full((2, len(results.event_us)), -1, np.int64)
    for partition in np.unique(results.partitions):
        of_partition = np.flatnonzero(results.partitions == partition)
        reads = [(part.to_us, part.batch, part.when_us) for part in trial_log.deliveries[partition] if part.first]
        deliveries[:, of_partition] = _at(results.event_us[of_partition], reads, 2)
    return deliveries[0], deliveries[1]


def first_reads(trial_log: TrialLog) -> dict[int, int]:
    """Batch to its first delivery of events."""
    first_us: dict[int, int] = {}
    for part in trial_log.all_deliveries():
        if part.first and part.events:
            first_us[part.batch] = min(first_us.get(part.batch, part.when_us), part.when_us)
    return first_us


def commits(trial_log: TrialLog) -> dict[int, int]:
    """Batch to its commit."""
    return {commit.batch: commit.committed_us for commit in trial_log.commits}


def _at(event_us: Times, log: Sequence[tuple[int, ...]], values: int = 1) -> Times:
    """For each event, the values of the first log entry (end, values...) that ends after it; -1 without one."""
    ends = np.array(sorted(log), np.int64).reshape(-1, values + 1)
    places = np.searchsorted(ends[:, 0], event_us, side="right")
    available = places < len(ends)
    entries = np.full((values, len(event_us)), -1, np.int64)
    entries[:, available] = ends[places[available], 1:].T
    return entries
