"""Every kind of workload over a broker, with one partition and with several, each verified.

Partitions are read up to their own offsets, so no batch ends at one event time. A restart with keyed processes and
updates of two partitions is in `tests/real/broker/test_spark_kafka.py`.
"""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.engines.spark.engine import SparkEngine
from streamgauge.harness.start_processes import TestBed
from streamgauge.loadgen.random import partitions_of
from streamgauge.system.child_processes import send_signal, wait_until
from streamgauge.trial.trial_result import TrialResult
from streamgauge.workloads import registry
from tests.helpers_application_variants import together
from tests.helpers_broker_trials import WINDOW, InMidTrial, check_answers, on_a_broker, require_jars, started, trial

pytestmark = pytest.mark.long
EXAMPLES = Path(__file__).parents[3] / "examples"
GRID = {"range": "2s", "slide": "1s", "slice_length": "1s", "slices_per_day": "3"}
RANKED = {"window": "2s", "frequency": "1s"}
# Workloads that share a Spark and a broker: the rate, and the parameters of each.
GROUPS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "windows": (
        "6k", {"windowed_join": WINDOW, "windowed_aggregation": WINDOW, "yahoo_streaming": {"window": "1s"}},
    ),
    "updates": ("5k", {"word_count": {}, "log_processing": {"lines_per_second": "20"}}),
    "counts": ("5k", {"count": {"packs": "50"}}),
    "rows": ("6k", {"identity": {}, "stamped_text": {}, "throughput": {}}),
    "filter": ("5k", {"filter": {"above": "50"}}),
    "processes": (
        "6k",
        {
            "spike_detection": {"moving_average_window": "20", "devices": "40"},
            "fraud_detection": {"customers": "1000", "frauds": "0.1"},
            "bargain_index": {},
        },
    ),
    "two streams": ("6k", {"ads_analytics": {**RANKED, "queries": "50"}, "reinforcement_learner": {}}),
    "rankings": ("5k", {"trending_topics": RANKED, "traffic_monitoring": {}}),
    "machines": ("4k", {"machine_outlier": {}}),
    "clicks": ("4k", {"click_analytics": {"visitors": "1000", "pages": "100"}}),
    "texts": ("3k", {"sentiment_analysis": {}, "spam_filter": {}}),
    "calls": ("4k", {"voipstream": {}}),
    "grid": ("4k", {"smart_grid": GRID}),
    "topologies": (
        "5k",
        {
            "scalability_sink": {"keys": "100"},
            "scalability_hierarchical": {"height": "2", "range": "1s"},
            "scalability_tumbling": {"keys": "100", "range": "1s"},
            "scalability_hopping": {"keys": "100", "range": "2s", "period": "20ms"},
        },
    ),
}  # fmt: skip
BATCHES = 3
"""Without a generator: after these the watermark is past what it sends late."""
STALL_S = 25.0
"""At most; a process that does not answer for 30 s has failed."""
USER_JOBS = {"revenue": "5k", "enrich": "5k", "rewards": "2k"}
COUNTS = """
from pyspark.sql import functions as F

from streamgauge.jobs import Integer, Key, job, stream

BY_USER = "SELECT user_id, count(*) AS n, max(event_time) AS event_time FROM purchases GROUP BY user_id"


@job(
    stream("purchases", Key("user_id", 200), Integer("price", 1, 100), key="user_id"),
    mode="update", keys="user_id", reference=BY_USER,
)
def counts(spark, inputs):
    counted = inputs["purchases"].groupBy("user_id")
    return counted.agg(F.count("*").alias("n"), F.max("event_time").alias("event_time"))
"""


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars("spark")


def test_every_workload_is_in_a_group() -> None:
    """One that nobody put into a group is found here."""
    assert {name for _, parts in GROUPS.values() for name in parts} == set(registry.names())


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("group", GROUPS)
@on_a_broker
def test_workloads_are_right_with_any_number_of_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, partitions: int
) -> None:
    """Two generators write four partitions; lag is there for each of them."""
    rate, parts = GROUPS[group]
    workload = together(parts)
    monkeypatch.setitem(registry._all(), workload.name, workload)
    is_right(tmp_path, workload.name, rate, partitions, "20s" if "machine_outlier" in parts else "4s")


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("job", USER_JOBS)
@on_a_broker
def test_user_jobs_are_right_with_any_number_of_partitions(tmp_path: Path, job: str, partitions: int) -> None:
    """A window of its own, rows, and a stateful processor in the order of its keys."""
    is_right(tmp_path, str(EXAMPLES / f"{job}.py"), USER_JOBS[job], partitions)


@pytest.mark.parametrize("partitions", [1, 4])
@on_a_broker
def test_updates_of_a_user_job_are_of_what_batches_had_read(tmp_path: Path, partitions: int) -> None:
    """Of each partition."""
    path = tmp_path / "counts.py"
    path.write_text(COUNTS)
    is_right(tmp_path, str(path), "5k", partitions)


def is_right(root: Path, workload: str, rate: str, partitions: int, warmup: str = "4s") -> None:
    load: dict[str, Any] = {"generators": min(2, partitions), "partitions": partitions, "warmup": warmup}
    with started(root, workload, rate, **load) as (resolved, testbed, folder):
        assert (resolved.generators, resolved.partitions) == (min(2, partitions), partitions)
        judged = trial(resolved, testbed, folder)
    check(judged, partitions)


def check(judged: TrialResult, partitions: int) -> None:
    found, lag = judged.result.verification, judged.result.lag
    assert found is not None
    assert found.judged
    assert found.fault_count == 0, (found.sentence, found.examples, judged.result.warnings)
    assert found.matched == found.expected > 0
    assert not found.late_rows
    assert judged.result.latency.processing_time_us is None
    assert lag is not None
    assert len(lag.partitions) % partitions == 0
    assert lag.sum.end == sum(one.end for one in lag.partitions)
    assert judged.record.drained


@on_a_broker
def test_rows_behind_the_watermark_are_counted(tmp_path: Path) -> None:
    """Without a delay, rows behind the watermark are dropped: their generator stands still while batches go on.
    A warning has the delay that keeps them.
    """
    load: dict[str, Any] = {"generators": 2, "partitions": 4, "options": {"watermark_delay": "0 seconds"}}
    parameters = {"moving_average_window": "20", "devices": "40"}
    with started(tmp_path, "spike_detection", "5k", **load, **parameters) as (resolved, testbed, folder):
        stopped = InMidTrial(lambda: stand_still(testbed))
        judged = trial(resolved, testbed, folder, on_progress=stopped)
    assert stopped.done
    found = judged.result.verification
    assert found is not None
    assert found.late_rows
    assert any(f"dropped {found.late_rows:,} rows as late" in warning for warning in judged.result.warnings)
    assert any("--option watermark_delay=" in warning for warning in judged.result.warnings)


def stand_still(testbed: TestBed) -> None:
    """Stops a generator until the engine has ended some batches without it."""
    generator, before = testbed.pids("generator 1"), batches_of(testbed)
    send_signal(signal.SIGSTOP, generator)

    def go_on() -> None:
        wait_until(lambda: batches_of(testbed) >= before + BATCHES, STALL_S, 0.1)
        send_signal(signal.SIGCONT, generator)

    threading.Thread(target=go_on).start()


def batches_of(testbed: TestBed) -> int:
    """The batches that Spark has committed to its checkpoint."""
    engine = testbed.engine
    assert isinstance(engine, SparkEngine)
    assert engine._scratch is not None
    return len(list((engine._scratch.path / "checkpoint").glob("*/commits/[0-9]*")))


@on_a_broker
def test_messages_are_where_their_key_belongs(tmp_path: Path) -> None:
    """By the key in the message, which is that of its row. A row without a key is a message without one."""
    with started(
        tmp_path, "yahoo_streaming", "2k", partitions=3, transport_options={"encoding": "json"}, malformed="0.2",
        window="1s", campaigns="5",
    ) as (resolved, testbed, folder):  # fmt: skip
        judged = trial(resolved, testbed, folder)
        broker = testbed._broker
        assert broker is not None
        log = broker._topics.log  # type: ignore[attr-defined]
        topic = next(name for name in broker._names if name.endswith("events"))  # type: ignore[attr-defined]
        for partition in range(3):
            messages = log(topic, partition).at(range(200))
            keys = [None if message.key() is None else message.key().decode() for message in messages]
            assert set(partitions_of(pa.array([key for key in keys if key is not None]), 3).tolist()) == {partition}
            ads = [json.loads(message.value()).get("ad_id") for message in messages]
            assert [None if ad is None else str(ad) for ad in ads] == keys
            assert None in keys
    check_answers(judged, 10)
