"""What a broker has stored: the same messages, whether all between them are read too or each is asked for alone."""

import time
from typing import Any

import pytest

from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka import topics as module
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.topics import Topics

COUNT = 30_000
WANTED = [0, 1, 700, 20_000, 20_001, COUNT - 1]
SOON_S = 20.0


def filled(broker: Broker, topic: str) -> Topics:
    """A topic with numbers in it."""
    from confluent_kafka import Producer

    topics = Topics(broker.location)
    topics.make([topic], 1)
    client: Any = Producer({"bootstrap.servers": broker.location, "queue.buffering.max.messages": 2 * COUNT})
    for number in range(COUNT):
        client.produce(topic, str(number).encode())
    assert client.flush(SOON_S) == 0
    return topics


@pytest.mark.broker
def test_messages_are_those_of_their_offsets(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both ways; one that is not there is an error."""
    log = filled(broker, "numbers-at").log("numbers-at", 0)
    assert log.end() == COUNT
    through = [int(message.value()) for message in log.at(WANTED)]
    monkeypatch.setattr(module, "SCAN_MESSAGES", 0)
    alone = [int(message.value()) for message in log.at(WANTED)]
    assert through == alone == WANTED
    assert log.at([]) == []
    with pytest.raises(DriverError, match=f"offset {COUNT} of partition 0 is missing"):
        log.at([5, COUNT])


@pytest.mark.broker
def test_the_first_message_since_a_time_is_found(broker: Broker) -> None:
    """By the broker's clock; of a time that has not come it is the end."""
    before_us = time.time_ns() // 1000
    log = filled(broker, "numbers-since").log("numbers-since", 0)
    (middle,) = log.at([COUNT // 2])
    first = log.first_since(middle.timestamp()[1] * 1000)
    assert 0 <= first <= COUNT // 2
    assert log.first_since(before_us - 1000) == 0
    assert log.first_since(before_us + 3_600_000_000) == COUNT


@pytest.mark.broker
@pytest.mark.parametrize("since_us", [0, 1_700_000_000_000_000])
def test_a_topic_that_is_not_there_has_no_first_message(broker: Broker, since_us: int) -> None:
    """An error is none of its offsets."""
    with pytest.raises(DriverError, match="nowhere-since"):
        Topics(broker.location).log("nowhere-since", 0).first_since(since_us)
