"""The whole path over a real broker and a real Spark: every answer verified, across a restart too; a dead broker."""

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.conformance.trials import Restart
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.harness.start_processes import TestBed
from streamgauge.preflight.settings_checks import check
from streamgauge.system.child_processes import send_signal, wait_until
from streamgauge.transports.kafka.cluster import KafkaCluster
from streamgauge.transports.kafka.topics import Topics
from streamgauge.transports.topic_names import topic_of
from streamgauge.trial.trial_result import TrialResult
from streamgauge.workloads import registry
from tests.helpers_application_variants import together
from tests.helpers_broker_trials import (
    WINDOW,
    InMidTrial,
    broker_of,
    check_answers,
    on_a_broker,
    require_jars,
    started,
    trial,
)
from tests.unit.transports.kafka.helpers_secured_broker import PASSWORD, wanting_a_log_in

GONE_S = 20.0


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars("spark")


class Stall:
    """Stops the broker for a while in the middle of a trial, as a long pause of its JVM would."""

    STALL_S = 3.0

    def __init__(self, testbed: TestBed) -> None:
        self._testbed = testbed
        self.stopped_us = 0

    def __call__(self, snapshot: TrialSnapshot) -> None:
        if self.stopped_us or snapshot.phase != "measured":
            return
        broker = self._testbed.pids("broker")
        self.stopped_us = self._testbed.clock.now_us()
        send_signal(signal.SIGSTOP, broker)
        threading.Timer(self.STALL_S, send_signal, (signal.SIGCONT, broker)).start()


class Lag:
    """What the topics hold at each look of a trial, by the broker's own end offsets."""

    def __init__(self, testbed: TestBed, partitions: int) -> None:
        carrier = testbed._broker
        assert isinstance(carrier, KafkaCluster)
        self._topics, self._topic = Topics(carrier.at.options["brokers"]), topic_of(carrier.at.token, "purchases")
        self._now_us, self._partitions = testbed.clock.now_us, partitions
        self.seen: list[tuple[int, int]] = []

    def __call__(self, _: TrialSnapshot) -> None:
        end = sum(self._topics.ends(self._topic, self._partitions))
        self.seen.append((self._now_us(), end))

    def check(self, judged: TrialResult) -> None:
        """Lag is at least what the broker had and nobody committed, and nothing in the end."""
        series = RunFolder.open(str(judged.result.folder)).read_series().to_pylist()
        committed = 0
        for second in series:
            committed += second["committed"]
            ends = [end for when_us, end in self.seen if second["time_us"] <= when_us < second["time_us"] + US]
            assert all(second["lag_events"] >= end - committed for end in ends)
        assert judged.result.driver is not None
        assert self.seen[-1][1] == committed == judged.result.driver.events_planned
        assert series[-1]["lag_events"] == 0


@on_a_broker
def test_one_spark_and_one_broker_carry_trial_after_trial(tmp_path: Path) -> None:
    """Two partitions in JSON, verified; a broker that stands still is seen in latency, since the plan goes on; one that
    dies ends the trial, as the driver's failure. No latency counts from a delivery, which nobody saw.
    """
    encoded = {"encoding": "json"}
    with started(tmp_path, "identity", "5k", generators=2, transport_options=encoded) as (resolved, testbed, folder):
        lag = Lag(testbed, partitions=2)
        first = trial(resolved, testbed, folder, 1, on_progress=lag)
        stall = Stall(testbed)
        second = trial(resolved, testbed, folder, 2, on_progress=stall)
        kill = InMidTrial(broker_of(testbed).kill)
        third = trial(resolved, testbed, folder, 3, on_progress=kill)
    lag.check(first)
    assert stall.stopped_us
    for judged, least_us in ((first, 0), (second, 0.9 * Stall.STALL_S * US)):
        check_answers(judged, 30_000)
        latency = judged.result.latency
        assert latency.event_time_us is not None
        assert latency.event_time_us.min > 0  # type: ignore[operator]
        assert latency.event_time_us.max > least_us  # type: ignore[operator]
        assert latency.processing_time_us is None
    assert first.result.driver is not None
    late = first.result.driver.slip_us  # partitions come apart where the driver had no CPU, by no more than that
    assert late is not None
    assert first.result.driver.read_skew_us_max < US + late.max
    assert any("is what spark reports of its batches" in note for note in first.result.notes)
    assert first.result.settings["watermark_delay"] == "1 second (auto)"
    assert first.result.settings["source"].startswith("Spark's own for Kafka: ")
    assert first.result.settings["producer"].startswith("encoding=json acks=all ")
    assert first.result.settings["json_parser"] == "arrow"
    assert kill.done
    assert third.result.verdict.value == "invalid"
    assert "the broker ended" in third.record.driver_failed


WINDOWS = {"range": "2s", "slide": "1s", "packs": "200"}
IDIOMATIC: dict[str, Any] = {"windowed_join": WINDOWS, "windowed_aggregation": WINDOWS, "word_count": {}}


@pytest.mark.long
@on_a_broker
def test_what_a_user_would_write_is_right_over_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile `idiomatic`: whole events in JSON, Kafka's own client settings, plain windows and join, updates."""
    workload = together(IDIOMATIC)
    monkeypatch.setitem(registry._all(), workload.name, workload)
    with started(tmp_path, workload.name, "4k", tuning="idiomatic") as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder)
    check_answers(judged, 1_000)
    settings = judged.result.settings
    assert settings["producer"].startswith("encoding=json ")
    assert (settings["columns"], settings["worker_start"]) == ("all", "zip")
    assert settings["sink"] == "Spark's own for Kafka: Kafka's own defaults"


OF_KEYS_AND_UPDATES = {
    "log_processing": {"lines_per_second": "20"},
    "spike_detection": {"moving_average_window": "20", "devices": "40"},
}


@pytest.mark.long
@on_a_broker
def test_answers_are_right_across_a_restart_on_brokers_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark is killed in mid-trial, and begins the batch that it was at anew: what it had sent of that counts once.

    Of two partitions, updates are of what was read of each, and a keyed process goes on with the rows that it held.

    The broker wants a name and a password of every client: no file of the run has the password, and no topic is left.
    """
    with wanting_a_log_in(tmp_path) as (brokers, client, topics):
        options = {"brokers": brokers, "client": str(client)}
        workload = together(OF_KEYS_AND_UPDATES)
        monkeypatch.setitem(registry._all(), workload.name, workload)
        requested: dict[str, Any] = {"partitions": 2, "transport_options": options}
        with started(tmp_path / "runs", workload.name, "4k", **requested) as started_:
            resolved, testbed, folder = started_
            restart = Restart(testbed)
            judged = trial(resolved, testbed, folder, observe=restart)
            assert topics.names()
        restart.check(judged)
        check_answers(judged, 100)
        assert judged.result.driver is not None
        assert judged.result.driver.append_latency_us is not None
        assert wait_until(lambda: topics.names() == [], GONE_S)  # a broker removes them when it comes to it
    texts = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert texts
    assert not any(PASSWORD.encode() in text for text in texts)


@pytest.mark.long
@on_a_broker
def test_windows_of_two_partitions_are_right_across_a_restart(tmp_path: Path) -> None:
    """They are read at no common event time, and the watermark waits for the one that lags."""
    with started(tmp_path, "windowed_aggregation", "20k", generators=2, **WINDOW) as (resolved, testbed, folder):
        restart = Restart(testbed)
        judged = trial(resolved, testbed, folder, observe=restart)
    restart.check(judged)
    check_answers(judged, 1500)


@pytest.mark.long
@on_a_broker
def test_a_topic_that_is_deleted_ends_the_trial(tmp_path: Path) -> None:
    """In the middle of it: whoever did that, it was not the system under test."""
    with started(tmp_path, "identity", "5k") as (resolved, testbed, folder):
        carrier = testbed._broker
        assert isinstance(carrier, KafkaCluster)
        deleted: list[str] = []

        def delete(snapshot: TrialSnapshot) -> None:
            if snapshot.phase == "measured" and not deleted:
                deleted.append(topic_of(carrier.at.token, "purchases"))
                Topics(carrier.at.options["brokers"]).remove(deleted)

        judged = trial(resolved, testbed, folder, on_progress=delete)
    assert deleted
    assert judged.result.verdict.value == "invalid"
    assert deleted[0] in judged.record.driver_failed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"watermark_delay": "soon"}}, "option watermark_delay: must be auto, or a number of"),
        ({"port": 9000}, "port: does not apply to the transport kafka"),
        ({"load": {"generators": 4}, "partitions": 2}, r"load\.generators: must be at most the number of partitions"),
        (
            {"workload": "windowed_join", "options": {"lowering.join": "packed"}},
            r"lowering\.join: cannot be packed with the transport kafka",
        ),
        ({"engine": "known"}, "transport: must be one that known can read"),
        ({"transport_options": {"encoding": "xml"}}, "transport option encoding: must be one of compact, json, avro"),
        (
            {"transport": "memory", "transport_options": {"acks": "1"}},
            r"(?s)acks: is not a transport option of the transport memory; got '1'.*use --transport kafka",
        ),
    ],
)
def test_what_kafka_cannot_carry_yet_is_refused(changes: dict[str, Any], message: str) -> None:
    """Before anything is started, with the way out."""
    with pytest.raises(InputError, match=message):
        check(build({"workload": "identity", "transport": "kafka", **changes}))
