"""Programs of other kinds over a real broker: updates, results without a time, attached ones, and those on a JVM."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.errors import DriverError
from streamgauge.results.codes import Cause, WarningCode
from streamgauge.results.run import Result
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.topics import CREATE_TIME, Topics
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.policies import JudgedTrial
from tests.helpers_broker_trials import require_jars, started
from tests.helpers_external import CONSUMER, EVERY_EXAMPLE, EXAMPLES, changed, check_right, codes, run, shown_line

pytestmark = [pytest.mark.broker, pytest.mark.long, pytest.mark.xdist_group("external")]


COUNTER = CONSUMER.replace("while True:", "counts = {}\nwhile True:").replace(
    """        if row["price"] > 90:
            producer.produce(where["STREAMGAUGE_OUTPUT"], message.value(), message.key())
""",
    """        user = row["user_id"]
        counts[user] = counts.get(user, 0) + 1
        update = {"user_id": user, "n": counts[user], "ts": row["ts"]}
        producer.produce(where["STREAMGAUGE_OUTPUT"], json.dumps(update), message.key())
""",
)
REFERENCE = '"SELECT user_id, gem_pack_id, price, ts FROM purchases WHERE price > 90"'
KEYS = 'keys = ["user_id", "gem_pack_id", "ts"]\ntime = "ts"\nreach = "0s"'


def test_updates(broker: Broker, tmp_path: Path) -> None:
    """The last value of each key, and the bounds of all others, over two partitions."""
    counts = '"SELECT user_id, count(*) AS n, max(ts) AS ts FROM purchases GROUP BY user_id"'
    changes = (
        (REFERENCE, counts), ("domain = 1_000_000", "domain = 1000"),
        (KEYS, 'mode = "update"\nkeys = ["user_id"]\ntime = "ts"'),
    )  # fmt: skip
    result = run(changed(tmp_path, COUNTER, *changes), broker, tmp_path, rate="2k", partitions=2)
    check_right(result, 900)
    assert result.verification is not None
    assert "last values of user_id; earlier values are compared with bounds" in result.verification.sentence
    assert result.verification.not_judged == 0


def test_results_without_a_time(broker: Broker, tmp_path: Path) -> None:
    """They are compared, and their latency is null with its reason."""
    changes = ((KEYS, 'reach = "0s"'),)
    result = run(changed(tmp_path, CONSUMER, *changes), broker, tmp_path)
    check_right(result)
    assert result.latency is not None
    assert result.latency.event_time_us is None or result.latency.event_time_us.p50 is None
    assert any("carry no event time" in note for note in result.latency.notes)


def test_results_without_a_time_get_that_of_their_record(broker: Broker, tmp_path: Path) -> None:
    """By the fields that identify it."""
    changes = ((KEYS, 'latency_key = ["user_id", "gem_pack_id", "ts"]\nreach = "0s"'),)
    result = run(changed(tmp_path, CONSUMER, *changes), broker, tmp_path)
    check_right(result)
    assert result.verification is not None
    assert result.latency is not None
    assert "event_time by latency_key user_id, gem_pack_id, ts" in result.verification.sentence
    assert result.latency.event_time_us is not None
    assert result.latency.event_time_us.p50 is not None
    assert 0 < result.latency.event_time_us.p50 < 5_000_000


@pytest.fixture
def attached(broker: Broker, tmp_path: Path) -> Iterator[Path]:
    """The file of a program that runs already, on topics that held messages before."""
    topics = Topics(broker.location)
    topics.make(["orders"], 1, **CREATE_TIME)
    topics.make(["dear"], 1)
    named = f'attach = true\nbrokers = "{broker.location}"\ngroup = "shop"'
    path = changed(
        tmp_path, CONSUMER, ('command = ["{python}", "consumer.py"]', named),
        ("[inputs.purchases]\n", '[inputs.purchases]\ntopic = "orders"\n'), ("[output]", '[output]\ntopic = "dear"'),
    )  # fmt: skip
    where = {"BROKERS": broker.location, "GROUP": "shop", "INPUT": "orders", "OUTPUT": "dear"}
    environment = {**os.environ, **{f"STREAMGAUGE_{name}": value for name, value in where.items()}}
    program = subprocess.Popen([sys.executable, "consumer.py"], cwd=path.parent, env=environment)
    try:
        before(broker)
        assert wait_until(lambda: topics.ends("dear", 1) == [50], 20.0)
        yield path
    finally:
        program.kill()
        program.wait()
        topics.remove(["orders", "dear"])


def before(broker: Broker) -> None:
    """Messages of an earlier time."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.location})
    for number in range(50):
        producer.produce("orders", b'{"user_id": 1, "gem_pack_id": 1, "price": 99, "ts": %d}' % number, partition=0)
    producer.flush(10.0)


def test_an_attached_program(broker: Broker, attached: Path, tmp_path: Path) -> None:
    """Only its new messages count, its lag is known, and its resources are not."""
    out = tmp_path / "out"
    with_program = [one for one in Topics(broker.location).names() if one in ("orders", "dear")]
    result = run_attached(attached, out)
    check_right(result)
    assert result.lag is not None
    assert not [process for process in result.processes if process.role == "sut"]
    assert any("its CPU and memory are not known" in note for note in result.notes)
    assert [one for one in Topics(broker.location).names() if one in ("orders", "dear")] == with_program


def run_attached(path: Path, out: Path) -> Result:
    """A trial whose program goes on afterwards."""
    with started(out, str(path), "20k", "external", warmup="1500ms") as (resolved_, testbed, folder):
        policy = JudgedTrial(resolved_, 20_000.0, fresh=True, duration_s=3.0, may_extend=False)
        return TrialConductor(resolved_, testbed).run(folder.trial(1, datetime.now(UTC)), policy).result


def test_topics_that_exist_are_left_alone(broker: Broker, tmp_path: Path) -> None:
    """A run makes its own, and would remove them at its end."""
    topics = Topics(broker.location)
    topics.make(["orders"], 1)
    try:
        path = changed(tmp_path, CONSUMER, ("[inputs.purchases]\n", '[inputs.purchases]\ntopic = "orders"\n'))
        with pytest.raises(DriverError, match="the topic orders exists"):
            run(path, broker, tmp_path)
        assert "orders" in topics.names()
    finally:
        topics.remove(["orders"])


@pytest.mark.spark
def test_pyspark(tmp_path: Path) -> None:
    """A job with its own source and sink over two partitions: its checkpoint shows lag, backlog and batches."""
    require_jars("spark")
    result = run(EXAMPLES / "pyspark" / "program.toml", None, tmp_path, rate="5k", warmup="25s", partitions=2)
    check_right(result)
    assert result.lag is not None
    assert {(one.partition, one.max > 0) for one in result.lag.partitions} == {(0, True), (1, True)}
    assert result.backlog is not None
    assert result.backlog.max > 0
    assert any("progress is that of the program's checkpoints" in note for note in result.notes)
    batches = RunFolder(Path(result.folder)).read_engine_table("batches")
    assert batches.num_rows > 3
    assert all(took_ms > 0 for took_ms in batches.column("trigger_ms").to_pylist())
    assert {*batches.column("query").to_pylist()} == {"checkpoint"}


FOUND = {
    "dies": Cause.SUT_DIED, "loses_rows": Cause.WRONG_ANSWERS, "never_commits": WarningCode.LAG_UNKNOWN,
}  # fmt: skip
"""What is found of the wrong ones. The others are right, and their lag is known."""


@pytest.mark.parametrize("name", EVERY_EXAMPLE)
def test_an_example_runs_by_the_line_in_its_file(name: str, tmp_path: Path) -> None:
    """In a new folder, without a variable that was exported before."""
    require_jars("spark" if name == "pyspark" else "external")
    shutil.copytree(EXAMPLES.parent, tmp_path / "examples")
    command = [sys.executable, "-m", *shown_line(name)]
    environment = {key: value for key, value in os.environ.items() if "SPARK" not in key}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    (folder,) = (tmp_path / "runs").glob(f"*-{name}-external")
    result = RunFolder(folder).read_result()
    codes_found = {*codes(result), *result.warning_codes}
    if name in FOUND:
        assert FOUND[name] in codes_found, done.stderr
    else:
        check_right(result)
        assert result.lag is not None
        assert WarningCode.LAG_UNKNOWN not in codes_found
        assert result.latency is not None
        assert (result.latency.closing_delay_us is None) is (name == "python_consumer")
