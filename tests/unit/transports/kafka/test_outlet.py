"""Events to a real broker: each once, in order, in its partition; what is lost is an error."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.errors import DriverError
from streamgauge.loadgen.fields import PAYLOAD_BYTES_MAX
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka import outlet as module
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.encodings.compact import Compact
from streamgauge.transports.kafka.outlet import Producer
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.topics import CREATE_TIME, Topics

NUMBERS = Compact((("n", "bigint"),))
NOW_MS = time.time_ns() // 1_000_000
ENDS = (0, 1, 300, 302, 1000, *range(1100, 10_001, 100))
"""Of batches, each up to the next one."""


def batch(first: int, last: int) -> pa.BinaryArray:
    return NUMBERS.encode(pa.RecordBatch.from_arrays([pa.array(range(first, last), pa.int64())], names=["n"]))


def is_flushed(producer: Producer) -> bool:
    return wait_until(lambda: producer.pending == 0, 30.0)


def stored(location: str, topic: str, partition: int, count: int) -> list[int]:
    """The numbers of a partition, in the order of their offsets, which are whole."""
    from confluent_kafka import Consumer, TopicPartition

    client: Any = Consumer({"bootstrap.servers": location, "group.id": "test", "enable.auto.commit": False})
    client.assign([TopicPartition(topic, partition, 0)])
    messages: list[Any] = []
    while len(messages) < count:
        messages += client.consume(count, timeout=10.0)
    client.close()
    assert [message.offset() for message in messages] == list(range(len(messages)))
    return [int(message.value()) for message in messages]


@pytest.mark.broker
def test_offsets_are_the_plans_numbers(broker: Broker) -> None:
    """Of both partitions, in many small batches of several sizes, and of two streams at once."""
    topics = Topics(broker.location)
    topics.make(["numbers", "others"], 2)
    streams = {"a": ("numbers", NUMBERS.messages), "b": ("others", NUMBERS.messages)}
    for partition in (0, 1):
        producer = Producer(KafkaSettings(broker.location), partition, streams)
        sent = sum(producer.send({"a": batch(first, last), "b": batch(0, 0)}) for first, last in pairwise(ENDS))
        producer.send({"b": batch(7, 8)})
        assert is_flushed(producer)
        assert sent == 10_000
        assert producer.pending == 0
        assert stored(broker.location, "numbers", partition, 10_000) == list(range(10_000))
        assert stored(broker.location, "others", partition, 1) == [7]
    assert topics.ends("numbers", 2) == [10_000, 10_000]


@pytest.mark.broker
def test_what_the_broker_refuses_is_an_error(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is not there: by the time that the messages should have been stored."""
    monkeypatch.setitem(module.SETTINGS, "message.timeout.ms", 2000)
    producer = Producer(KafkaSettings(broker.location), 0, {"a": ("nowhere", NUMBERS.messages)})
    producer.send({"a": batch(0, 3)})
    assert is_flushed(producer)
    with pytest.raises(DriverError, match="the broker lost 3 messages, the first of nowhere"):
        producer.check()


@pytest.mark.broker
def test_the_largest_payload_is_kept(broker: Broker) -> None:
    """Although it is far above Kafka's own limit of 1 MB."""
    topics = Topics(broker.location)
    topics.make(["large"], 1)
    producer = Producer(KafkaSettings(broker.location), 0, {"a": ("large", lambda encoded: encoded.to_pylist())})
    producer.send({"a": pa.array([bytes(PAYLOAD_BYTES_MAX)])})
    assert is_flushed(producer)
    assert len(topics.log("large", 0).at([0])[0].value()) == PAYLOAD_BYTES_MAX


@pytest.mark.usefixtures("jars")
@pytest.mark.broker
def test_a_broker_that_is_gone_stores_nothing(tmp_path: Path) -> None:
    """Its messages are pending, and nothing hangs."""
    with Broker(tmp_path / "data", tmp_path / "broker.log") as broker:
        Topics(broker.location).make(["numbers"], 1)
        producer = Producer(KafkaSettings(broker.location), 0, {"a": ("numbers", NUMBERS.messages)})
        broker.kill()
        producer.send({"a": batch(0, 5)})
        assert producer.pending == 5
        broker.restart()
        assert is_flushed(producer)
        assert stored(broker.location, "numbers", 0, 5) == [0, 1, 2, 3, 4]


def test_a_broker_that_takes_too_little_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the client's queue is full, so that nothing is sent by halves; no broker is there at all."""
    monkeypatch.setattr(module, "WAITING_MAX", 10)
    producer = Producer(KafkaSettings("127.0.0.1:9"), 0, {"a": ("numbers", NUMBERS.messages)})
    producer.send({"a": batch(0, 8)})
    with pytest.raises(DriverError, match="is slower than the plan"):
        producer.send({"a": batch(8, 11)})


@pytest.mark.broker
def test_records_have_the_given_times(broker: Broker) -> None:
    """Those of one stream, with its keys; records of another one have the time of sending."""
    from confluent_kafka import TIMESTAMP_CREATE_TIME

    topics = Topics(broker.location)
    topics.make(["timed", "untimed"], 1, **CREATE_TIME)
    streams = {"a": ("timed", NUMBERS.messages), "b": ("untimed", NUMBERS.messages)}
    producer = Producer(KafkaSettings(broker.location), 0, streams)
    times_ms, now_ms = [NOW_MS - 2, NOW_MS - 1, NOW_MS - 1], time.time_ns() // 1_000_000
    keys = pa.array(["x", None, "y"])
    assert producer.send({"a": batch(0, 3), "b": batch(0, 1)}, {"a": keys}, {"a": pa.array(times_ms)}) == 4
    assert is_flushed(producer)
    timed, (untimed,) = topics.log("timed", 0).at([0, 1, 2]), topics.log("untimed", 0).at([0])
    assert [one.timestamp() for one in timed] == [(TIMESTAMP_CREATE_TIME, time_ms) for time_ms in times_ms]
    assert [(one.key(), int(one.value())) for one in timed] == [(b"x", 0), (None, 1), (b"y", 2)]
    assert untimed.timestamp()[1] >= now_ms


def test_a_message_that_is_too_large_is_reported_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client takes those of the largest payload."""
    producer = Producer(KafkaSettings("127.0.0.1:9"), 0, {"a": ("numbers", lambda encoded: encoded.to_pylist())})
    assert producer.send({"a": pa.array([bytes(2**21)])}) == 1
    monkeypatch.setitem(module.SETTINGS, "message.max.bytes", 1_000_000)
    small = Producer(KafkaSettings("127.0.0.1:9"), 0, {"a": ("numbers", lambda encoded: encoded.to_pylist())})
    with pytest.raises(DriverError, match=r"0 of 1 messages for numbers; the largest has 2,097,152 bytes, of "):
        small.send({"a": pa.array([bytes(2**21)])})


def test_a_full_queue_of_the_client_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of messages that it takes one by one."""
    monkeypatch.setitem(module.SETTINGS, "queue.buffering.max.messages", 5)
    producer = Producer(KafkaSettings("127.0.0.1:9"), 0, {"a": ("numbers", NUMBERS.messages)})
    with pytest.raises(DriverError, match="the client refused a message for numbers"):
        producer.send({"a": batch(0, 8)}, times_ms={"a": pa.array([NOW_MS] * 8)})
