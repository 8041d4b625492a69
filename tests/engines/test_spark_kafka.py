"""The whole path over a real broker and a real Spark: every answer verified, across a restart too; a dead broker."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.over_a_broker import WINDOW, check_answers, require_jars, started, trial
from tests.engines.restarting import Restart
from tests.transports.kafka.secured import PASSWORD, wanting_a_log_in

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.errors import InputError
from streamgauge.events import US
from streamgauge.experiment import build
from streamgauge.progress import TrialSnapshot
from streamgauge.run.check import check
from streamgauge.run.rig import Rig
from streamgauge.system.children import wait_until
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.carrier import KafkaCarrier
from streamgauge.transports.kafka.names import topic_of
from streamgauge.transports.kafka.topics import Topics

GONE_S = 20.0


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars("spark")


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_rows_are_verified_trial_after_trial(tmp_path: Path) -> None:
    """On one Spark and one broker; no latency counts from a hand-out, which nobody saw."""
    with started(tmp_path, "identity", "10k") as (ready, rig, folder):
        for number in (1, 2):
            judged = trial(ready, rig, folder, number)
            check_answers(judged, 60_000)
            latency = judged.result.latency
            assert latency.event_time_us is not None
            assert latency.event_time_us.min > 0  # type: ignore[operator]
            assert latency.processing_time_us is None
    assert judged.result.settings["source"].startswith("Spark's own for Kafka: ")


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    ("workload", "rate", "parameters", "rows_least"),
    [
        pytest.param("windowed_aggregation", "20k", WINDOW, 1500, id="windows", marks=pytest.mark.long),
        pytest.param("log_processing", "3k", {"lines_per_second": "20"}, 100, id="updates of several sinks"),
    ],
)
def test_answers_are_right_across_a_restart(
    tmp_path: Path, restart: Restart, workload: str, rate: str, parameters: dict[str, str], rows_least: int
) -> None:
    """Spark is killed in mid-trial, and begins the batch that it was at anew: what it had sent of that counts once."""
    with started(tmp_path, workload, rate, **parameters) as (ready, rig, folder):
        judged = trial(ready, rig, folder, on_progress=restart.once(rig))
    restart.check(judged)
    check_answers(judged, rows_least)


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    ("workload", "rows_least"),
    [("windowed_aggregation", 1500), pytest.param("identity", 60_000, marks=pytest.mark.long)],
)
def test_two_partitions_are_verified(tmp_path: Path, workload: str, rows_least: int) -> None:
    """They are read at no common event time, and the watermark waits for the one that lags."""
    parameters = WINDOW if workload == "windowed_aggregation" else {}
    with started(tmp_path, workload, "20k", generators=2, **parameters) as (ready, rig, folder):
        judged = trial(ready, rig, folder)
    check_answers(judged, rows_least)
    assert judged.result.settings["watermark_delay"] == "1 second (auto)"
    assert judged.result.driver is not None
    assert judged.result.driver.read_skew_us_max < 1_000_000


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_events_may_be_encoded_otherwise(tmp_path: Path, encoding: str) -> None:
    """Texts, and updates of counts; the result says how they were sent."""
    require_jars("spark", encoding=encoding)
    with started(tmp_path, "word_count", "2k", transport_options={"encoding": encoding}) as (ready, rig, folder):
        judged = trial(ready, rig, folder)
    check_answers(judged, 1000)
    assert judged.result.settings["producer"].startswith(f"encoding={encoding} acks=all ")


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_brokers_of_ones_own_are_logged_in_to(tmp_path: Path) -> None:
    """One that wants a name and a password, of both clients; no file of the run has the password, and no topic is left
    there.
    """
    with wanting_a_log_in(tmp_path) as (brokers, client, topics):
        options = {"brokers": brokers, "client": str(client)}
        with started(tmp_path / "runs", "identity", "5k", transport_options=options) as (ready, rig, folder):
            judged = trial(ready, rig, folder)
            assert topics.there()
        check_answers(judged, 30_000)
        assert judged.result.driver is not None
        assert judged.result.driver.append_latency_us is not None
        assert wait_until(lambda: topics.there() == [], GONE_S)  # a broker removes them when it comes to it
    texts = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert texts
    assert not any(PASSWORD.encode() in text for text in texts)


class Stall:
    """Stops the broker for a while in the middle of a trial, as a long pause of its JVM would."""

    STALL_S = 3.0

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.stopped_us = 0

    def __call__(self, snapshot: TrialSnapshot) -> None:
        if self.stopped_us or snapshot.phase != "measured":
            return
        carrier = self._rig._carrier
        assert isinstance(carrier, KafkaCarrier)
        _, jvm = carrier.pids()
        self.stopped_us = self._rig.clock.now_us()
        os.kill(jvm, signal.SIGSTOP)
        threading.Timer(self.STALL_S, os.kill, (jvm, signal.SIGCONT)).start()


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_a_broker_that_stands_still_is_seen_in_latency(tmp_path: Path) -> None:
    """The plan goes on meanwhile, and latency counts from it: there is no coordinated omission. No answer is lost."""
    with started(tmp_path, "identity", "5k") as (ready, rig, folder):
        stall = Stall(rig)
        judged = trial(ready, rig, folder, on_progress=stall)
    assert stall.stopped_us
    check_answers(judged, 30_000)
    latency = judged.result.latency.event_time_us
    assert latency is not None
    assert latency.max is not None
    assert latency.max > 0.9 * Stall.STALL_S * 1e6


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_lag_counts_what_the_broker_has_and_nobody_committed(tmp_path: Path) -> None:
    """At every look of a trial, against the broker's own end offsets; in the end both are all that was planned."""
    seen: list[tuple[int, int]] = []
    with started(tmp_path, "identity", "5k") as (ready, rig, folder):
        carrier = rig._carrier
        assert isinstance(carrier, KafkaCarrier)
        topics, topic = Topics(carrier.at.options["brokers"]), topic_of(carrier.at.token, "purchases")

        def look(_: TrialSnapshot) -> None:
            (end,) = topics.ends(topic, 1)
            seen.append((rig.clock.now_us(), end))

        judged = trial(ready, rig, folder, on_progress=look)
    series = RunFolder.open(str(judged.result.folder)).read_series().to_pylist()
    committed = 0
    for second in series:
        committed += second["committed"]
        ends = [end for when_us, end in seen if second["time_us"] <= when_us < second["time_us"] + US]
        assert all(second["lag_events"] >= end - committed for end in ends)
    driver = judged.result.driver
    assert driver is not None
    assert len(seen) > 10
    assert seen[-1][1] == committed == driver.events_planned
    assert series[-1]["lag_events"] == 0


def crash(broker: Broker) -> None:
    broker.kill()


def leave_no_room(broker: Broker) -> None:
    """No file of its may grow any more: to the broker the same error as of a disk that is full."""
    resource.prlimit(broker.jvm, resource.RLIMIT_FSIZE, (1, 1))


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("fault", [crash, leave_no_room])
def test_a_broker_that_dies_ends_the_trial(tmp_path: Path, fault: Callable[[Broker], None]) -> None:
    """As what it is, the driver's failure, and at once; nothing hangs, and no process is left."""
    with started(tmp_path, "identity", "10k") as (ready, rig, folder):
        killed: list[float] = []

        def once(shown: TrialSnapshot) -> None:
            if shown.elapsed_s > 3 and not killed:
                killed.append(shown.elapsed_s)
                fault(rig._carrier._broker)  # type: ignore[union-attr, attr-defined]

        judged = trial(ready, rig, folder, on_progress=once)
        assert killed
        assert judged.result.verdict.value == "invalid"
        assert "the broker ended" in judged.done.driver_failed


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_a_topic_that_is_deleted_ends_the_trial(tmp_path: Path) -> None:
    """In the middle of it: whoever did that, it was not the system under test."""
    with started(tmp_path, "identity", "5k") as (ready, rig, folder):
        carrier = rig._carrier
        assert isinstance(carrier, KafkaCarrier)
        deleted: list[str] = []

        def delete(snapshot: TrialSnapshot) -> None:
            if snapshot.phase == "measured" and not deleted:
                deleted.append(topic_of(carrier.at.token, "purchases"))
                Topics(carrier.at.options["brokers"]).remove(deleted)

        judged = trial(ready, rig, folder, on_progress=delete)
    assert deleted
    assert judged.result.verdict.value == "invalid"
    assert deleted[0] in judged.done.driver_failed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"workload": "count", "load": {"rate": "1k", "generators": 2}},
            r"load\.generators: must be 1 for updates and firsts over a broker",
        ),
        ({"options": {"watermark_delay": "soon"}}, "option watermark_delay: must be auto, or a number of"),
        ({"port": 9000}, "port: is not for the transport kafka"),
        ({"workload": "spike_detection"}, r"transport: carries no processes with keys yet \(moving_average\)"),
        (
            {"workload": "windowed_join", "options": {"lowering.join": "packed"}},
            r"lowering\.join: must not be packed with the transport kafka",
        ),
        ({"engine": "known"}, "transport: is none that known can read"),
        ({"transport_options": {"encoding": "xml"}}, "transport option encoding: must be one of compact, json, avro"),
        (
            {"transport": "flight", "transport_options": {"acks": "1"}},
            r"(?s)acks: is not a transport option of the transport flight; got '1'.*leave it out, or --transport kafka",
        ),
    ],
)
def test_what_kafka_cannot_carry_yet_is_refused(changes: dict[str, Any], said: str) -> None:
    """Before anything is started, with the way out."""
    with pytest.raises(InputError, match=said):
        check(build({"workload": "identity", "transport": "kafka", **changes}))
