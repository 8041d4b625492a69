"""The latency probes of Structured Streaming: of micro-batches, and of real-time mode.

Micro-batches: by the driver's timestamps and Spark's timestamps of its batches.

Spark's timestamps are checked against the driver's for every batch, on both sides. A delivery lies between a batch's
first and last task; a commit lies after its last task and before its end. A broker hides reads. There, the broker's
timestamps of sampled results must lie between the start of the first task and the end of the last one. A clock error,
or a wrong reading of Spark's timestamps, breaks one of these checks.

Real-time mode: from topic to topic, by the driver's and the broker's timestamps, none of them Spark's. The driver knows
when it offered an event and received its result, the broker when it appended each. Between these, Spark fetches,
processes and writes the row, which stays one stage: in this mode Spark 4.3 reports no latency of its own. The broker's
timestamps are checked against the driver's result by result: an event is appended after it was offered, and a result
before the recorder has it. A result appended before its event belongs to another event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.core.errors import Problem
from streamgauge.engines import latency_probe
from streamgauge.engines.latency_probe import (
    DOUBT_SHARE,
    Breakdown,
    LatencyProbe,
    ProbeInput,
    ProbeRequest,
    ResultTimes,
    Sample,
    StageTimes,
    Times,
    Timestamp,
    TrialTimes,
)
from streamgauge.engines.spark import watermark_and_interval
from streamgauge.engines.spark.session import reports
from streamgauge.engines.spark.session.reports import BatchWork
from streamgauge.transports.registry import STAMPS

PROBES = "probes"
"""The option that says what is kept of batches."""
TOLERANCE_US = 3000
"""Spark's moments are whole milliseconds, cut off, and a batch's end is a sum of two of them."""
READ, WRITTEN = "read, processed and written", "processed and written"
STAGES = {
    "generated": "until it could be read: its chunk, and with a common frontier those of all generators, offered",
    latency_probe.IN_KAFKA: latency_probe.MEANING,
    "waiting": "until a batch of the engine began",
    "offset fixed": "until the batch knew up to where it reads",
    "planned": "the batch's plan written to the checkpoint, and its query planned",
    "taken by the writer": "over a broker: until our own writer of batches had told the recorder that it begins one",
    "scheduled": "until the first task of the batch was launched",
    "read": "until a task began to take the events over",
    WRITTEN: "until the recorder had the result, the rest of reading included",
    READ: "over a broker, which hides reads: until it had the result",
    latency_probe.CONSUMED: latency_probe.CONSUMED_MEANING,
}


STAGES_BEFORE_TASKS = {"offset fixed": "fixed_us", "planned": "planned_us"}
"""The stages from a batch's begin to its first task, each with the moment of a batch at which it ends."""


class MicroBatch(LatencyProbe):
    """The probe of micro-batches."""

    stages = STAGES
    interval = "trigger"
    seconds = staticmethod(watermark_and_interval.seconds)

    def option_value(self, interval_s: float) -> str:
        """As Spark writes it."""
        return f"{round(1000 * interval_s)} milliseconds"

    def problems(self, request: ProbeRequest) -> Iterator[Problem]:
        yield from reports.conflicts(request.options, reports.event_log_options(Path()))
        if request.options.get(PROBES) == "off":
            yield Problem(f"option {PROBES}", "must be progress or on: batches are known by it", "off", "leave it out")

    def evidence(self, request: ProbeRequest, private: Path) -> BatchProbe:
        stamped = request.transport in STAMPS
        return BatchProbe(private, ReadVisibility(stamped, stamped and request.frontier == "common"))


@dataclass(frozen=True)
class ReadVisibility:
    """What a transport shows of reads.

    `delivery_timestamped`: the driver itself delivers events. `all_generators`: events can be read only after every
    generator has offered its chunk. `known_before_start`: the driver learns what a batch reads before its first task.
    """

    delivery_timestamped: bool
    all_generators: bool
    known_before_start: bool = False


@dataclass(frozen=True)
class Batch:
    """Timestamps of a batch in microseconds.

    Spark's progress gives its begin and end, Spark's event log launch and finish of its tasks, and the driver read and
    commit. `read_us` is the first delivery; over a broker, when the batch's begin is written; over sockets, its begin.
    """

    started_us: int
    fixed_us: int
    planned_us: int
    ended_us: int
    launched_us: int
    finished_us: int
    run_us: int
    read_us: int
    committed_us: int

    def contradictions_us(self, visibility: ReadVisibility, written_us: int | None = None) -> Iterator[int]:
        """By how much moments that must follow each other do not, beyond what rounding explains. `written_us`: when a
        broker had the last result that is known of.
        """
        pairs = [(self.planned_us, self.read_us), (self.finished_us, self.committed_us)]
        if visibility.delivery_timestamped:
            pairs += [(self.launched_us, self.read_us), (self.read_us, self.finished_us)]
        if visibility.known_before_start:
            pairs.append((self.read_us, self.launched_us))
        if visibility.delivery_timestamped or visibility.known_before_start:
            pairs.append((self.committed_us, self.ended_us))
        if written_us is not None:
            pairs += [(self.launched_us, written_us), (written_us, self.finished_us)]
        return (before - after for before, after in pairs if before - after > TOLERANCE_US)


@dataclass(frozen=True)
class BatchProbe(ProbeInput):
    """The evidence on the batches of one trial."""

    logs: Path
    visibility: ReadVisibility
    stages_before_tasks: Mapping[str, str] = field(default_factory=lambda: STAGES_BEFORE_TASKS)

    @property
    def options(self) -> Mapping[str, str]:
        return reports.event_log_options(self.logs)

    def batches(self, progress: list[dict[str, Any]], times: TrialTimes) -> dict[int, Batch]:
        """The batches with all timestamps known; `progress`: rows of the table of batches."""
        return batches_of(progress, reports.work(self.logs), times.read_us, times.committed_us)

    def stage_times(
        self, batches: Mapping[int, Batch], results: ResultTimes, sample: Sample | None
    ) -> tuple[StageTimes, Times, NDArray[np.bool_]]:
        """Stage times of the results whose batch is known, the batch of each, and their places among all results.

        If the results are a `sample`, the broker's timestamps are known too.
        """
        published_us = results.all_offered_us if self.visibility.all_generators else results.offered_us
        of_batch, read_us = results.batches, results.delivered_us
        known = (published_us >= 0) & np.isin(of_batch, np.array(list(batches), np.int64))
        at = timestamps_of(batches, of_batch)
        moments = [Timestamp("generated", published_us)]
        moments += [] if sample is None else [sample.event_in_broker()]
        moments.append(Timestamp("waiting", at("started_us"), may_be_earlier=True))
        moments += [Timestamp(stage, at(moment)) for stage, moment in self.stages_before_tasks.items()]
        if self.visibility.delivery_timestamped:
            moments += [Timestamp("scheduled", at("launched_us")), Timestamp("read", read_us)]
        else:
            moments += [Timestamp("taken by the writer", at("read_us")), Timestamp("scheduled", at("launched_us"))]
        last = WRITTEN if self.visibility.delivery_timestamped else READ
        if sample is not None:
            moments, last = [*moments, sample.result_in_broker(last)], latency_probe.CONSUMED
        times = latency_probe.stage_times(results.event_us, moments, results.emission_us, last)
        return times.select(known), of_batch[known], known

    def break_down(self, trial: TrialTimes) -> Breakdown | str:
        results, sample = trial.results, trial.sample
        batches = self.batches(trial.batch_table.to_pylist(), trial)
        sampled = results if sample is None else results.select(sample.places)
        times, of_batch, known = self.stage_times(batches, sampled, sample)
        if not known.any():
            return "no batch of a result is known"
        with_results, last_us = np.unique(of_batch).tolist(), dict[int, int]()
        if sample is not None:
            last_us = {batch: int(sample.result_us[known][of_batch == batch].max()) for batch in with_results}
        fields = _consistency_fields({batch: batches[batch] for batch in with_results}, self.visibility, last_us)
        # Mean time from a result to the commit of its batch, which is not part of a latency.
        committed_us = timestamps_of(batches, of_batch)("committed_us")
        fields["commit_after_us"] = float((committed_us - sampled.emission_us[known]).mean())
        latencies_us, count = times.latencies_us if sample is None else results.latencies_us, len(with_results)
        contradictory = fields["contradicting_batches"] > DOUBT_SHARE * count
        doubts = ("Spark's own times of its batches contradict the driver's timestamps",) * contradictory
        in_batches = results.select(np.isin(results.batches, list(batches)))
        firsts_us = in_batches.latencies_us[latency_probe.first_of_each(in_batches.batches, in_batches.event_us)]
        return Breakdown(times, latencies_us, firsts_us, count, count, int((~known).sum()), fields, doubts)


def batches_of(
    progress: list[dict[str, Any]],
    work: Mapping[int, BatchWork],
    read_us: Mapping[int, int],
    committed_us: Mapping[int, int],
) -> dict[int, Batch]:
    """The batches with all timestamps known; `progress`: rows of the table of batches."""
    complete = {}
    for row in progress:
        number, started_us = row["batch_id"], row["start_us"]
        if number in work and number in committed_us and number in read_us:
            names = ("latest_offset_ms", "wal_commit_ms", "query_planning_ms", "trigger_ms")
            latest_us, wal_us, planning_us, whole_us = (round(1000 * (row[name] or 0.0)) for name in names)
            fixed_us, record = started_us + latest_us, work[number]
            complete[number] = Batch(
                started_us, fixed_us, fixed_us + wal_us + planning_us, started_us + whole_us, record.launched_us,
                record.finished_us, record.run_us, read_us[number], committed_us[number],
            )  # fmt: skip
    return complete


def timestamps_of(batches: Mapping[int, Batch], of_batch: Times) -> Callable[[str], Times]:
    """A function that gives a timestamp, by name, of each result's batch; 0 if the batch is unknown."""
    different, places = np.unique(of_batch, return_inverse=True)
    none = Batch(*[0] * 9)

    def at(name: str) -> Times:
        return np.array([getattr(batches.get(number, none), name) for number in different.tolist()], np.int64)[places]

    return at


def _consistency_fields(
    batches: Mapping[int, Batch], visibility: ReadVisibility, written_us: Mapping[int, int]
) -> dict[str, Any]:
    """Batches whose timestamps by Spark contradict the driver's, the largest contradiction, and the tasks' share of
    time.
    """
    contradictions_us = [
        max(batch.contradictions_us(visibility, written_us.get(number)), default=0) for number, batch in batches.items()
    ]
    whole_us = sum(batch.ended_us - batch.started_us for batch in batches.values())
    return {
        "contradicting_batches": sum(1 for us in contradictions_us if us),
        "contradiction_us_max": max(contradictions_us),
        "tasks_share": sum(batch.run_us for batch in batches.values()) / whole_us if whole_us else None,
    }


READ_AND_PROCESSED = "read and processed"
REAL_TIME_STAGES = {
    "generated": "until its chunk was offered",
    latency_probe.IN_KAFKA: latency_probe.MEANING,
    READ_AND_PROCESSED: "until the broker had the result: fetched, processed and sent by Spark",
    latency_probe.CONSUMED: latency_probe.CONSUMED_MEANING,
}


class RealTime(LatencyProbe):
    """The probe of real-time mode. Every trial that can run in it can be decomposed."""

    stages = REAL_TIME_STAGES

    def evidence(self, request: ProbeRequest, private: Path) -> TopicToTopic:
        return TopicToTopic()


class TopicToTopic(ProbeInput):
    """The evidence on one trial's sampled results."""

    def break_down(self, trial: TrialTimes) -> Breakdown | str:
        results, sample = trial.results, trial.sample
        if sample is None:
            return f"the broker's times of events are unknown: {trial.no_sample}"
        times, known = sampled_stage_times(results, sample)
        if not known.any():
            return "no result's event is known to have been offered"
        independent, left_out = min(len(known), trial.observations), int((~known).sum())
        no_firsts_us = np.zeros(0, np.int64)
        return Breakdown(
            times, results.latencies_us, no_firsts_us, independent, None, left_out, *consistency_fields(times)
        )


def sampled_stage_times(results: ResultTimes, sample: Sample) -> tuple[StageTimes, np.ndarray]:
    """Stage times of the sampled results whose chunk is known, and their places in the sample."""
    sampled = results.select(sample.places)
    known = sampled.offered_us >= 0
    moments = [
        Timestamp("generated", sampled.offered_us),
        sample.event_in_broker(),
        sample.result_in_broker(READ_AND_PROCESSED),
    ]
    times = latency_probe.stage_times(sampled.event_us, moments, sampled.emission_us, latency_probe.CONSUMED)
    return times.select(known), known


def consistency_fields(times: StageTimes) -> tuple[dict[str, int], tuple[str, ...]]:
    """Results whose timestamps contradict each other beyond their resolution, the largest contradiction, and doubts."""
    contradicting = int((times.contradicted_us > 0).sum())
    fields = {"contradicting_results": contradicting, "contradiction_us_max": int(times.contradicted_us.max())}
    is_doubtful = contradicting > DOUBT_SHARE * len(times.contradicted_us)
    return fields, ("the broker's timestamps contradict the driver's",) * is_doubtful
