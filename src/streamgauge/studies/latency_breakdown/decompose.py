"""Decomposes one trial's latency into stages, for any execution mode.

The stages of a result follow each other, so their sum is its latency by construction. That does not prove where one
ends and the next begins. So each mode checks its evidence against the driver's timestamps and reports contradictions.

The timestamps are those of the stored results: the driver's, the broker's, and those that the engine's probe has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from streamgauge.engines.latency_probe import (
    DOUBT_SHARE,
    HALF_MS,
    Breakdown,
    ProbeInput,
    ResultTimes,
    Sample,
    StageTimes,
    Times,
    TrialTimes,
)
from streamgauge.harness.broker_log import AppendTimes
from streamgauge.metrics.delivery_times import handed_over
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.results.breakdown import Decomposition, LatencyFigures, StageFigures, TrialLatency
from streamgauge.stats.samples import carries
from streamgauge.trial.events import TrialEvent, VerdictReached
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verification.received_results import results_file

CDF_POINTS = 101
_NAMES = (EVENT_ID, EVENT_ORDINAL)
"""The columns that identify a result."""


@dataclass(frozen=True)
class SavedResults:
    """Event time, emission time and partition of n results (n,), and the columns that `names` lists."""

    event_us: Times
    emission_us: Times
    partitions: Times
    names: pa.Table

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
    event_us, emission_us = (np.asarray(pc.cast(rows[name], pa.int64())) for name in (EVENT_TIME, EMISSION_TIME))
    chosen = (event_us >= from_us) & (event_us < to_us)
    names = rows.drop_columns([EVENT_TIME, EMISSION_TIME]).filter(chosen)
    return SavedResults(event_us[chosen], emission_us[chosen], partitions_of(np.asarray(names[EVENT_ID])), names)


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


class TrialEvidence:
    """What is known of a trial, by the engine's probe and the broker: collected at its end, read after it."""

    def __init__(self, probe: ProbeInput) -> None:
        self.probe = probe
        self._appended: AppendTimes | None = None
        self._no_sample = "its clock is not the driver's, so its timestamps are not used"

    def collect(self, event: TrialEvent) -> None:
        """An observer, which asks probe and broker once the trial is judged, while its processes still run."""
        if not isinstance(event, VerdictReached):
            return
        test_bed, spans = event.testbed, event.trial.record.offered_spans
        self.probe.collect(test_bed.engine.batch_progress)
        (stream,) = test_bed.settings.columns
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
    chunks = [[(one.to_us, one.published_us) for one in log] for log in trial_log.chunks]
    reads = [[(part.to_us, part.batch, part.when_us) for part in log if part.first] for log in trial_log.deliveries]
    (offered_us,), (batches, delivered_us) = _looked_up(chunks, results, 1), _looked_up(reads, results, 2)
    return ResultTimes(
        event_us=results.event_us,
        emission_us=results.emission_us,
        partitions=results.partitions,
        sequences=sequences_of(np.asarray(results.names[EVENT_ID])),
        offered_us=offered_us,
        all_offered_us=handed_over(trial_log)(results.event_us),
        batches=batches,
        delivered_us=delivered_us,
    )


def _looked_up(logs: Sequence[Sequence[tuple[int, ...]]], results: SavedResults, values: int) -> Times:
    """For each result, the values of the first entry (end, values...) of its partition's log that ends after its event.

    -1 without one; the shape is (values, n).
    """
    found = np.full((values, len(results.event_us)), -1, np.int64)
    for partition in np.unique(results.partitions):
        entries = np.array(sorted(logs[partition]), np.int64).reshape(-1, values + 1)
        of_partition = np.flatnonzero(results.partitions == partition)
        places = np.searchsorted(entries[:, 0], results.event_us[of_partition], side="right")
        available = places < len(entries)
        found[:, of_partition[available]] = entries[places[available], 1:].T
    return found


def decompose(judged: TrialResult, folder: Path, evidence: TrialEvidence) -> Decomposition:
    """The stages of a trial's results, or the reason why they are unknown."""
    spans = judged.record.offered_spans
    results = read_results(folder, spans.measured_from_us, spans.measured_to_us)
    if results is None or not len(results.event_us):
        return Decomposition(reason="no result came")
    breakdown = evidence.break_down(judged, folder, results)
    return Decomposition(reason=breakdown) if isinstance(breakdown, str) else _report(judged, breakdown)


def _report(judged: TrialResult, breakdown: Breakdown) -> Decomposition:
    contradicted = contradicted_share(breakdown.stage_times)
    unexplained = _unexplained_share(judged, breakdown)
    whole, firsts = (_figures(each, breakdown.independent) for each in (breakdown.latencies_us, breakdown.firsts_us))
    return Decomposition(
        latency=TrialLatency(**whole, results=len(breakdown.latencies_us), contradicted_share=contradicted),
        first_of_batch=LatencyFigures(**firsts, results=len(breakdown.firsts_us)) if firsts else None,
        stages=stage_figures(breakdown.stage_times, breakdown.independent),
        sampled=len(breakdown.stage_times.spent_us),
        remainder_share=unexplained,
        cdf_us=_spread(breakdown.latencies_us, breakdown.independent),
        batches=breakdown.batches,
        left_out=breakdown.left_out,
        doubts=(*doubts(unexplained, contradicted), *breakdown.doubts),
        **breakdown.extra_fields,
    )


def doubts(unexplained_share: float | None, contradicted_share: float) -> Iterator[str]:
    """Why stages may be wrong, if their evidence does not agree, in any mode."""
    if abs(unexplained_share or 0.0) > DOUBT_SHARE:
        yield "the sum of the stages differs from the trial's mean latency"
    if contradicted_share > DOUBT_SHARE:
        yield "timestamps of results contradict each other"


def _unexplained_share(judged: TrialResult, breakdown: Breakdown) -> float | None:
    """Difference between the stages' sum and the trial's own mean latency, as a share of it.

    The trial's mean includes missing results. The stages lack these, results that are left out, and those outside a
    sample.
    """
    measured = judged.result.latency.event_time_us
    if measured is None or not measured.mean:
        return None
    return float(measured.mean - breakdown.stage_times.latencies_us.mean()) / measured.mean


def _spread(latencies_us: Times, independent: int) -> tuple[float | None, ...]:
    """Quantiles from 0 to 1; None for those that too few observations carry."""
    shares = np.linspace(0, 1, CDF_POINTS).tolist()
    quantiles = np.quantile(latencies_us, shares).tolist()
    return tuple(us if carries(q, independent) else None for q, us in zip(shares, quantiles, strict=True))


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def stage_figures(times: StageTimes, independent: int) -> tuple[StageFigures, ...]:
    """Each stage: mean, percentiles of its own (where `independent` observations carry them), and its share of the
    mean latency.
    """
    whole_us = float(times.latencies_us.mean())
    return tuple(
        StageFigures(
            name=name,
            share=float(column.mean()) / whole_us if whole_us else 0.0,
            **_figures(column, independent),
        )
        for name, column in zip(times.names, times.spent_us.T, strict=True)
    )


def _figures(values_us: Times, independent: int) -> dict[str, Any]:
    """Empty without a value."""
    if not len(values_us):
        return {}
    return {"mean_us": float(values_us.mean())} | {
        f"{name}_us": float(np.quantile(values_us, q)) if carries(q, independent) else None
        for name, q in PERCENTILES.items()
    }


def contradicted_share(times: StageTimes) -> float:
    """How far the timestamps of results contradict each other, as a share of their latency."""
    return float(times.contradicted_us.mean() / max(times.latencies_us.mean(), 1.0))
