"""One trial taken apart: every result's way in stages, by what the driver stamped and what Spark says of its batches.

What Spark says is held against the driver's own stamps, batch by batch, on both sides: a hand-out lies between a
batch's first task and its last, a commit after its last task and before its end. Whatever moves Spark's moments against
ours, a clock or a wrong reading of them, breaks one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.engines.spark.event_log import BatchWork
from streamgauge.events import EMISSION_TIME, EVENT_ID, EVENT_TIME, partitions_of
from streamgauge.report.store import RunFolder
from streamgauge.run.ingest import handed_over
from streamgauge.run.spool import results_file
from streamgauge.stats.percentile import carries
from streamgauge.studies import stages
from streamgauge.studies.stages import Moment, Times, Ways

if TYPE_CHECKING:
    from streamgauge.run.journal import Journal
    from streamgauge.run.trial import Judged

CDF_POINTS = 101
TOLERANCE_US = 3000
"""Spark's moments are whole milliseconds, cut off, and a batch's end is a sum of two of them."""
DOUBT_SHARE = 0.02
"""Of a latency, or of the batches: more of it that does not agree, and the stages are called doubtful."""


@dataclass(frozen=True)
class Seen:
    """How a transport shows reads: `stamped` where the driver itself hands events out, and `together` where none can be
    read before every generator has offered that much.
    """

    stamped: bool
    together: bool


@dataclass(frozen=True)
class Batch:
    """Its moments, microseconds: Spark's progress has begun to ended, its event log launched and finished, the driver's
    are read and committed. `read_us` is the first hand-out; over a broker the mark that the batch begins to be written.
    """

    begun_us: int
    fixed_us: int
    planned_us: int
    ended_us: int
    launched_us: int
    finished_us: int
    run_us: int
    read_us: int
    committed_us: int

    def contradictions_us(self, seen: Seen) -> Iterator[int]:
        """By how much moments that must follow each other do not, beyond what rounding explains."""
        pairs = [(self.planned_us, self.read_us), (self.finished_us, self.committed_us)]
        if seen.stamped:
            pairs += [(self.launched_us, self.read_us), (self.read_us, self.finished_us)]
            pairs += [(self.committed_us, self.ended_us)]
        return (before - after for before, after in pairs if before - after > TOLERANCE_US)


def taken_apart(judged: Judged, folder: Path, work: Mapping[int, BatchWork], seen: Seen) -> dict[str, Any]:
    """The stages of a trial's results, as plain data; of one without a result, or a batch that is known, why not."""
    journal, spans = judged.done.journal, judged.done.offered_spans
    path = folder / results_file()
    if not path.is_file():
        return nothing("no result came")
    event_us, emission_us, partitions = _results(path, spans.measured_from_us, spans.measured_to_us)
    batches = batches_of(RunFolder.open(folder).read_batches().to_pylist(), work, journal)
    ways, of_batch, known = ways_of(journal, batches, event_us, emission_us, partitions, seen)
    if not known.any():
        return nothing("no batch of a result is known")
    independent = len(np.unique(of_batch))
    first = stages.first_of_each(of_batch, event_us[known])
    found = {
        "latency": stages.latency(ways, independent),
        "first_of_batch": stages.latency(ways.of(first), independent),
        "stages": stages.summary(ways, independent),
        "remainder_share": _remainder(judged, ways),
        "cdf_us": _spread(ways, independent),
        "batches": independent,
        "left_out": int((~known).sum()),
        **_held_against([batches[batch] for batch in np.unique(of_batch).tolist()], seen),
        "commit_after_us": _commit_after(batches, of_batch, emission_us[known]),
    }
    return {"reason": "", **found, "doubts": list(doubts(found))}


def nothing(reason: str) -> dict[str, Any]:
    """What stands of a trial that could not be taken apart."""
    unknown = dict.fromkeys(
        ("remainder_share", "batches", "left_out", "contradicting_batches", "contradiction_us_max", "tasks_share",
         "commit_after_us")
    )  # fmt: skip
    return {"reason": reason, "latency": {}, "first_of_batch": {}, "stages": [], "cdf_us": [], **unknown, "doubts": []}


def doubts(found: Mapping[str, Any]) -> Iterator[str]:
    """Why stages may be wrong, where their evidence does not agree."""
    remainder, apart = found["remainder_share"], found["contradicting_batches"]
    if remainder is not None and abs(remainder) > DOUBT_SHARE:
        yield "the stages' sum is not the mean latency that the trial computed"
    if found["latency"]["contradicted_share"] > DOUBT_SHARE:
        yield "moments of results do not follow each other"
    if apart > DOUBT_SHARE * found["batches"]:
        yield "what Spark says of its batches contradicts the driver's stamps of them"


def batches_of(progress: list[dict[str, Any]], work: Mapping[int, BatchWork], journal: Journal) -> dict[int, Batch]:
    """The batches of which everything is known; `progress` are rows of the table of batches."""
    committed = {commit.batch: commit.committed_us for commit in journal.commits}
    read: dict[int, int] = {}
    for part in journal.all_hand_outs():
        if part.first and part.events:
            read[part.batch] = min(read.get(part.batch, part.when_us), part.when_us)
    found = {}
    for row in progress:
        number, begun_us = row["batch_id"], row["start_us"]
        if number in work and number in committed and number in read:
            done, fixed_us = work[number], begun_us + _us(row["latest_offset_ms"])
            planned_us = fixed_us + _us(row["wal_commit_ms"]) + _us(row["query_planning_ms"])
            found[number] = Batch(
                begun_us, fixed_us, planned_us, begun_us + _us(row["trigger_ms"]), done.launched_us, done.finished_us,
                done.run_us, read[number], committed[number],
            )  # fmt: skip
    return found


def ways_of(
    journal: Journal, batches: Mapping[int, Batch], event_us: Times, emission_us: Times, partitions: Times, seen: Seen
) -> tuple[Ways, Times, NDArray[np.bool_]]:
    """The ways of the results whose batch is known, the batch of each of these, and which of all they are."""
    published_us, of_batch, read_us = _of_driver(journal, event_us, partitions, seen)
    known = (published_us >= 0) & np.isin(of_batch, np.array(list(batches), np.int64))
    numbers = of_batch[known]

    def at(name: str) -> Times:
        different, places = np.unique(numbers, return_inverse=True)
        when_us: Times = np.array([getattr(batches[number], name) for number in different.tolist()], np.int64)[places]
        return when_us

    moments = [
        Moment("generated", published_us[known]),
        Moment("waiting", at("begun_us"), may_precede=True),
        Moment("offset fixed", at("fixed_us")),
        Moment("planned", at("planned_us")),
    ]
    if seen.stamped:
        moments += [Moment("scheduled", at("launched_us")), Moment("read", read_us[known])]
        last = "processed and written"
    else:
        moments += [Moment("taken by the writer", at("read_us")), Moment("scheduled", at("launched_us"))]
        last = "read, processed and written"
    return stages.ways(event_us[known], moments, emission_us[known], last), numbers, known


def _of_driver(journal: Journal, event_us: Times, partitions: Times, seen: Seen) -> Times:
    """Of each event when it could be read, in which batch it was, and when that began to; -1 of none."""
    found = np.full((3, len(event_us)), -1, np.int64)
    for partition in np.unique(partitions):
        mine = np.flatnonzero(partitions == partition)
        chunks = [(one.to_us, one.published_us) for one in journal.chunks[partition]]
        reads = [(part.to_us, part.batch, part.when_us) for part in journal.hand_outs[partition] if part.first]
        found[0, mine] = _at(event_us[mine], chunks)[0]
        found[1:, mine] = _at(event_us[mine], reads, 2)
    if seen.together:
        found[0] = handed_over(journal)(event_us)
    return found


def _at(event_us: Times, log: Sequence[tuple[int, ...]], values: int = 1) -> Times:
    """Of each event the values of the first entry that ends after it, entries being (end, values...); -1 of none."""
    ends = np.array(sorted(log), np.int64).reshape(-1, values + 1)
    places = np.searchsorted(ends[:, 0], event_us, side="right")
    there = places < len(ends)
    found = np.full((values, len(event_us)), -1, np.int64)
    found[:, there] = ends[places[there], 1:].T
    return found


def _results(path: Path, from_us: int, to_us: int) -> tuple[Times, Times, Times]:
    """Of the span's results: event time, emission time, partition."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows = pq.read_table(path, columns=[EVENT_TIME, EMISSION_TIME, EVENT_ID])
    event_us, emission_us = (np.asarray(pc.cast(rows[name], pa.int64())) for name in (EVENT_TIME, EMISSION_TIME))
    chosen = (event_us >= from_us) & (event_us < to_us)
    return event_us[chosen], emission_us[chosen], partitions_of(np.asarray(rows[EVENT_ID])[chosen])


def _us(ms: float | None) -> int:
    return round(1000 * (ms or 0.0))


def _remainder(judged: Judged, found: Ways) -> float | None:
    """How far the stages' sum is from the mean latency that the trial itself computed, as a share of it: results that
    never came count there, and those that are left out do not here.
    """
    measured = judged.result.latency.event_time_us
    if measured is None or not measured.mean:
        return None
    return float(measured.mean - found.latencies_us.mean()) / measured.mean


def _spread(found: Ways, independent: int) -> list[float | None]:
    """Quantiles from 0 to 1; None of those that so many batches do not carry."""
    shares = np.linspace(0, 1, CDF_POINTS).tolist()
    quantiles = np.quantile(found.latencies_us, shares).tolist()
    return [us if q < 1 and carries(q, independent) else None for q, us in zip(shares, quantiles, strict=True)]


def _held_against(batches: Sequence[Batch], seen: Seen) -> dict[str, Any]:
    """Of how many batches Spark's moments contradict the driver's, and by how much at most; how long tasks ran."""
    apart_us = [max(batch.contradictions_us(seen), default=0) for batch in batches]
    whole_us = sum(batch.ended_us - batch.begun_us for batch in batches)
    return {
        "contradicting_batches": sum(1 for us in apart_us if us),
        "contradiction_us_max": max(apart_us),
        "tasks_share": sum(batch.run_us for batch in batches) / whole_us if whole_us else None,
    }


def _commit_after(batches: Mapping[int, Batch], of_batch: Times, emission_us: Times) -> float:
    """How long after results had come their batch was committed, on average: no part of a latency."""
    different, places = np.unique(of_batch, return_inverse=True)
    when_us = np.array([batches[number].committed_us for number in different.tolist()], np.int64)[places]
    return float((when_us - emission_us).mean())
