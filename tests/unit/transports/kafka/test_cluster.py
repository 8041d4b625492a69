"""What stands between both ends, on brokers that were named: topics come and go, and nothing else is touched."""

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.errors import DriverError, InputError
from streamgauge.core.machine_check import refuse_missing
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka import cluster as carrier_module
from streamgauge.transports.kafka import topics as module
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.cluster import KafkaCluster
from streamgauge.transports.kafka.encodings.compact import Compact
from streamgauge.transports.kafka.outlet import Producer
from streamgauge.transports.kafka.result_messages import MARK, Mark
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.topics import Topics
from streamgauge.transports.registry import transport
from streamgauge.transports.spi import BrokerRequest
from streamgauge.transports.topic_names import InputTopic, OutputTopic, ProgramTopics, results_of, topic_of
from tests.unit.transports.kafka.helpers_secured_broker import wanting_a_log_in

GONE_S = 20.0


def broker_request(tmp_path: Path, run: str, **options: str) -> BrokerRequest:
    return BrokerRequest(
        run, ("ads", "purchases"), 2, tmp_path / "broker", tmp_path / "log", "127.0.0.1", None, options
    )


@pytest.mark.broker
@pytest.mark.parametrize("setting", ["remove", "keep"])
def test_topics_are_left_only_where_the_option_says_so(broker: Broker, tmp_path: Path, setting: str) -> None:
    """The broker itself goes on."""
    before = set(Topics(broker.location).names())
    carrier = KafkaCluster(broker_request(tmp_path, setting, brokers=broker.location, topics=setting))
    assert carrier.at.options["brokers"] == broker.location
    assert (carrier.alive, carrier.pids()) == (True, [])
    assert Topics(broker.location).ends(f"streamgauge-{setting}-ads", 2) == [0, 0]
    carrier.close()
    assert broker.alive
    every = {topic_of(setting, "ads"), topic_of(setting, "purchases"), results_of(setting)}
    left = every if setting == "keep" else set()
    assert wait_until(lambda: set(Topics(broker.location).names()) - before == left, GONE_S)
    assert not (tmp_path / "broker").exists()


@pytest.mark.broker
def test_a_topic_that_is_made_again_is_another(broker: Broker, tmp_path: Path) -> None:
    """As many brokers do by themselves: what was in it is gone all the same."""
    carrier = KafkaCluster(broker_request(tmp_path, "again", brokers=broker.location))
    assert carrier.missing() == ""
    topics, name = Topics(broker.location), topic_of("again", "ads")
    topics.remove([name])
    assert wait_until(lambda: name not in topics.names(), GONE_S)
    topics.make([name], 2)
    assert carrier.missing() == f"{name}: deleted by another program during the trial"
    carrier.close()


@pytest.mark.broker
def test_what_was_sent_is_counted_by_the_brokers_own_ends(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every stream and partition: one that has less is an error with both numbers, and one that has more."""
    monkeypatch.setattr(carrier_module, "RETENTION_CHECK_S", 1.0)
    carrier = KafkaCluster(broker_request(tmp_path, "counted", brokers=broker.location))
    layout = Compact((("n", "bigint"),))
    producer = Producer(KafkaSettings(broker.location), 1, {"ads": (topic_of("counted", "ads"), layout.messages)})
    producer.send({"ads": layout.encode(pa.RecordBatch.from_pydict({"n": pa.array([1, 2, 3], pa.int64())}))})
    assert wait_until(lambda: producer.pending == 0, GONE_S)
    nothing = {"ads": 0, "purchases": 0}
    assert carrier.lost([nothing, {"ads": 3, "purchases": 0}]) == ""
    assert "partition 1 ends at 3, and 4 events were sent there" in carrier.lost([nothing, {"ads": 4, "purchases": 0}])
    fewer = [nothing, {"ads": 2, "purchases": 0}]
    assert carrier.lost(fewer) == ""
    assert "and 2 events were sent there, so another program writes" in carrier.lost(fewer, is_all=True)
    carrier.close()


@pytest.mark.broker
def test_topics_that_are_refused_leave_nothing_to_remove(broker: Broker, tmp_path: Path) -> None:
    """The refusal is the error, and not that there was nothing to remove."""
    with pytest.raises(DriverError, match="could not be made"):
        KafkaCluster(broker_request(tmp_path, "not a name of topics", brokers=broker.location))


def test_brokers_that_do_not_answer_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its time, with what the client heard."""
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 2.0)
    with pytest.raises(DriverError, match=r"(?s)127\.0\.0\.1:9.*refused"):
        KafkaCluster(broker_request(tmp_path, "nowhere", brokers="127.0.0.1:9"))


def test_named_brokers_that_do_not_answer_are_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 1.0)
    with pytest.raises(InputError, match=r"(?s)option brokers: must be brokers that answer.*refused.*try: start them"):
        refuse_missing(transport("kafka").machine_checks({"brokers": "127.0.0.1:9"}))


@pytest.mark.usefixtures("jars")
@pytest.mark.broker
def test_a_log_in_that_is_refused_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the broker's own words, and without the password."""
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 3.0)
    with wanting_a_log_in(tmp_path, "another-password") as (brokers, client, _):
        with pytest.raises(DriverError, match=r"(?i)authentication") as refused:
            KafkaCluster(broker_request(tmp_path, "refused", brokers=brokers, client=str(client)))
        assert "another-password" not in str(refused.value)


@pytest.mark.broker
def test_results_have_the_time_at_which_the_broker_had_them(broker: Broker, tmp_path: Path) -> None:
    """Those that are chosen, of all that came since then; marks are none."""
    from confluent_kafka import Producer

    carrier = KafkaCluster(broker_request(tmp_path, "results", brokers=broker.location))
    types = {"event_id": "bigint", "event_time": "bigint"}
    messages = [(MARK, Mark("q", 0, True, {"out": types}, endless=True).to_bytes())]
    messages += [(b"q/0", f'{{"event_id":{number},"event_time":{10 * number}}}'.encode()) for number in range(5)]
    client: Any = Producer({"bootstrap.servers": broker.location})
    before_us = time.time_ns() // 1000
    for key, value in messages:
        client.produce(results_of("results"), value, key)
    assert client.flush(GONE_S) == 0
    after_us = time.time_ns() // 1000
    rows = carrier.results(before_us, lambda count: [0, 2, count - 1])["out"]
    assert rows["event_id"].to_pylist() == [1, 4]
    assert rows["event_time"].to_pylist() == [10, 40]
    assert all(before_us <= when_us <= after_us + 1000 for when_us in rows["emission_time"].to_pylist())
    assert carrier.results(after_us + 3_600_000_000, lambda _: []) == {}
    carrier.close()


@pytest.mark.broker
def test_inputs_of_a_program_keep_planned_times(broker: Broker, tmp_path: Path) -> None:
    """Those with planned times, whose append times are then not known; results and other inputs have append times."""
    inputs = {"ads": InputTopic(), "purchases": InputTopic(record_timestamp="sent")}
    program = ProgramTopics(inputs, {"results": OutputTopic({"n": "bigint"})})
    request = replace(broker_request(tmp_path, "timed", brokers=broker.location), program=program)
    carrier, topics = KafkaCluster(request), Topics(broker.location)
    topics.require_planned_times([topic_of("timed", "ads")])
    for name in (topic_of("timed", "purchases"), *program.output_topics("timed").values()):
        with pytest.raises(DriverError, match="overwrite"):
            topics.require_planned_times([name])
    assert carrier.appended_us("ads", 0, [0]) == []
    with pytest.raises(DriverError, match="offset 0"):
        carrier.appended_us("purchases", 0, [0])
    carrier.close()


@pytest.mark.broker
def test_topics_of_a_program_that_runs_already_must_keep_planned_times(broker: Broker, tmp_path: Path) -> None:
    """Or its file must say that records have the time of sending."""
    topics = Topics(broker.location)
    topics.make(["theirs"], 2)
    topics.make(["their-results"], 1)
    try:
        for setting, times in (("planned", pytest.raises(DriverError, match="LogAppendTime")), ("sent", nullcontext())):
            inputs = {"ads": InputTopic("theirs", record_timestamp=setting)}
            outputs = {"results": OutputTopic({"n": "bigint"}, topic="their-results")}
            program = ProgramTopics(inputs, outputs, attached=True)
            request = replace(broker_request(tmp_path, "their", brokers=broker.location), program=program)
            with times:
                KafkaCluster(request).close()
    finally:
        topics.remove(["theirs", "their-results"])
