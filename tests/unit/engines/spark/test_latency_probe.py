"""Micro-batches and real-time mode taken apart: every stage worked out by hand, and moved moments are noticed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.engines.latency_probe import Breakdown, ProbeRequest, Sample, StageTimes
from streamgauge.engines.spark.latency_probe import (
    REAL_TIME_STAGES,
    Batch,
    BatchProbe,
    ReadVisibility,
    RealTime,
    TopicToTopic,
    batches_of,
    consistency_fields,
    sampled_stage_times,
)
from streamgauge.engines.spark.session.reports import BatchWork
from streamgauge.harness.broker_log import AppendTimes
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.records import Commit
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.studies.latency_breakdown.decompose import (
    SavedResults,
    TrialEvidence,
    commits,
    decompose,
    first_reads,
    result_times,
)
from streamgauge.transports.spi import Chunk, Delivery
from streamgauge.trial.events import VerdictReached
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
    plan = Plan(job.build(job.read({}), 1000.0).streams, parse_profile("constant", 1000.0, 1), START_US, 1.0, 2, 1)
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
WORK = {0: BatchWork(at(50), at(85), 30_000), 1: BatchWork(at(150), at(185), 30_000)}


def stages_of(
    seen: ReadVisibility, event_ms: list[float], partitions: list[int], sample: Sample | None = None
) -> tuple[Mapping[str, Any], Any, Any]:
    found = trial_log()
    event_us = np.array([at(ms) for ms in event_ms], np.int64)
    batches = batches_of(PROGRESS, WORK, first_reads(found), commits(found))
    emission_us = np.full(len(event_ms), at(200), np.int64)
    names = pa.table({"event_id": np.arange(len(event_ms))})
    results = SavedResults(event_us, emission_us, np.array(partitions, np.int64), names)
    ways, of_batch, known = BatchProbe(Path(), seen).stage_times(batches, result_times(found, results), sample)
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
    stages, _, known = stages_of(BROKER, [4], [0], Sample(np.array([0]), np.array([at(13)]), np.array([at(80)])))
    assert known.all()
    assert stages == {
        "generated": [7], "in Kafka": [2], "waiting": [0], "offset fixed": [4], "planned": [10],
        "taken by the writer": [33], "scheduled": [0], "read, processed and written": [20], "consumed": [120],
    }  # fmt: skip


@pytest.mark.parametrize(("written_us", "apart"), [(80_000, []), (99_000, [4000]), (50_000, [10_000])])
def test_results_lie_within_the_tasks_of_their_batch(written_us: int, apart: list[int]) -> None:
    """By the broker's stamps, of which Spark knows nothing: so a batch is held from both sides there too."""
    assert list(BATCH.contradictions_us(BROKER, written_us)) == apart


def broker_log() -> TrialLog:
    """One partition, of which two chunks of 5 ms were offered."""
    job = registry.get("stamped_text")
    streams = job.build(job.read({}), 1000.0).streams
    found = TrialLog(Plan(streams, parse_profile("constant", 1000.0, 1), START_US, 1.0, 1, 1), sinks=("times",))
    found.chunks, found.deliveries = [[Chunk(at(0), at(5), 5, at(5)), Chunk(at(5), at(10), 5, at(10))]], [[]]
    return found


def results(*event_ms: float) -> SavedResults:
    """Each of whose results came 12 ms after its event."""
    event_us = np.array([at(ms) for ms in event_ms], np.int64)
    count = len(event_us)
    return SavedResults(
        event_us, event_us + 12_000, np.zeros(count, np.int64), pa.table({"event_id": np.arange(count)})
    )


def sample(*moments_ms: tuple[float, float]) -> Sample:
    """When the broker had each event, and its result."""
    event, result = (np.array([at(ms) for ms in column], np.int64) for column in zip(*moments_ms, strict=True))
    return Sample(np.arange(len(event)), event, result)


def sampled_stages(found: SavedResults, known: Sample) -> tuple[StageTimes, np.ndarray]:
    return sampled_stage_times(result_times(broker_log(), found), known)


def test_stages_of_real_time_mode_are_worked_out_by_hand() -> None:
    """An event of 1 ms is offered with its chunk, at 5; the broker has it at 7, and its result at 11; 13 is the end."""
    ways, known = sampled_stages(results(1, 6), sample((7, 11), (12, 16)))
    assert known.tolist() == [True, True]
    assert list(ways.names) == list(REAL_TIME_STAGES)
    assert (ways.spent_us / 1000).tolist() == [[4, 2, 4, 2], [4, 2, 4, 2]]
    assert consistency_fields(ways) == ({"contradicting_results": 0, "contradiction_us_max": 0}, ())


@pytest.mark.parametrize("moved_ms", [-10, -4, 4, 10])
def test_stamps_of_the_broker_that_are_moved_are_noticed(moved_ms: float) -> None:
    """As by a clock that is wrong: whichever way, since results are held from both sides."""
    ways, _ = sampled_stages(results(1, 6), sample((7 + moved_ms, 11 + moved_ms), (12 + moved_ms, 16 + moved_ms)))
    found, doubts = consistency_fields(ways)
    assert found["contradicting_results"] == 2
    assert found["contradiction_us_max"] >= 1500
    assert doubts == ("the broker's timestamps contradict the driver's",)


def test_a_millisecond_that_is_cut_off_is_no_contradiction() -> None:
    """An event that was offered late in its millisecond has that millisecond's middle for its append."""
    ways, _ = sampled_stages(results(1), sample((4.6, 11)))
    assert consistency_fields(ways)[0]["contradicting_results"] == 0
    assert ways.spent_us[0].tolist() == [4000, 0, 6000, 2000]


def test_a_result_before_its_event_is_another_events() -> None:
    """By the broker's clock alone."""
    ways, _ = sampled_stages(results(1), sample((11, 8)))
    assert consistency_fields(ways)[0] == {"contradicting_results": 1, "contradiction_us_max": 2500}


def test_an_event_of_no_known_chunk_is_left_out() -> None:
    """Nothing is said of its way."""
    ways, known = sampled_stages(results(1, 11), sample((7, 11), (15, 18)))
    assert known.tolist() == [True, False]
    assert len(ways.spent_us) == 1


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that has not ended."""
    return RunFolder.create(tmp_path, "stamped_text", "spark-rtm", datetime.now(UTC)).path


def evidence_of(rows: pa.Table, event_us: list[int], result_us: list[int]) -> TrialEvidence:
    """As if a broker had been looked at."""
    evidence = TrialEvidence(TopicToTopic())
    testbed: Any = SimpleNamespace(
        engine=SimpleNamespace(batch_progress=list),
        settings=SimpleNamespace(columns={"records": ()}), sinks=("times",),
        appended=lambda *_: AppendTimes(rows, np.array(event_us), np.array(result_us)),
    )  # fmt: skip
    evidence.collect(VerdictReached(judged(), testbed))
    return evidence


def judged(mean_us: float = 12_000.0) -> Any:
    spans = SimpleNamespace(measured_from_us=at(0), measured_to_us=at(10))
    latency = SimpleNamespace(event_time_us=SimpleNamespace(effective_count=80, mean=mean_us))
    record = SimpleNamespace(trial_log=broker_log(), offered_spans=spans)
    return SimpleNamespace(record=record, result=SimpleNamespace(latency=latency))


def test_a_sample_is_matched_by_the_names_of_results(run: Path) -> None:
    """In whatever order it came; latencies are those of all, stages those of the sample, a broker's millisecond its
    middle.
    """
    evidence = evidence_of(pa.table({"event_id": [2, 0]}), [at(13), at(8)], [at(17), at(12)])
    taken = evidence.break_down(judged(), run, results(1, 2, 6))
    assert isinstance(taken, Breakdown)
    assert len(taken.latencies_us) == 3
    assert (taken.stage_times.spent_us / 1000).tolist() == [[4, 2.5, 4, 1.5], [4, 2.5, 4, 1.5]]
    assert (taken.batches, taken.left_out, len(taken.firsts_us), taken.independent) == (None, 0, 0, 2)


def test_a_silent_broker_is_a_reason(run: Path) -> None:
    """Its clock may be another than ours: then there is no moment of it."""
    found = TrialEvidence(TopicToTopic()).break_down(judged(), run, results(1))
    assert (
        found
        == "the broker's times of events are unknown: its clock is not the driver's, so its timestamps are not used"
    )


def test_without_results_nothing_is_reported(tmp_path: Path) -> None:
    """Nor is it an error."""
    evidence = TrialEvidence(RealTime().evidence(ProbeRequest({}, "kafka", "common"), tmp_path))
    assert decompose(judged(), tmp_path, evidence).reason == "no result came"
