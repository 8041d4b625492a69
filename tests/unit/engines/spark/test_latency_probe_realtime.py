"""Real-time mode taken apart: every stage worked out by hand, and stamps that are moved are noticed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.engines.latency_probe import Breakdown, ProbeRequest, Sample, StageTimes
from streamgauge.engines.spark.latency_probe_realtime import (
    STAGES,
    RealTime,
    TopicToTopic,
    consistency_fields,
    stage_times_of,
)
from streamgauge.harness.broker_log import AppendTimes
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.studies.latency_breakdown.decompose import decompose
from streamgauge.studies.latency_breakdown.timestamps import BrokerTimestamps, SavedResults, TrialEvidence, result_times
from streamgauge.transports.spi import Chunk
from streamgauge.workloads import registry

START_US = 1_000_000


def at(ms: float) -> int:
    return START_US + round(1000 * ms)


def trial_log() -> TrialLog:
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


def stages_of(found: SavedResults, known: Sample) -> tuple[StageTimes, np.ndarray]:
    return stage_times_of(result_times(trial_log(), found), known)


def test_stages_are_worked_out_by_hand() -> None:
    """An event of 1 ms is offered with its chunk, at 5; the broker has it at 7, and its result at 11; 13 is the end."""
    ways, known = stages_of(results(1, 6), sample((7, 11), (12, 16)))
    assert known.tolist() == [True, True]
    assert list(ways.names) == list(STAGES)
    assert (ways.spent_us / 1000).tolist() == [[4, 2, 4, 2], [4, 2, 4, 2]]
    assert consistency_fields(ways) == ({"contradicting_results": 0, "contradiction_us_max": 0}, ())


@pytest.mark.parametrize("moved_ms", [-10, -4, 4, 10])
def test_stamps_of_the_broker_that_are_moved_are_noticed(moved_ms: float) -> None:
    """As by a clock that is wrong: whichever way, since results are held from both sides."""
    ways, _ = stages_of(results(1, 6), sample((7 + moved_ms, 11 + moved_ms), (12 + moved_ms, 16 + moved_ms)))
    found, doubts = consistency_fields(ways)
    assert found["contradicting_results"] == 2
    assert found["contradiction_us_max"] >= 1500
    assert doubts == ("the broker's timestamps contradict the driver's",)


def test_a_millisecond_that_is_cut_off_is_no_contradiction() -> None:
    """An event that was offered late in its millisecond has that millisecond's middle for its append."""
    ways, _ = stages_of(results(1), sample((4.6, 11)))
    assert consistency_fields(ways)[0]["contradicting_results"] == 0
    assert ways.spent_us[0].tolist() == [4000, 0, 6000, 2000]


def test_a_result_before_its_event_is_another_events() -> None:
    """By the broker's clock alone."""
    ways, _ = stages_of(results(1), sample((11, 8)))
    assert consistency_fields(ways)[0] == {"contradicting_results": 1, "contradiction_us_max": 2500}


def test_an_event_of_no_known_chunk_is_left_out() -> None:
    """Nothing is said of its way."""
    ways, known = stages_of(results(1, 11), sample((7, 11), (15, 18)))
    assert known.tolist() == [True, False]
    assert len(ways.spent_us) == 1


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that has not ended."""
    return RunFolder.create(tmp_path, "stamped_text", "spark-rtm", datetime.now(UTC)).path


def evidence_of(rows: pa.Table, event_us: list[int], result_us: list[int]) -> TrialEvidence:
    """As if a broker had been looked at."""
    broker = BrokerTimestamps()
    broker.collect(
        SimpleNamespace(
            settings=SimpleNamespace(columns={"records": ()}), sinks=("times",),
            appended=lambda *_: AppendTimes(rows, np.array(event_us), np.array(result_us)),
        ),
        judged(),
    )  # fmt: skip
    return TrialEvidence(TopicToTopic(), broker)


def judged(mean_us: float = 12_000.0) -> Any:
    spans = SimpleNamespace(measured_from_us=at(0), measured_to_us=at(10))
    latency = SimpleNamespace(event_time_us=SimpleNamespace(effective_count=80, mean=mean_us))
    record = SimpleNamespace(trial_log=trial_log(), offered_spans=spans)
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


def test_without_results_nothing_is_told(tmp_path: Path) -> None:
    """Nor is it an error."""
    evidence = TrialEvidence(RealTime().evidence(ProbeRequest({}, "kafka", "common"), tmp_path))
    assert decompose(judged(), tmp_path, evidence).reason == "no result came"
