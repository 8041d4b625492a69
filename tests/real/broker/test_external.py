"""Programs of the user's own over a real broker: right ones, wrong ones, and some that are set up wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from streamgauge.core.errors import EngineError
from streamgauge.results.causes import Cause, WarningCode
from streamgauge.results.run import Result
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker.broker import Broker
from streamgauge.transports.kafka.broker.topics import Topics
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.extension_policy import JudgedTrial
from tests.helpers_broker_trials import require_jars, started

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("external")]
EXAMPLES = Path(__file__).parents[3] / "examples" / "external"
GONE_S = 10.0
DURATION_S = 3.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for all tests here, of which a run knows nothing but where it is."""
    require_jars("external")
    folder = tmp_path_factory.mktemp("broker")
    with Broker(folder / "data", folder / "broker.log") as one:
        yield one


def run(path: Path, broker: Broker, out: Path, rate: str = "20k", warmup: str = "1500ms") -> Result:
    """One trial. Nothing is left behind: no process of the program, and no topic."""
    before, at = {process.pid for process in psutil.process_iter()}, {"brokers": broker.location}
    try:
        with started(out, str(path), rate, "external", transport_options=at, warmup=warmup) as started_:
            resolved, testbed, folder = started_
            load = resolved.experiment.load
            policy = JudgedTrial(resolved, load.rate, fresh=True, duration_s=DURATION_S, may_extend=False)
            return TrialConductor(resolved, testbed).run(folder.trial(1, datetime.now(UTC)), policy).result
    finally:
        words = str(path.parent)
        assert wait_until(lambda: not running_in(words, before), GONE_S)
        assert [name for name in Topics(broker.location).names() if name.startswith("streamgauge")] == []


def running_in(folder: str, before: set[int]) -> list[psutil.Process]:
    """New processes whose working folder is that of the program."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid not in before and process.cwd() == folder:
                found.append(process)
        except psutil.Error:
            continue
    return found


def codes(result: Result) -> set[Cause | None]:
    """Those of the checks: beside other load the verdict itself may be invalid."""
    return {check.code for check in result.verdict.checks}


def verification(result: Result) -> dict[str, int]:
    assert result.verification is not None
    assert result.verification.judged, result.verification.sentence
    return result.verification.faults


def test_python_consumer(broker: Broker, tmp_path: Path) -> None:
    """A plain Python program: every answer right, its lag from its group, its processes measured."""
    result = run(EXAMPLES / "python_consumer" / "program.toml", broker, tmp_path)
    assert sum(verification(result).values()) == 0, result.verification
    assert result.verification is not None
    assert result.verification.independent
    assert result.verification.matched > 1000, result.verdict
    assert result.lag is not None
    assert result.latency is not None
    assert result.latency.event_time_us is not None
    assert result.latency.processing_time_us is None
    assert any("results carry no ingest time" in note for note in result.latency.notes)
    assert any("progress is that of the committed offsets" in note for note in result.notes)
    assert sum(process.role == "sut" for process in result.processes) == 1


def test_loses_rows(broker: Broker, tmp_path: Path) -> None:
    """One result in ten thousand is enough."""
    result = run(EXAMPLES / "loses_rows" / "program.toml", broker, tmp_path, rate="30k")
    faults = verification(result)
    assert faults.pop("missing") >= 1
    assert set(faults.values()) == {0}
    assert Cause.WRONG_ANSWERS in codes(result)


def test_dies(broker: Broker, tmp_path: Path) -> None:
    """Named, with what it said last."""
    result = run(EXAMPLES / "dies" / "program.toml", broker, tmp_path)
    assert Cause.SUT_DIED in codes(result)
    assert "the program ended with exit code 1; its last lines: the price list is full" in result.verdict.sentence


@pytest.mark.long
def test_never_commits(broker: Broker, tmp_path: Path) -> None:
    """Its answers are judged, and its lag is said to be unknown."""
    result = run(EXAMPLES / "never_commits" / "program.toml", broker, tmp_path, warmup="15s")
    assert sum(verification(result).values()) == 0, result.verification
    assert result.lag is None
    assert WarningCode.LAG_UNKNOWN in result.warning_codes


CONSUMER = """
import json, os, sys
from confluent_kafka import Consumer, Producer
where = os.environ
producer = Producer({"bootstrap.servers": where["STREAMGAUGE_BROKERS"]})
consumer = Consumer({"bootstrap.servers": where["STREAMGAUGE_BROKERS"], "group.id": where["STREAMGAUGE_GROUP"],
                     "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200})
consumer.subscribe([where["STREAMGAUGE_INPUT"]])
while True:
    for message in consumer.consume(1000, 0.05):
        if message.error():
            continue
        row = json.loads(message.value())
        if row["price"] > 90:
            producer.produce(where["STREAMGAUGE_OUTPUT"], message.value(), message.key())
    producer.poll(0)
"""


def changed(at: Path, code: str = CONSUMER, *changes: tuple[str, str], timeout: str = "4s") -> Path:
    """The plain consumer with other code and another file."""
    folder = at / "job"
    folder.mkdir()
    text = (EXAMPLES / "python_consumer" / "program.toml").read_text()
    text = text.replace('kind = "program"', f'kind = "program"\ntimeout = "{timeout}"')
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "program.toml").write_text(text)
    (folder / "consumer.py").write_text(code)
    return folder / "program.toml"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "consumer.subscribe",
            "sys.exit('no licence')",
            "ended with exit code 1 before it was ready; its last lines: no",
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
    assert Cause.SUT_DIED in codes(result)
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
