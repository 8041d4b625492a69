"""Both ends of a transport on a real broker: events out, results in, batch by batch."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka import outlet as producer_module
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.inlet import KafkaInlet
from streamgauge.transports.kafka.outlet import KafkaOutlet
from streamgauge.transports.kafka.result_messages import MARK, Mark, Position, key_of
from streamgauge.transports.kafka.topics import CREATE_TIME, OLDEST, Topics
from streamgauge.transports.spi import EndpointConfig, OutletConfig, Overflow
from streamgauge.transports.topic_names import InputTopic, ProgramTopics, results_of, topic_of

SCHEMA = pa.schema([(name, pa.int64()) for name in ("n", EVENT_TIME, INGEST_TIME, EVENT_ID)])
TYPES = {"n": "int", EVENT_TIME: "bigint"}
SOON_S = 20.0


def at(broker: Broker, run: str) -> EndpointConfig:
    return EndpointConfig("", 0, run, {"brokers": broker.location})


def outlet_to(broker: Broker, run: str, bound_us: int = 10 * US, partitions: int = 1) -> KafkaOutlet:
    """An outlet that sends to the last partition of a topic that has just been made."""
    Topics(broker.location).make([topic_of(run, "ads")], partitions)
    return KafkaOutlet(at(broker, run), OutletConfig({"ads": SCHEMA}, bound_us, 2**20, lambda: 7, partitions - 1))


def events(outlet: KafkaOutlet, *numbers: int) -> dict[str, pa.RecordBatch]:
    """As a generator makes them."""
    batch = pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], names=["n"])
    return {"ads": outlet.prepared("ads", batch)}


def stored(outlet: KafkaOutlet) -> bool:
    """Whether the broker soon has everything that was offered so far."""
    producer: Any = outlet._producer

    def nothing_waits() -> bool:
        producer.check()
        return producer.pending == 0

    return wait_until(nothing_waits, SOON_S)


def test_what_a_broker_does_not_store_is_no_fault_of_the_reader() -> None:
    """No broker listens: a queue that is full of what was never stored is the driver's failure, and not an overflow."""
    nowhere = EndpointConfig("", 0, "gone", {"brokers": "127.0.0.1:9"})
    outlet = KafkaOutlet(nowhere, OutletConfig({"ads": SCHEMA}, 2 * US, 2**20, lambda: 7))
    for second in range(40):
        outlet.offer(second * US // 20, (second + 1) * US // 20, events(outlet, 1, 2), 5)
    with pytest.raises(DriverError, match="the broker has not kept 80 of the 80 events"):
        outlet.offer(2 * US, 2 * US + US // 20, events(outlet, 1, 2), 5)
    assert not outlet.overflowed


@pytest.mark.broker
def test_what_is_lost_after_the_last_event_is_a_failure(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next look, though nothing more is sent: the topic is not there."""
    monkeypatch.setitem(producer_module.SETTINGS, "message.timeout.ms", 1000)
    outlet = KafkaOutlet(at(broker, "lost"), OutletConfig({"ads": SCHEMA}, 10 * US, 2**20, lambda: 7))
    outlet.offer(0, 1000, events(outlet, 1, 2, 3), 5)

    with pytest.raises(DriverError, match="the broker lost 3 messages"):
        wait_until(lambda: outlet.drain_logs() is None, SOON_S)


@pytest.mark.broker
def test_what_was_not_read_waits(broker: Broker) -> None:
    """From the first event on; beyond the bound nothing more is sent, but for chunks without events."""
    outlet = outlet_to(broker, "full", 2 * US)
    begin = 1000 * US
    assert outlet.waiting_us() == 0
    outlet.offer(begin, begin + 2 * US, events(outlet, 1), 5)
    assert outlet.waiting_us() == 2 * US
    assert stored(outlet)
    with pytest.raises(Overflow, match=r"3\.0 s that were not read"):
        outlet.offer(begin + 2 * US, begin + 3 * US, events(outlet, 2), 5)
    assert outlet.overflowed
    assert outlet.positions() == {"ads": 1}
    outlet.mark_delivered(begin + 2 * US)
    outlet.offer(begin + 2 * US, begin + 3 * US, events(outlet, 2), 5)
    assert outlet.waiting_us() == US
    outlet.offer(begin + 60 * US, begin + 61 * US, events(outlet, 3), 5)  # another plan
    assert outlet.waiting_us() == 2 * US  # without the gap between both


@pytest.mark.broker
def test_when_the_broker_had_a_message_is_its_own_word(broker: Broker) -> None:
    """To a millisecond, upwards; an offset that is not there is an error."""
    topics, topic = Topics(broker.location), topic_of("when", "ads")
    outlet = outlet_to(broker, "when", partitions=2)
    before_us = time.time_ns() // 1000
    outlet.offer(0, 1000, events(outlet, *range(50)), 5)
    assert wait_until(lambda: topics.ends(topic, 2) == [0, 50], SOON_S)
    after_us = time.time_ns() // 1000
    times = topics.appended_us(topic, 1, [0, 7, 49])
    assert [before_us, *times, after_us + 1000] == sorted([before_us, *times, after_us + 1000])
    with pytest.raises(DriverError, match="offset 50 of partition 1 is missing"):
        topics.appended_us(topic, 1, [50])


@pytest.mark.broker
def test_a_time_of_the_sender_is_not_the_brokers(broker: Broker) -> None:
    """What a producer claims is overwritten by the broker; a topic that keeps claims is an error."""
    from confluent_kafka import Producer

    topics, claimed_ms = Topics(broker.location), 1_000
    topics.make(["claims-overwritten"], 1)
    topics.make(["claims-kept"], 1, **{"message.timestamp.type": "CreateTime"})
    client: Any = Producer({"bootstrap.servers": broker.location})
    for topic in ("claims-overwritten", "claims-kept"):
        client.produce(topic, b"x", timestamp=claimed_ms)
    client.flush(SOON_S)
    assert topics.appended_us("claims-overwritten", 0, [0])[0] > 1e15
    with pytest.raises(DriverError, match="have no append time"):
        topics.appended_us("claims-kept", 0, [0])


class Receiver:
    """A receiver that remembers."""

    def __init__(self) -> None:
        self.results: dict[tuple[str, int, int, str], list[int]] = {}
        self.committed: list[tuple[str, int, list[list[int]], list[str]]] = []
        self.begun: list[tuple[str, int, list[tuple[str, int, int, int]]]] = []
        self.shown: list[tuple[str, int, int]] = []
        self.stamps_us: list[int] = []
        self.failed = ""
        self.whens_us: list[tuple[str, int | None]] = []
        self.open = threading.Event()
        self.open.set()
        self._lock = threading.Lock()

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def receive(
        self, address: dict[str, Any], schema: pa.Schema, batches: Iterator[pa.RecordBatch], stamped: bool = False
    ) -> None:
        key = (address["query"], address["batch"], address["attempt"], address["sink"])
        results = self.results.setdefault(key, [])
        assert stamped
        self.open.wait(SOON_S)
        for batch in batches:
            assert batch.schema.equals(schema)
            with self._lock:
                results += batch.column("n").to_pylist()
                self.stamps_us += batch.column(EMISSION_TIME).to_pylist()

    def commit(
        self, query: str, batch: int, accepted: list[list[int]], sinks: list[str], when_us: int | None = None
    ) -> bool:
        self.whens_us.append(("commit", when_us))
        self.committed.append((query, batch, accepted, sinks))
        return True

    def read(
        self, query: str, batch: int, positions: list[tuple[str, int, int, int]], when_us: int | None = None
    ) -> None:
        self.whens_us.append(("read", when_us))
        self.begun.append((query, batch, positions))

    def reached(self, query: str, batch: int, until_us: int) -> None:
        self.shown.append((query, batch, until_us))

    def fail(self, reason: str) -> None:
        self.failed = reason


class Sut:
    """Writes results as an engine does."""

    def __init__(self, broker: Broker, run: str) -> None:
        from confluent_kafka import Producer

        self._place = at(broker, run)
        self._topic = results_of(run)
        Topics(broker.location).make([self._topic], 1)
        self._client: Any = Producer({"bootstrap.servers": broker.location})

    @contextmanager
    def read_by(self, receiver: Receiver, **more: Any) -> Iterator[KafkaInlet]:
        """The inlet that brings its results."""
        inlet = KafkaInlet(replace(self._place, **more), receiver)
        yield inlet
        inlet._consumer.failed.set()

    def mark(self, mark: Mark) -> None:
        self._client.produce(self._topic, mark.to_bytes(), MARK)
        self._client.flush(SOON_S)

    def row(self, query: str, batch: int, **columns: Any) -> None:
        self._client.produce(self._topic, json.dumps(columns).encode(), key_of(query, batch))

    def whole(self, query: str, batch: int, *numbers: int) -> None:
        """A batch with its marks."""
        self.mark(Mark(query, batch, True, {"out": TYPES}, (Position("ads", 0, 0, max(numbers, default=0)),)))
        for number in numbers:
            self.row(query, batch, n=number, event_time=number)
        self.mark(Mark(query, batch, False))


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.mark.broker
def test_batches_are_committed_when_they_are_whole(broker: Broker, receiver: Receiver) -> None:
    """Two queries at once; one batch gives nothing; one is never whole."""
    sut = Sut(broker, "whole")
    with sut.read_by(receiver):
        sut.mark(Mark("q1", 0, True, {"out": TYPES}))
        sut.row("q1", 0, n=50, event_time=50)
        sut.whole("q0", 0, 1, 2, 3)
        sut.whole("q0", 1)
        sut.row("q1", 0, n=51, event_time=51)
        sut.mark(Mark("q1", 0, False))
        sut.mark(Mark("q1", 1, True, {"out": TYPES}))
        sut.row("q1", 1, n=99, event_time=99)
        assert wait_until(lambda: len(receiver.committed) == 3, SOON_S)
    assert [(query, batch) for query, batch, *_ in receiver.committed] == [("q0", 0), ("q0", 1), ("q1", 0)]
    by_batch = {(query, batch, sink): numbers for (query, batch, _, sink), numbers in receiver.results.items()}
    assert by_batch[("q0", 0, "out")] == [1, 2, 3]
    assert by_batch[("q1", 0, "out")] == [50, 51]
    assert next(begun for begun in receiver.begun if begun[0] == "q0") == ("q0", 0, (Position("ads", 0, 0, 3),))
    assert receiver.failed == ""


@pytest.mark.broker
def test_results_of_a_transaction_count_when_it_is_committed(broker: Broker, receiver: Receiver) -> None:
    """One that is aborted leaves nothing, though the broker has stored its records."""
    from confluent_kafka import Producer

    sut = Sut(broker, "transaction")
    with sut.read_by(receiver):
        settings = {"bootstrap.servers": broker.location, "transactional.id": "of a test", "log_level": 0}
        sut._client = Producer(settings)
        sut._client.init_transactions(SOON_S)
        for number, end in ((1, sut._client.abort_transaction), (2, sut._client.commit_transaction)):
            sut._client.begin_transaction()
            sut.whole("q0", 0, number)
            end(SOON_S)
        assert wait_until(lambda: bool(receiver.committed), SOON_S)
    assert list(receiver.results.values()) == [[2]]
    assert len(receiver.committed) == 1


@pytest.mark.broker
def test_a_batch_begins_and_ends_when_its_marks_are_here(broker: Broker, receiver: Receiver) -> None:
    """Not when the receiver has come round to them: that would be the system's lateness."""
    sut = Sut(broker, "marks")
    with sut.read_by(receiver) as inlet:
        receiver.open.clear()
        sut.whole("q0", 0, 1, 2)  # no receiver has taken it yet, so its end is waited for
        assert wait_until(lambda: receiver.results != {} and inlet._batches == {}, SOON_S)
        sut.whole("q0", 1)
        assert wait_until(lambda: inlet._consumer._received.qsize() == 2, SOON_S)
        here_us = receiver.now_us()
        receiver.open.set()
        assert wait_until(lambda: len(receiver.committed) == 2, SOON_S)
    assert [what for what, _ in receiver.whens_us] == ["read", "commit", "read", "commit"]
    whens = [when for _, when in receiver.whens_us if when is not None]
    assert len(whens) == 4
    assert whens == sorted(set(whens))
    assert max(receiver.stamps_us) <= whens[-1] <= here_us


@pytest.mark.broker
def test_marks_that_are_taken_at_once_follow_each_other(broker: Broker, receiver: Receiver) -> None:
    """A batch begins after the one before it has ended, whatever the clock says: lags are taken between them."""
    sut = Sut(broker, "at-once")
    for batch in range(50):
        sut.whole("q0", batch)
    with sut.read_by(receiver):  # all that is there comes to it in few pieces
        assert wait_until(lambda: len(receiver.committed) == 50, SOON_S)
    whens = [when for _, when in receiver.whens_us if when is not None]
    assert len(whens) == 100
    assert whens == sorted(set(whens))


@pytest.mark.broker
def test_a_batch_that_is_begun_anew_takes_back_what_came(broker: Broker, receiver: Receiver) -> None:
    """The attempt that counts is the last one; a batch that is repeated whole is committed again."""
    sut = Sut(broker, "anew")
    with sut.read_by(receiver):
        sut.mark(Mark("q0", 5, True, {"out": TYPES}))
        sut.row("q0", 5, n=1, event_time=1)
        sut.whole("q0", 5, 1, 2)
        sut.whole("q0", 5, 1, 2)
        assert wait_until(lambda: len(receiver.committed) == 2, SOON_S)
    counted = [accepted for _, _, accepted, _ in receiver.committed]
    assert counted == [[[0, 2]], [[0, 3]]]
    assert receiver.results[("q0", 5, 2, "out")] == [1, 2]


@pytest.mark.broker
def test_what_has_no_batches_is_cut_into_slices(broker: Broker, receiver: Receiver) -> None:
    """Each slice is committed, and says how far its results show that was read; a later mark says it for certain."""
    sut = Sut(broker, "endless")
    with sut.read_by(receiver):
        sut.mark(Mark("q0", 0, True, {"out": TYPES}, endless=True))
        begun_us = receiver.now_us()
        for number in (5, 4):
            sut.row("q0", 0, n=number, event_time=number)
        assert wait_until(lambda: len(receiver.committed) == 1, SOON_S)
        sut.row("q0", 0, n=3, event_time=3)
        assert wait_until(lambda: len(receiver.committed) == 2, SOON_S)
        sut.mark(Mark("q0", 0, False, {}, (Position("ads", 0, 0, 9),), endless=True))
        assert wait_until(lambda: len(receiver.committed) == 4, SOON_S)
        ended_us = receiver.now_us()
    assert [(query, batch) for query, batch, *_ in receiver.committed] == [("q0", number) for number in range(4)]
    assert receiver.shown == [("q0", 0, 6), ("q0", 1, 6), ("q0", 2, 6), ("q0", 3, 6)]
    assert {batch: numbers for (_, batch, _, _), numbers in receiver.results.items()} == {0: [5, 4], 1: [3]}
    assert receiver.begun[-1] == ("q0", 3, (Position("ads", 0, 0, 9),))
    assert all(begun_us <= stamp <= ended_us for stamp in receiver.stamps_us)
    assert receiver.failed == ""


@pytest.mark.broker
def test_progress_that_a_mark_states_is_in_no_slice_with_results(broker: Broker, receiver: Receiver) -> None:
    """A mark that comes while a slice is open, and says more than results had shown: they are cut off before it, as a
    batch with two begins is one that was begun anew.
    """
    sut = Sut(broker, "marked")
    with sut.read_by(receiver):
        sut.mark(Mark("q0", 0, True, {"out": TYPES}, endless=True))
        sut.row("q0", 0, n=4, event_time=4)
        sut.mark(Mark("q0", 0, False, {}, (Position("ads", 0, 0, 9),), endless=True))
        sut.row("q0", 0, n=12, event_time=12)
        assert wait_until(lambda: len(receiver.results) == 2 and len(receiver.committed) >= 3, SOON_S)
    marked, with_rows = receiver.begun[-1][1], {batch for _, batch, *_ in receiver.results}
    assert marked not in with_rows
    assert min(with_rows) < marked < max(with_rows)


@pytest.mark.broker
def test_a_group_shows_the_progress_of_an_engine(broker: Broker, receiver: Receiver) -> None:
    """In the place of marks, as numbers of the run's own events. Until it commits, results show it."""
    from confluent_kafka import Consumer, TopicPartition

    topic, group = topic_of("grouped", "ads"), "of an engine"
    Topics(broker.location).make([topic], 1)
    client: Any = Consumer({"bootstrap.servers": broker.location, "group.id": group})
    starts = ((topic, 0, 5), (results_of("grouped"), 0, 0))
    sut = Sut(broker, "grouped")
    with sut.read_by(receiver, group=group, starts=starts):
        sut.mark(Mark("q0", 0, True, {"out": TYPES}, endless=True))
        sut.row("q0", 0, n=4, event_time=4)
        assert wait_until(lambda: bool(receiver.shown), SOON_S)
        client.commit(offsets=[TopicPartition(topic, 0, 9)], asynchronous=False)
        assert wait_until(lambda: bool(receiver.begun[-1][2]), SOON_S)
        sut.row("q0", 0, n=12, event_time=12)
        assert wait_until(lambda: len(receiver.results) == 2, SOON_S)
    client.close()
    (read,) = [begun for begun in receiver.begun if begun[2]]
    assert read[2] == [("ads", 0, 0, 4)]
    assert read[1] not in {batch for _, batch, *_ in receiver.results}
    assert {until_us for *_, until_us in receiver.shown} == {5}
    assert receiver.failed == ""


@pytest.mark.broker
@pytest.mark.parametrize("fault", ["no batch", "no row"])
def test_what_is_no_result_is_a_failure(broker: Broker, receiver: Receiver, fault: str) -> None:
    """A row of a batch that never began, and a row with a column that no mark has named."""
    sut = Sut(broker, fault.replace(" ", "-"))
    with sut.read_by(receiver) as inlet:
        if fault == "no row":
            sut.mark(Mark("q0", 0, True, {"out": TYPES}))
            sut.row("q0", 0, other=1)
        else:
            sut.row("q0", 0, n=1)
        sut.mark(Mark("q0", 0, False))
        assert wait_until(lambda: receiver.failed != "", SOON_S)
        assert inlet._consumer.failed.wait(SOON_S)  # nothing more is taken
    assert receiver.failed.startswith("results could not be received from the broker: ")
    assert receiver.committed == []


@pytest.mark.broker
def test_a_receiver_that_refuses_stops_no_results(
    broker: Broker, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has reported so itself; what comes after is taken all the same."""
    receive = Mock(side_effect=DriverError("no room"))
    monkeypatch.setattr(receiver, "receive", receive)
    sut = Sut(broker, "refused")
    with sut.read_by(receiver):
        sut.whole("q0", 0, 1, 2)
        sut.whole("q0", 1, 3)
        assert wait_until(lambda: len(receiver.committed) == 2, SOON_S)
    assert receive.call_count == 2


def program_outlet(broker: str, **more: Any) -> KafkaOutlet:
    """Of a program whose messages are JSON with the field `n`."""
    topics = ProgramTopics({"ads": InputTopic(**more)}, {})
    place = EndpointConfig("", 0, "out", {"brokers": broker}, topics)
    return KafkaOutlet(place, OutletConfig({"ads": SCHEMA}, 10 * US, 2**20, lambda: 7, keys={"ads": "n"}))


def test_records_of_a_program_carry_their_planned_time() -> None:
    """In milliseconds, rounded down, and not in the message; only if the file does not say otherwise."""
    columns = {"n": [1, 2], EVENT_TIME: [7_001_999, 7_002_000]}
    outlet = program_outlet("nowhere:9")
    assert outlet.extra_columns("ads") == (EVENT_TIME,)
    prepared = outlet.prepared("ads", pa.RecordBatch.from_pydict(columns))
    assert prepared.to_pydict() == {"message": [b'{"n":1}', b'{"n":2}'], "key": ["1", "2"], "time_ms": [7001, 7002]}
    outlet = program_outlet("nowhere:9", record_timestamp="sent")
    assert outlet.extra_columns("ads") == ()
    assert outlet.prepared("ads", pa.RecordBatch.from_pydict({"n": [1]})).schema.names == ["message", "key"]


@pytest.mark.broker
def test_planned_times_reach_the_topic(broker: Broker) -> None:
    """Of a topic that keeps them."""
    topics = Topics(broker.location)
    topics.make(["planned"], 1, **CREATE_TIME)
    outlet, now_ms = program_outlet(broker.location, topic="planned"), time.time_ns() // 1_000_000
    batch = pa.RecordBatch.from_pydict({"n": [1, 2], EVENT_TIME: [1000 * now_ms - 1, 1000 * now_ms]})
    outlet.offer(0, 1000, {"ads": outlet.prepared("ads", batch)}, 5)
    assert stored(outlet)
    assert [one.timestamp()[1] for one in topics.log("planned", 0).at([0, 1])] == [now_ms - 1, now_ms]


@pytest.mark.broker
@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("overwrites", {}, 'LogAppendTime, so brokers overwrite .*CreateTime, or record_timestamp = "sent"'),
        ("refuses", {**CREATE_TIME, OLDEST: "5000"}, "before.max.ms=5000, so brokers refuse records"),
        ("keeps", CREATE_TIME, ""),
    ],
)
def test_topics_that_cannot_keep_planned_times(broker: Broker, name: str, config: dict[str, str], words: str) -> None:
    """Refused with both ways out."""
    topics = Topics(broker.location)
    topics.make([name], 1, **config)
    with pytest.raises(DriverError, match=words) if words else nullcontext():
        topics.require_planned_times([name])
