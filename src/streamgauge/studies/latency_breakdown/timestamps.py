"""The timestamps of a trial's stored results: the driver's, the broker's, and those that the engine's probe has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import (
    EMISSION_TIME,
    EVENT_ID,
    EVENT_ORDINAL,
    EVENT_TIME,
    partitions_of,
    sequences_of,
)
from streamgauge.engines.latency_probe import HALF_MS, Breakdown, ProbeInput, ResultTimes, Sample, Times, TrialTimes
from streamgauge.harness.broker_log import AppendTimes
from streamgauge.metrics.delivery_times import handed_over
from streamgauge.verification.results_parquet import results_file

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.metrics.trial_log import TrialLog
    from streamgauge.trial.trial_result import TrialResult


_NAMES = (EVENT_ID, EVENT_ORDINAL)
"""The columns that identify a result."""


@dataclass(frozen=True)
class SavedResults:
    """Event time, emission time and partition of n results (n,), and the columns that `names` lists."""

    event_us: Times
    emission_us: Times
    partitions: Times
    names: pa.Table

    @property
    def latencies_us(self) -> Times:
        """From each event to its result."""
        return self.emission_us - self.event_us

    def select(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> SavedResults:
        """Some of them."""
        names = self.names.filter(chosen) if chosen.dtype == np.bool_ else self.names.take(chosen)
        return SavedResults(self.event_us[chosen], self.emission_us[chosen], self.partitions[chosen], names)

    def matched(self, other_results: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places of the results that both have: among these, and among `other_results`."""
        keys = [name for name in self.names.column_names if name in other_results.column_names]
        own_rows, other_rows = (
            table.select(keys).append_column(column, pa.array(np.arange(len(table))))
            for table, column in ((self.names, "here"), (other_results, "there"))
        )
        both = own_rows.join(other_rows, keys, join_type="inner").sort_by("here")
        return np.asarray(both["here"]), np.asarray(both["there"])


def read_results(folder: Path, from_us: int, to_us: int) -> SavedResults | None:
    """Results with an event time in [from_us, to_us); None if the trial stored none."""
    path = folder / results_file()
    if not path.is_file():
        return None
    columns = pq.read_schema(path).names
    rows = pq.read_table(path, columns=[EVENT_TIME, EMISSION_TIME, *(name for name in _NAMES if name in columns)])
    event_us = np.asarray(pc.cast(rows[EVENT_TIME], pa.int64()))
    rows = rows.filter((event_us >= from_us) & (event_us < to_us))
    event_us, emission_us = (np.asarray(pc.cast(rows[name], pa.int64())) for name in (EVENT_TIME, EMISSION_TIME))
    names = rows.drop_columns([EVENT_TIME, EMISSION_TIME])
    return SavedResults(event_us, emission_us, partitions_of(np.asarray(names[EVENT_ID])), names)


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


class TrialEvidence:
    """What is known of a trial, by the engine's probe and the broker: collected at its end, read after it."""

    def __init__(self, probe: ProbeInput) -> None:
        self.probe = probe
        self._appended: AppendTimes | None = None
        self._no_sample = "its clock is not the driver's, so its timestamps are not used"

    def collect(self, test_bed: TestBed, judged: TrialResult) -> None:
        """Called after the trial, before its processes end: the broker is asked while it still runs."""
        self.probe.collect(test_bed.engine.batch_progress)
        spans, (stream,) = judged.record.offered_spans, test_bed.settings.columns
        try:
            self._appended = test_bed.appended(stream, test_bed.sinks[0], spans.measured_from_us, spans.measured_to_us)
        except DriverError as error:
            self._no_sample = str(error)

    def _sample(self, results: SavedResults) -> Sample | None:
        """The broker's timestamps of these results; None if none is known."""
        if self._appended is None:
            return None
        own_rows, broker_rows = results.matched(self._appended.rows)
        event_us, result_us = self._appended.event_us[broker_rows], self._appended.result_us[broker_rows]
        return Sample(own_rows, event_us - HALF_MS, result_us - HALF_MS) if len(own_rows) else None

    def break_down(self, judged: TrialResult, folder: Path, results: SavedResults) -> Breakdown | str:
        """The decomposed results; or why they cannot be decomposed."""
        trial_log, counted = judged.record.trial_log, judged.result.latency.event_time_us
        return self.probe.break_down(TrialTimes(
            results=result_times(trial_log, results),
            read_us=first_reads(trial_log),
            committed_us=commits(trial_log),
            batch_table=RunFolder.open(folder).read_engine_table("batches"),
            sample=self._sample(results),
            no_sample=self._no_sample,
            observations=counted.effective_count if counted else 0,
        ))  # fmt: skip


def result_times(trial_log: TrialLog, results: SavedResults) -> ResultTimes:
    """The driver's timestamps of results."""
    batches, delivered_us = delivered(trial_log, results)
    return ResultTimes(
        event_us=results.event_us,
        emission_us=results.emission_us,
        partitions=results.partitions,
        sequences=sequences_of(np.asarray(results.names[EVENT_ID])),
        offered_us=offered(trial_log, results, all_generators=False),
        all_offered_us=offered(trial_log, results, all_generators=True),
        batches=batches,
        delivered_us=delivered_us,
    )
