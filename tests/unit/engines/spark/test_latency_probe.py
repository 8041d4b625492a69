"""Micro-batches taken apart: every stage worked out by hand, and moments that are moved are noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.engines.latency_probe import Sample
from streamgauge.engines.spark.latency_probe import Batch, ReadVisibility, batches_of, stage_times_of
from streamgauge.engines.spark.session.logs import BatchWork
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.records import Commit
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.studies.latency_breakdown.timestamps import SavedResults, commits, first_reads, result_times
from streamgauge.transports.spi import Chunk, Delivery
from streamgauge.workloads import registry

FLIGHT, FREE, BROKER = ReadVisibility(True, True), ReadVisibility(True, False), ReadVisibility(False, False)
START_US = 1_000_000
BATCH = Batch(
    started_us=30_000, fixed_us=35_000, planned_us=50_000, ended_us=120_000, launched_us=60_000, finished_us=95_000,
    run_us=30_000, read_us=70_000, committed_us=100_000,
)  # fmt: skip


def at(ms: float) -> int:
    return START_US + round(1000 * ms)


def read(partition_to_ms: float, batch: int, when_ms: float, again: bool = False, events: int = 5) -> Delivery:
    return Delivery(
        "records", at(0), at(partition_to_ms), events, at(when_ms), batch, again, "out", read_us=at(when_ms)
    )


def trial_log() -> TrialLog:
    """Two partitions, the second of which offers later; a batch of both, a repeated read of it, and one batch more."""
    job = registry.get("stamped_text")
    streams = job.build(job.read({}), 1000.0).streams
    plan = Plan(streams, parse_profile("constant", 1000.0, 1), START_US, 1.0, 2, 1)
    found = TrialLog(plan, sinks=("times",))
    found.chunks = [[Chunk(at(0), at(10), 5, at(11)), Chunk(at(10), at(20), 5, at(21))],
                    [Chunk(at(0), at(10), 5, at(14)), Chunk(at(10), at(20), 5, at(29))]]  # fmt: skip
    found.deliveries = [
        [read(10, 0, 60), read(10, 0, 75, again=True), read(20, 1, 160)],
        [read(10, 0, 62), read(20, 1, 161)],
    ]
    found.commits = [
        Commit("out", batch, "times", at(when_ms), at(when_ms), 10, 0, None, [])
        for batch, when_ms in ((0, 90), (1, 190))
    ]
    return found


PROGRESS = [
    {"batch_id": batch, "start_us": at(begun_ms), "latest_offset_ms": 5, "wal_commit_ms": 6, "query_planning_ms": 4,
     "trigger_ms": 90}
    for batch, begun_ms in ((0, 12), (1, 110))
]  # fmt: skip
WORK = {0: BatchWork(0, at(50), at(85), 30_000), 1: BatchWork(1, at(150), at(185), 30_000)}


def stages_of(
    seen: ReadVisibility, event_ms: list[float], partitions: list[int], sample: Sample | None = None
) -> tuple[Mapping[str, Any], Any, Any]:
    found = trial_log()
    event_us = np.array([at(ms) for ms in event_ms], np.int64)
    batches = batches_of(PROGRESS, WORK, first_reads(found), commits(found))
    emission_us = np.full(len(event_ms), at(200), np.int64)
    names = pa.table({"event_id": np.arange(len(event_ms))})
    results = SavedResults(event_us, emission_us, np.array(partitions, np.int64), names)
    ways, of_batch, known = stage_times_of(batches, result_times(found, results), seen, sample)
    spent_ms = {name: (spent / 1000).tolist() for name, spent in zip(ways.names, ways.spent_us.T, strict=True)}
    return spent_ms, of_batch, known


def test_stages_are_worked_out_by_hand() -> None:
    """An event of 4 ms can be read when both partitions have offered it, at 14; batch 0 began at 12, knew its offsets
    at 17, was planned at 27, launched a task at 50, and read the first partition at 60. One of 12 waits for batch 1.
    """
    stages, of_batch, known = stages_of(FLIGHT, [4, 12], [0, 0])
    assert known.all()
    assert of_batch.tolist() == [0, 1]
    assert stages == {
        "generated": [10, 17], "waiting": [0, 81], "offset fixed": [3, 5], "planned": [10, 10],
        "scheduled": [23, 25], "read": [10, 10], "processed and written": [140, 40],
    }  # fmt: skip


def test_a_partition_by_itself_may_be_read_earlier() -> None:
    """Without a common frontier: what the other has offered does not matter."""
    stages, _, _ = stages_of(FREE, [4, 4], [0, 1])
    assert stages["generated"] == [7, 10]
    assert stages["read"] == [10, 12]


def test_over_a_broker_reads_are_hidden() -> None:
    """The stamp is that of the writer's mark, here after the launch, which is moved up to it."""
    stages, _, _ = stages_of(BROKER, [4], [0])
    assert list(stages)[-3:] == ["taken by the writer", "scheduled", "read, processed and written"]
    assert stages["taken by the writer"] == [33]


def test_an_event_of_no_known_batch_is_left_out() -> None:
    """Nothing is said of its way."""
    _, of_batch, known = stages_of(FLIGHT, [4, 25], [0, 0])
    assert known.tolist() == [True, False]
    assert of_batch.tolist() == [0]


def test_a_batch_is_known_where_all_its_moments_are() -> None:
    """The first read of it, and no repeated one."""
    log = trial_log()
    found = batches_of(PROGRESS, {0: WORK[0]}, first_reads(log), commits(log))
    assert list(found) == [0]
    assert found[0] == Batch(at(12), at(17), at(27), at(102), at(50), at(85), 30_000, at(60), at(90))
    assert list(found[0].contradictions_us(FLIGHT)) == []


@pytest.mark.parametrize("moved_us", [-60_000, -30_000, 30_000, 60_000])
def test_moments_of_spark_that_are_moved_are_noticed(moved_us: int) -> None:
    """All of them together, as by a clock that is wrong: whichever way, since a batch is held from both sides."""
    names = ("started_us", "fixed_us", "planned_us", "ended_us", "launched_us", "finished_us")
    moved = replace(BATCH, **{name: getattr(BATCH, name) + moved_us for name in names})
    assert list(BATCH.contradictions_us(FLIGHT)) == []
    assert list(moved.contradictions_us(FLIGHT))


def test_what_a_broker_knows_of_a_sample_is_two_stages_more() -> None:
    """When it had the event, and when it had the result: the latter lies within the batch's tasks."""
    sample = Sample(np.array([0]), np.array([at(13)]), np.array([at(80)]))
    stages, _, known = stages_of(BROKER, [4], [0], sample)
    assert known.all()
    assert stages == {
        "generated": [7], "in Kafka": [2], "waiting": [0], "offset fixed": [4], "planned": [10],
        "taken by the writer": [33], "scheduled": [0], "read, processed and written": [20], "consumed": [120],
    }  # fmt: skip


@pytest.mark.parametrize(("written_us", "apart"), [(80_000, []), (99_000, [4000]), (50_000, [10_000])])
def test_results_lie_within_the_tasks_of_their_batch(written_us: int, apart: list[int]) -> None:
    """By the broker's stamps, of which Spark knows nothing: so a batch is held from both sides there too."""
    assert list(BATCH.contradictions_us(BROKER, written_us)) == apart
