"""What a session that runs says of a user's settings; the session itself is not needed for that."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from streamgauge.core.errors import EngineError, SettingError
from streamgauge.engines.spark.session import session
from streamgauge.engines.spark.session.session import error_message, unknown_settings
from streamgauge.workloads.helpers.places import place_of

KNOWN = frozenset(
    {"spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "spark.executor.memory", "spark.acls.enable"}
)


def test_a_setting_that_spark_does_not_know_is_named_with_the_nearest() -> None:
    """Spark would pass over it, and the run would be another than was asked for."""
    (problem,) = unknown_settings({"spark.sql.shufle.partitions": "4", "spark.sql.adaptive.enabled": "true"}, KNOWN)
    assert (problem.setting, problem.got) == ("option spark.sql.shufle.partitions", "4")
    assert problem.way_out == "--option spark.sql.shuffle.partitions=..."
    (problem,) = unknown_settings({"spark.executr.memory": "4g", "spark.executor.memory": "4g"}, KNOWN)
    assert (problem.setting, problem.way_out) == ("option spark.executr.memory", "--option spark.executor.memory=...")


@pytest.mark.parametrize(
    "names",
    [
        ["spark.executor.foo", "spark.ui.acls.enable", "spark.executor.port"],
        ["spark.sql.catalog.mine"],
        ["spark.sql.streaming.stateStore.rocksdb.compactOnCommit"],
        ["spark.sql.shufle.partitions", "spark.sql.extensions"],
    ],
)
def test_names_that_may_be_right_pass(names: list[str]) -> None:
    """Those outside `spark.sql.`, families that others read, and those of an extension."""
    assert unknown_settings(dict.fromkeys(names, "x"), KNOWN) == []


MODULES = "-XX:+IgnoreUnrecognizedVMOptions --add-opens=java.base/java.io=ALL-UNNAMED -Dio.netty.allocator.type=pooled"
OURS = "-Djava.io.tmpdir=/tmp/x/jvm -Xms4g"
SPARKS = f"-Djava.net.preferIPv6Addresses=false {MODULES}"


def made_session(**conf: str) -> Any:
    """As much of a session as is asked for what is in force."""
    names = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    context = SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: list(names.items())))
    modules = SimpleNamespace(JavaModuleOptions=SimpleNamespace(defaultModuleOptions=lambda: MODULES))
    spark = SimpleNamespace(launcher=modules)
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark)))
    return SimpleNamespace(sparkContext=context, _jvm=jvm)


@pytest.mark.parametrize(
    ("master", "extra", "recorded"),
    [
        ("local[2]", f"{SPARKS} {OURS} -XX:+UseZGC -Dmine=1", "-XX:+UseZGC -Dmine=1"),
        ("local[2]", f"{SPARKS} {OURS}", None),
        ("spark://there:7077", f"{SPARKS} {OURS} -XX:+UseZGC", f"{OURS} -XX:+UseZGC"),
    ],
)
def test_java_options_of_the_environment_stand_in_the_result(
    master: str, extra: str, recorded: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of spark-defaults.conf are in force and change figures; what Spark or this house adds is left out."""
    for name in session._ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    given = {"master": master, "driver_defaultJavaOptions": OURS, "executor_extraJavaOptions": SPARKS}
    found = session.inherited_settings(made_session(**given, driver_extraJavaOptions=extra))
    assert found == ({} if recorded is None else {"spark.driver.extraJavaOptions": recorded})


def test_a_value_that_spark_refuses_is_reported_as_the_users_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Spark's own words, without its stack; an error that speaks of no setting has its last reason."""
    wrong = "[INVALID_CONF_VALUE] The value 'four' in the config \"spark.sql.shuffle.partitions\" is invalid."
    message = f"Error:\n\tat org.x\nCaused by: org.x.SparkIllegalArgumentException: {wrong}\n\tat y"

    def fails(*_: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(session, "open_session", fails)
    users = {"spark.sql.shuffle.partitions": "four", "spark.sql.shuffle": "x"}
    with pytest.raises(SettingError) as refused:
        session.open_checked("local[1]", users, users, tmp_path)
    (problem,) = refused.value.problems
    assert (problem.setting, problem.got) == ("option spark.sql.shuffle.partitions", "four")
    assert problem.rule == f"is refused by Spark ({wrong})"
    with pytest.raises(EngineError, match=r"Error:\nCaused by: org\.x\.SparkIllegalArgumentException"):
        session.open_checked("local[1]", {}, {}, tmp_path)


def test_only_a_jvm_of_this_machine_gets_options_of_compiling(tmp_path: Path) -> None:
    """Beside its heap and its folder; a cluster's are started by others."""
    (options,) = (
        value
        for name, value in session._jvm("local[2]", tmp_path, "2g", ("-XX:One", "-XX:Two")).items()
        if "Java" in name
    )
    assert options.split() == [f"-Djava.io.tmpdir={tmp_path / 'jvm'}", "-Xms2g", "-XX:One", "-XX:Two"]
    assert session._jvm("spark://there:7077", tmp_path, "2g", ("-XX:One",)) == {}


@pytest.mark.parametrize(("spare_bytes", "reported"), [(0, {session._SOCKETS: "true"}), (-1, {})])
def test_workers_are_spoken_with_by_sockets_where_a_path_can_be_so_long(
    spare_bytes: int, reported: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses a longer one, and Spark would not start its workers; TCP is slower, but works."""
    monkeypatch.setattr(session, "_SOCKET_PATH_BYTES_MAX", len(f"{tmp_path}/jvm/.{uuid4()}.sock") + spare_bytes)
    found = session._jvm("local[2]", tmp_path, "2g", ())
    assert {name: value for name, value in found.items() if "python" in name} == reported


ADDRESSES = ("1.2.3.4", "77.0.0.1", "no address")
FROM_THE_ARCHIVE = f"""
import json
import streamgauge.engines.spark.io.flight_source
from streamgauge.workloads.helpers import places
print(json.dumps([places.__file__, [places.place_of("", address) for address in {ADDRESSES}]]))
"""


def test_what_is_shipped_works_from_its_archive(tmp_path: Path) -> None:
    """Executors elsewhere have no folder of the package: what its modules read beside them is found there too."""
    archive = session._own_code(tmp_path)
    requested = [sys.executable, "-c", FROM_THE_ARCHIVE]
    done = subprocess.run(
        requested, cwd=tmp_path, env={"PYTHONPATH": archive}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    file, found = json.loads(done.stdout)
    assert file.startswith(archive)
    assert [tuple(place) for place in found] == [place_of("", address) for address in ADDRESSES]
    assert any(country for country, _ in found)


@pytest.mark.parametrize(
    ("does", "message"),
    [("kill -KILL $$", "SIGKILL"), ("exit 137", "SIGKILL"), ("exit 3", "exit code 3"), ("exec sleep 60", "")],
)
def test_a_jvm_that_ended_is_reported_with_its_signal(monkeypatch: pytest.MonkeyPatch, does: str, message: str) -> None:
    """Whoever sent it; one that runs has not ended."""
    from pyspark import SparkContext

    monkeypatch.setattr(session, "JVM_ENDS_S", 0.0 if not message else 60.0)
    with subprocess.Popen(["sh", "-c", does]) as jvm:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=jvm))
        found = session.jvm_ended()
        jvm.kill()
    assert found == (f"Spark's JVM ended ({message})" if message else "")


STACK = """
[STREAM_FAILED] Query q0 terminated with exception: Job aborted
=== Streaming Query ===
Identifier: q0
Caused by: org.apache.spark.SparkException: Task failed
    at org.apache.spark.Scheduler.run(Scheduler.scala:1)
pyarrow.lib.ArrowInvalid: passed over, it is no error by its name
java.io.IOException: No space left on device
    at java.io.FileOutputStream.write(Native Method)
"""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (STACK, "[STREAM_FAILED] Query q0 terminated with exception: Job aborted\n"
                "java.io.IOException: No space left on device"),
        ("first\n\n  Caused by: the last one\n", "first\nCaused by: the last one"),
        ("ValueError: wrong", "ValueError: wrong"),
        ("one\ntwo\nthree", "one\ntwo"),
        ("", "the engine gave no reason"),
        ("x" * 400, "x" * 300),
    ],
)  # fmt: skip
def test_a_reason_is_the_message_and_its_last_cause(message: str, reason: str) -> None:
    """One or two lines, each once and not too long; where no cause is named, what was said first."""
    assert error_message(message) == reason
