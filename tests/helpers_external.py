"""Trials of programs of the user's own over a real broker."""

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import psutil

from streamgauge.results.codes import Cause
from streamgauge.results.run import Result
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.topics import Topics
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.policies import JudgedTrial
from tests.helpers_broker_trials import started

EXAMPLES = Path(__file__).parents[1] / "examples" / "external"
EVERY_EXAMPLE = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
GONE_S = 10.0
DURATION_S = 3.0


def run(
    path: Path, broker: Broker | None, out: Path, rate: str = "20k", warmup: str = "1500ms", partitions: int = 1,
    **options: str,
) -> Result:  # fmt: skip
    """One trial. Nothing is left behind: no process of the program, and no topic. None: a broker of its own.

    `options`: of the transport.
    """
    before = {process.pid for process in psutil.process_iter()}
    topics = set(Topics(broker.location).names()) if broker is not None else set()
    try:
        at = {"brokers": broker.location, **options} if broker is not None else options
        with started(
            out, str(path), rate, "external", partitions=partitions, transport_options=at, warmup=warmup
        ) as started_:
            resolved, testbed, folder = started_
            load = resolved.experiment.load
            policy = JudgedTrial(resolved, load.rate, fresh=True, duration_s=DURATION_S, may_extend=False)
            return TrialConductor(resolved, testbed).run(folder.trial(1, datetime.now(UTC)), policy).result
    finally:
        words = str(path.parent)
        assert wait_until(lambda: not running_in(words, before), GONE_S)
        assert broker is None or set(Topics(broker.location).names()) == topics


def shown_line(name: str) -> list[str]:
    """The words of the one command in the comment of an example's file."""
    text = (EXAMPLES / name / "program.toml").read_text()
    ((line, shown),) = re.findall(r"^# +(streamgauge run examples/external/(\w+)/.+)$", text, re.MULTILINE)
    assert shown == name
    return shlex.split(line)


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


def check_right(result: Result, matched_min: int = 1000) -> None:
    """Every answer is right."""
    assert sum(verification(result).values()) == 0, result.verification
    assert result.verification is not None
    assert result.verification.matched >= matched_min, result.verdict


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
