"""The latency probe of DStreams, whose batches are made at fixed times and may wait for their turn.

With a queue, stages and checks are those of micro-batches except for the wait: a batch's input is fixed when the batch
is made. So it waits for the batch before it, not for its events.

Spark's own receivers make blocks first. A block's name says when its interval began, and so when it was cut. Spark's
log says when its driver learned of the block, and the SUT reports its batch and its number of lines. A receiver keeps
the order of its generator, so these numbers say in which block every event is.

A receiver stamps no line. An event can be received as soon as the interval of its block has begun, and not before:
there `received` ends. The time on the wire, less than an interval, is in the stage after it.

The time at which Spark learned of a block is checked against the driver's timestamps on both sides: after its events
were offered, and before the recorder knew that a batch with it begins.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import Problem
from streamgauge.engines import latency_probe
from streamgauge.engines.latency_probe import (
    ProbeRequest,
    ResultTimes,
    Sample,
    StageTimes,
    Times,
    Timestamp,
    TrialTimes,
)
from streamgauge.engines.spark import options_dstream
from streamgauge.engines.spark.latency_probe import (
    READ,
    TOLERANCE_US,
    WRITTEN,
    Batch,
    BatchProbe,
    MicroBatch,
    ReadVisibility,
    timestamps_of,
)
from streamgauge.engines.spark.latency_probe import STAGES as OF_MICRO_BATCHES
from streamgauge.engines.spark.options_dstream import BATCH, BLOCK, RECEIVERS, requested_value
from streamgauge.engines.spark.session import reports
from streamgauge.engines.spark.session.reports import DStreamProgress

QUEUED = "queued"
RECEIVED, IN_BLOCK, ANNOUNCED, IN_BATCH = "received", "in a block", "stored and announced", "in a batch"
RECEIVER_STAGES = {
    RECEIVED: "over sockets: until the interval of the block that has it had begun; so long it lay between both ends",
    IN_BLOCK: "over sockets: until that interval was over, the wire's part of it included",
    ANNOUNCED: "over sockets: until the block was stored, and Spark's driver knew of it",
    IN_BATCH: "over sockets: until the time of the next batch, which is made of the blocks that are known then",
}


@dataclass(frozen=True)
class IntervalProbe(BatchProbe):
    """The evidence on batches that are made at fixed times."""

    def batches(self, progress: list[dict[str, Any]], times: TrialTimes) -> dict[int, Batch]:
        """As for micro-batches, with the time at which each batch was made instead of its start."""
        made_us, found = reports.batch_times(self.logs), super().batches(progress, times)
        return {number: replace(found[number], started_us=made_us[number]) for number in found if number in made_us}


READ_KNOWN_BEFORE_START = ReadVisibility(False, False, known_before_start=True)


@dataclass(frozen=True)
class Blocks:
    """The blocks of one receiver in order (n,). `ends`: lines received up to each block's end; times: microseconds."""

    ends: Times
    batches: Times
    started_us: Times
    reported_us: Times


def blocks_of(progress: Iterable[DStreamProgress], reported_us: Mapping[tuple[int, int], int]) -> dict[int, Blocks]:
    """Partition to its blocks, from the SUT's `progress` and from when Spark learned of each block.

    Blocks after one that is not in the log are unknown.
    """
    rows: dict[int, list[tuple[int, ...]]] = {}
    silent: set[int] = set()
    for batch in sorted(progress, key=lambda one: one.batch):
        for partition, stream, number, lines in batch.blocks:
            if (stream, number) not in reported_us:
                silent.add(partition)
            if partition not in silent:
                row = (lines, batch.batch, number * reports.MS, reported_us[stream, number])
                rows.setdefault(partition, []).append(row)
    found = {}
    for partition, of in rows.items():
        lines, batches, begun, announced = np.array(of, np.int64).T
        found[partition] = Blocks(np.cumsum(lines), batches, begun, announced)
    return found


@dataclass(frozen=True)
class ReceiverProbe(IntervalProbe):
    """The evidence with receivers. `private` is a folder of its own, `interval_s` that of blocks."""

    private: Path = Path()
    interval_s: float = 0.0
    progress: list[DStreamProgress] = field(default_factory=list)

    @property
    def options(self) -> Mapping[str, str]:
        self.logs.mkdir(exist_ok=True)
        return {**reports.event_log_options(self.logs), **reports.block_log_options(self.private)}

    def collect(self, batch_progress: Callable[[], list[BatchProgress]]) -> None:
        self.progress.extend(one for one in batch_progress() if isinstance(one, DStreamProgress))

    def stage_times(
        self, batches: Mapping[int, Batch], results: ResultTimes, _: Sample | None
    ) -> tuple[StageTimes, Times, NDArray[np.bool_]]:
        blocks = blocks_of(self.progress, reports.blocks_stored(self.private))
        return stage_times_of(batches, results, blocks, round(self.interval_s * US))


def stage_times_of(
    batches: Mapping[int, Batch],
    results: ResultTimes,
    blocks: Mapping[int, Blocks],
    interval_us: int,
) -> tuple[StageTimes, Times, NDArray[np.bool_]]:
    """Stage times of the results whose block and batch are known and agree, their batches, and their places.

    A test bed has one plan, so the n-th event of a generator is in the n-th line that it sent.
    """
    published_us, of_batch = results.offered_us, results.batches
    started_us, reported_us, in_batch = _in_blocks(results, blocks)
    known = (published_us >= 0) & (in_batch == of_batch) & np.isin(of_batch, np.array(list(batches), np.int64))
    at = timestamps_of(batches, of_batch)
    moments = [
        Timestamp("generated", published_us),
        Timestamp(RECEIVED, started_us, may_be_earlier=True),
        # A timer cuts blocks, and may be late: then one has events of after its time.
        Timestamp(IN_BLOCK, started_us + interval_us, may_be_earlier=True),
        Timestamp(ANNOUNCED, reported_us, within_us=TOLERANCE_US),
        Timestamp(IN_BATCH, at("started_us"), may_be_earlier=True),
        Timestamp(QUEUED, at("fixed_us"), within_us=TOLERANCE_US),
        Timestamp("scheduled", at("launched_us"), within_us=TOLERANCE_US),
    ]
    times = latency_probe.stage_times(results.event_us, moments, results.emission_us, READ)
    return times.select(known), of_batch[known], known


def _in_blocks(results: ResultTimes, blocks: Mapping[int, Blocks]) -> tuple[Times, Times, Times]:
    """For each result's event: when the interval of its block began, when Spark learned of the block, and its batch.

    -1 without a block.
    """
    started_us, reported_us, in_batch = np.full((3, len(results.event_us)), -1, np.int64)
    for partition, partition_blocks in blocks.items():
        of_partition = np.flatnonzero(results.partitions == partition)
        # The first block that ends behind the line.
        places = np.searchsorted(partition_blocks.ends, results.sequences[of_partition], side="right")
        in_block = places < len(partition_blocks.ends)
        of_partition, places = of_partition[in_block], places[in_block]
        started_us[of_partition] = partition_blocks.started_us[places]
        reported_us[of_partition] = partition_blocks.reported_us[places]
        in_batch[of_partition] = partition_blocks.batches[places]
    return started_us, reported_us, in_batch


STAGES = {
    "generated": OF_MICRO_BATCHES["generated"],
    **RECEIVER_STAGES,
    "waiting": "until the time of the next batch, which is made then and knows what it reads",
    QUEUED: "until Spark began to work on the batch",
    **{name: OF_MICRO_BATCHES[name] for name in ("scheduled", "read", WRITTEN)},
    READ: "over sockets, which hide reads: until the recorder had the result",
}


class DStream(MicroBatch):
    """The probe of DStreams."""

    stages = STAGES
    interval = BATCH
    seconds = staticmethod(options_dstream.seconds)

    def problems(self, request: ProbeRequest) -> Iterator[Problem]:
        of_blocks = reports.BLOCK_LOG_NEEDS if request.transport == RECEIVERS else ()
        return reports.conflicts(request.options, [*reports.event_log_options(Path()), *of_blocks])

    def evidence(self, request: ProbeRequest, private: Path) -> IntervalProbe:
        if request.transport != RECEIVERS:
            visibility = ReadVisibility(True, request.frontier == "common")
            return IntervalProbe(private, visibility, stages_before_tasks={QUEUED: "fixed_us"})
        interval_s = options_dstream.seconds(requested_value(request.options, BLOCK))
        return ReceiverProbe(private / "events", READ_KNOWN_BEFORE_START, private=private, interval_s=interval_s)
