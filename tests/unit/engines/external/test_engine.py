"""The driver's side of a program of the user's own."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.core.clock import US
from streamgauge.engines.external import engine as engine_module
from streamgauge.engines.external.engine import (
    ExternalEngine,
    ProgramEnvironment,
    by_name,
    ended_by_itself,
    settings_of,
)
from streamgauge.transports.kafka.spark_checkpoint import SparkCheckpoint
from streamgauge.user_workloads.program_node import Launch, unknown_placeholders
from tests.unit.transports.kafka.test_spark_checkpoint import Query

LAUNCH = Launch(("{python}", "job.py", "--group={group}"), "folder")


def test_settings_are_the_same_in_each_run() -> None:
    """Else `compare` would show a difference between any two runs of a program."""
    assert settings_of(LAUNCH) == {"command": "{python} job.py --group={group}", "group": "a new one for each run"}
    assert settings_of(replace(LAUNCH, group="shop"))["group"] == "shop"


def test_a_program_that_ran_already_has_no_command() -> None:
    """Its group is its own."""
    assert settings_of(replace(LAUNCH, command=(), group="shop")) == {
        "command": "none: it ran already", "group": "shop",
    }  # fmt: skip


def test_a_program_that_ends_by_itself_gets_a_way_out() -> None:
    """Also one that ends without an error and prints nothing."""
    assert ended_by_itself(0, "") == (
        "the program ended with exit code 0; it must run until SIGTERM ends it: correct it, or command in its file"
    )
    assert ended_by_itself(2, " before it was ready") == (
        "the program ended with exit code 2 before it was ready; correct it, or command in its file"
    )


def test_batches_are_those_of_the_checkpoints(tmp_path: Path) -> None:
    """They are noted while the program runs, since a query keeps its newest ones only."""
    engine, query = ExternalEngine(), Query(tmp_path)
    engine._checkpoints = [SparkCheckpoint(str(tmp_path), "r")]
    query.run(0, 100.0, {"orders": {"0": 5}})
    assert engine.status().alive
    for log in ("offsets", "commits"):
        (tmp_path / log / "0").unlink()
    query.run(1, 101.0, {"orders": {"0": 9}}, took_s=2.0)
    found = [(one.query, one.batch, one.start_us, one.end_us) for one in engine.batch_progress()]
    assert found == [(str(tmp_path), 0, 100 * US, 100 * US + US // 2), (str(tmp_path), 1, 101 * US, 103 * US)]
    assert engine.batch_progress() == engine.batch_progress()


INPUTS, OUTPUTS = {"purchases": "streamgauge-r-purchases"}, {"results": "streamgauge-r.results"}
VALUES = {"brokers": "localhost:9092", "group": "g", "run": "r", "scratch": "/tmp/s", "client": ""}
ONE = ProgramEnvironment({**VALUES, **by_name("input", INPUTS), **by_name("output", OUTPUTS)}, 4)
TWO = ProgramEnvironment(by_name("input", {"ads": "a", "views": "v"}), 1)


def test_variables() -> None:
    """Each topic by its name, and a single one also without."""
    assert ONE.variables == {
        "STREAMGAUGE_BROKERS": "localhost:9092",
        "STREAMGAUGE_GROUP": "g",
        "STREAMGAUGE_RUN": "r",
        "STREAMGAUGE_SCRATCH": "/tmp/s",
        "STREAMGAUGE_OUTPUT": "streamgauge-r.results",
        "STREAMGAUGE_OUTPUT_RESULTS": "streamgauge-r.results",
        "STREAMGAUGE_INPUT": "streamgauge-r-purchases",
        "STREAMGAUGE_INPUT_PURCHASES": "streamgauge-r-purchases",
    }
    assert TWO.variables == {"STREAMGAUGE_INPUT_ADS": "a", "STREAMGAUGE_INPUT_VIEWS": "v"}
    login = replace(ONE, values={**ONE.values, "client": "/etc/me.properties"}).variables
    assert login == ONE.variables | {"STREAMGAUGE_CLIENT": "/etc/me.properties"}


def test_placeholders_in_a_command() -> None:
    """Only those that are known; other braces belong to the program."""
    words = ["{python}", "job.py", "--in={input}", "--to", "{output.results}", "{parallelism}"]
    words += ['{"brokers": "{brokers}"}', "{other}", "{{input}}", "{{print}}", "${HOME}"]
    assert ONE.filled(words) == [
        sys.executable, "job.py", "--in=streamgauge-r-purchases", "--to", "streamgauge-r.results", "4",
        '{"brokers": "localhost:9092"}', "{other}", "{input}", "{print}", "${HOME}",
    ]  # fmt: skip


def test_the_jars_of_sparks_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark takes them: in one word, with commas between."""
    monkeypatch.setattr(engine_module, "spark_kafka_jars", lambda: [Path("/jars/a.jar"), Path("/jars/b.jar")])
    assert ONE.filled(["--jars", "{spark_kafka_jars}"]) == ["--jars", "/jars/a.jar,/jars/b.jar"]


@pytest.mark.parametrize(
    ("word", "streams", "unknown"),
    [
        ("{input}", ["ads"], []),
        ("{input.ads}", ["ads"], []),
        ("{input.adds}", ["ads"], ["input.adds"]),
        ("{input}", ["ads", "views"], ["input"]),
        ("{output} {output.results}", ["ads"], []),
        ("{output.result}", ["ads"], ["output.result"]),
        ("{broker} {python} ${HOME} {{print}}", ["ads"], ["broker"]),
    ],
)
def test_placeholders_of_unknown_inputs(word: str, streams: list[str], unknown: list[str]) -> None:
    """One of several inputs has to be named."""
    assert unknown_placeholders([word], streams, ["results"]) == unknown
