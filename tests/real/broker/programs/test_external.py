"""Programs of the user's own over a real broker: right ones, wrong ones, and some that are set up wrongly."""

from pathlib import Path

import pytest

from streamgauge.core.errors import EngineError
from streamgauge.results.codes import Cause, WarningCode
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker import Broker
from tests.helpers_external import CONSUMER, EXAMPLES, GONE_S, changed, check_right, codes, run, verification
from tests.unit.transports.kafka.helpers_secured_broker import PASSWORD, wanting_a_log_in

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("external")]


def test_python_consumer(broker: Broker, tmp_path: Path) -> None:
    """A plain Python program: every answer right, its lag from its group, its processes measured."""
    result = run(EXAMPLES / "python_consumer" / "program.toml", broker, tmp_path)
    check_right(result)
    assert result.verification is not None
    assert result.verification.independent
    assert result.lag is not None
    assert result.latency is not None
    assert result.latency.event_time_us is not None
    assert result.latency.processing_time_us is None
    assert any("results carry no ingest time" in note for note in result.latency.notes)
    assert any("progress is that of the committed offsets" in note for note in result.notes)
    assert not any("reports of its batches" in note for note in result.notes)
    assert sum(process.role == "sut" for process in result.processes) == 1


@pytest.mark.long
def test_a_program_logs_in(tmp_path: Path) -> None:
    """By the file whose path it gets; no file of the run has the password."""
    with wanting_a_log_in(tmp_path) as (brokers, client, topics):
        path = EXAMPLES / "python_consumer" / "program.toml"
        check_right(run(path, None, tmp_path / "runs", brokers=brokers, client=str(client)))
        assert wait_until(lambda: topics.names() == [], GONE_S)
    assert not any(PASSWORD.encode() in file.read_bytes() for file in (tmp_path / "runs").rglob("*") if file.is_file())


def test_dies(broker: Broker, tmp_path: Path) -> None:
    """Named, with what it said last."""
    result = run(EXAMPLES / "dies" / "program.toml", broker, tmp_path)
    assert Cause.SUT_DIED in codes(result)
    assert "the program ended with exit code 1; its last lines: the price list is full" in result.verdict.sentence


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "consumer.subscribe",
            "sys.exit('no licence')",
            "ended with exit code 1 before it was ready; correct it, or command in its file; its last lines: no",
        ),
        ("INPUT", "OUTPUT", "it reads streamgauge-"),
        ('where["STREAMGAUGE_INPUT"]', '"orders"', "did not read streamgauge-"),
        ('where["STREAMGAUGE_GROUP"]', '"my-group"', "the broker has the groups my-group"),
    ],
    ids=["exits", "wrong topic", "no such topic", "other group"],
)
@pytest.mark.long
def test_a_program_that_does_not_get_ready(broker: Broker, tmp_path: Path, old: str, new: str, words: str) -> None:
    """Within its time-out, with what was seen and what to change."""
    with pytest.raises(EngineError) as caught:
        run(changed(tmp_path, CONSUMER.replace(old, new, 1)), broker, tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('if row["price"] > 90:', "if False:", "and its group"),
        ("message.value(), message.key()", "b'garbage', message.key()", "(it is not JSON)"),
        ("message.value(), message.key()", "json.dumps({'price': row['price']})", "(it has no field user_id)"),
        ("message.value(), message.key()", "message.value().decode().encode('utf-16')", "(it is not UTF-8)"),
    ],
    ids=["writes nothing", "garbage", "no keys", "wrong encoding"],
)
@pytest.mark.long
def test_a_program_whose_results_are_none(broker: Broker, tmp_path: Path, old: str, new: str, words: str) -> None:
    """The trial ends within the time-out, and the verdict names it."""
    result = run(changed(tmp_path, CONSUMER.replace(old, new, 1)), broker, tmp_path, warmup="20s")
    assert Cause.NO_RESULTS in codes(result)
    assert words in result.verdict.sentence


@pytest.mark.long
def test_foreign_messages_between_results(broker: Broker, tmp_path: Path) -> None:
    """Counted and named; the results stay right."""
    code = CONSUMER.replace(
        "    producer.poll(0)", '    producer.produce(where["STREAMGAUGE_OUTPUT"], b"alive")\n    producer.poll(0)'
    )
    result = run(changed(tmp_path, code), broker, tmp_path)
    assert sum(verification(result).values()) == 0, result.verification
    warning = result.warning(WarningCode.FOREIGN_MESSAGES)
    assert "the first: 'alive' (it is not JSON)" in warning


MANY = """
import json, os, struct
from confluent_kafka import Consumer, Producer
where = os.environ
producer = Producer({"bootstrap.servers": where["STREAMGAUGE_BROKERS"]})
consumer = Consumer({"bootstrap.servers": where["STREAMGAUGE_BROKERS"], "group.id": where["STREAMGAUGE_GROUP"],
                     "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200})
consumer.subscribe(["orders"])
def varint(number):
    number, text = (number << 1) ^ (number >> 63), b""
    while number > 0x7F:
        text, number = text + bytes([number & 0x7F | 0x80]), number >> 7
    return text + bytes([number])
while True:
    for message in consumer.consume(1000, 0.05):
        if message.error():
            continue
        row = json.loads(message.value())
        user, price, ts = row["user"]["id"], row["price"], row["meta"]["ts"]
        if price > 90:
            producer.produce("dear", f"{user};{price};{ts}".encode(), message.key())
        if price < 10:
            value = struct.pack(">bI", 0, 5) + varint(user) + varint(1) + varint(price) + varint(ts)
            producer.produce(where["STREAMGAUGE_OUTPUT_CHEAP"], value, message.key())
    producer.poll(0)
"""
MANY_FILE = """
kind = "program"
command = ["{python}", "consumer.py"]

[inputs.purchases]
topic = "orders"
key = "user.id"
time = "meta.ts"

[inputs.purchases.fields]
user.id = { kind = "key", domain = 1_000_000 }
price = { kind = "integer", low = 1, high = 100 }

[outputs.dear]
topic = "dear"
format = "csv"
delimiter = ";"
keys = ["user", "ts"]
time = "ts"
reach = "0s"
reference = '''SELECT "user.id" AS user, price, "meta.ts" AS ts FROM purchases WHERE price > 90'''

[outputs.cheap]
format = "avro-confluent"
schema_file = "cheap.avsc"
time = "meta.ts"
reach = "0s"
reference = '''SELECT "user.id", price, "meta.ts" FROM purchases WHERE price < 10'''
"""
CHEAP = """
{"type": "record", "name": "cheap", "fields": [
  {"name": "user", "type": {"type": "record", "name": "user", "fields": [{"name": "id", "type": "long"}]}},
  {"name": "price", "type": ["null", "int"]},
  {"name": "meta", "type": {"type": "record", "name": "meta", "fields": [{"name": "ts", "type": "long"}]}}]}
"""


def test_formats_topics_and_outputs(broker: Broker, tmp_path: Path) -> None:
    """Nested JSON from a topic of the program's own name, lines of CSV and Avro with Confluent's header from two."""
    path = changed(tmp_path, MANY)
    path.write_text(MANY_FILE)
    (path.parent / "cheap.avsc").write_text(CHEAP)
    result = run(path, broker, tmp_path)
    check_right(result, 2000)
    assert [sink.name for sink in result.sinks] == ["dear", "cheap"]
    assert all(sink.verification is not None and sink.verification.matched > 1000 for sink in result.sinks)


UNRELIABLE = """
import itertools, json, os
from confluent_kafka import Consumer, Producer
where, numbers = os.environ, itertools.count(1)
producer = Producer({"bootstrap.servers": where["STREAMGAUGE_BROKERS"]})
consumer = Consumer({"bootstrap.servers": where["STREAMGAUGE_BROKERS"], "group.id": where["STREAMGAUGE_GROUP"],
                     "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200})
consumer.subscribe([where["STREAMGAUGE_INPUT"]])
while True:
    for message in consumer.consume(1000, 0.05):
        if message.error() or json.loads(message.value())["price"] <= 90:
            continue
        number = next(numbers)
        for _ in range(2 if number % 100 == 0 else 1):
            producer.produce(where["STREAMGAUGE_OUTPUT_REPEATS"], message.value(), message.key())
        if number % 100:
            producer.produce(where["STREAMGAUGE_OUTPUT_LOSES"], message.value(), message.key())
    producer.poll(0)
"""


@pytest.mark.parametrize("promised", [True, pytest.param(False, marks=pytest.mark.long)])
def test_promised_guarantees(broker: Broker, tmp_path: Path, promised: bool) -> None:
    """One result in a hundred comes twice, or is lost: no fault for the output that promises no more."""
    path = changed(tmp_path, UNRELIABLE)
    head, _, output = path.read_text().partition("[output]")
    reference = next(line for line in head.splitlines() if line.startswith("reference"))
    text = head.replace(reference, "")
    for sink, delivery in (("repeats", "at_least_once"), ("loses", "at_most_once")):
        loss = "loss_max = 0.05\n" if delivery == "at_most_once" else ""
        given = f'delivery = "{delivery}"\n{loss}' if promised else ""
        text += f"\n[outputs.{sink}]\n{given}{reference}{output}"
    path.write_text(text)
    result = run(path, broker, tmp_path)
    repeats, loses = (sink.verification for sink in result.sinks)
    assert repeats is not None
    assert loses is not None
    assert result.verification is not None
    assert repeats.duplicate > 10
    assert loses.missing > 10
    assert (repeats.missing, loses.duplicate) == (0, 0)
    faults = verification(result)
    if promised:
        assert set(faults.values()) == {0}
        assert (repeats.delivery, loses.delivery) == ("at_least_once", "at_most_once")
        assert result.verification.allowed == {"duplicate": repeats.duplicate, "missing": loses.missing}
        assert Cause.WRONG_ANSWERS not in codes(result)
    else:
        assert (faults["duplicate"], faults["missing"]) == (repeats.duplicate, loses.missing)
        assert Cause.WRONG_ANSWERS in codes(result)
