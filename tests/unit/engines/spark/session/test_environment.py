"""Planted environments: what is set aside, recorded or refused before Spark starts; what our code does to workers."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.engines import registry
from streamgauge.engines.spark import launch
from streamgauge.engines.spark.io import flight_source
from streamgauge.engines.spark.io.flight_source import BatchWriter, Range, Reader, StreamWriter
from streamgauge.engines.spark.launch import started
from streamgauge.engines.spark.session import environment
from streamgauge.engines.spark.session.environment import environment_note, environment_of, recorded
from streamgauge.engines.spark.session.python_workers import UNCHANGED, VARIABLE
from streamgauge.system.child_processes import ChildFailed

HOSTILE = {
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "_JAVA_OPTIONS": "-Xmx300m",
    "JAVA_TOOL_OPTIONS": "-javaagent:/nowhere.jar",
    "SPARK_CONF_DIR": "/etc/other-spark",
    "HADOOP_CONF_DIR": "/etc/hadoop",
    "SPARK_HOME": "/opt/other-spark",
    "SPARK_LOCAL_IP": "10.1.2.3",
    "SPARK_REMOTE": "sc://there",
}
HOME = Path("/a/view")


def test_what_other_programs_left_is_set_aside_and_recorded() -> None:
    """A local Spark gets our home and loopback addresses; its settings name what it was spared."""
    changes = environment_of(HOME, "local[2]", HOSTILE)
    assert [name for name in HOSTILE if changes[name] is not None] == ["SPARK_HOME", "SPARK_LOCAL_IP"]
    assert (changes["SPARK_HOME"], changes["SPARK_LOCAL_IP"]) == (str(HOME), "127.0.0.1")
    assert changes["SPARK_LOCAL_HOSTNAME"] == "127.0.0.1"
    found = recorded({name: value for name, value in changes.items() if value is not None})
    assert found == {f"{name} (set aside)": value for name, value in HOSTILE.items() if name != "SPARK_HOME"}
    clean = environment_of(HOME, "local[2]", {})
    assert recorded({name: value for name, value in clean.items() if value is not None}) == recorded({}) == {}


def test_a_cluster_keeps_its_configuration() -> None:
    """Its addresses are not loopback, and the message of a failed start names what it read."""
    changes = environment_of(HOME, "yarn", HOSTILE)
    assert not {"SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"} & {*changes}
    assert changes["PYSPARK_SUBMIT_ARGS"] is None
    assert "SPARK_CONF_DIR=/etc/other-spark, HADOOP_CONF_DIR=/etc/hadoop" in environment_note("yarn", HOSTILE)
    assert environment_note("local[2]", HOSTILE) == environment_note("yarn", {}) == ""


def test_the_process_of_spark_is_started_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both that start it build its environment here."""
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    given: list[Any] = []
    monkeypatch.setattr(launch, "Child", lambda *arguments: given.append(arguments))
    launch.spark_process("a.module", {"a": "job"}, tmp_path, tmp_path / "log")
    changes = given[0][-1]
    assert changes["PYSPARK_SUBMIT_ARGS"] is changes["_JAVA_OPTIONS"] is changes["SPARK_CONF_DIR"] is None
    assert changes["SPARK_HOME"] == str(tmp_path / "spark-home")


@pytest.mark.parametrize("name", ["with blank", "bra{ces}", "ümlaut", "a,b", "a$b", "a%20b", "a:b"])
@pytest.mark.parametrize("engine", ["spark", "spark-rtm", "spark-dstream"])
def test_a_temporary_folder_that_spark_cannot_take_is_refused(
    engine: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its path, the characters, and what to set; no process is started."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr(environment.tempfile, "gettempdir", lambda: str(folder))
    with pytest.raises(MachineError, match=r"TMPDIR: .*\n  try: a plain path") as refused:
        registry.require(engine, "memory", {})
    assert repr(str(folder)) in str(refused.value)


@pytest.mark.parametrize("name", ["plain", "T.1_2-x", "a+b=c@d~e"])
def test_a_plain_temporary_folder_is_taken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that people give."""
    monkeypatch.setattr(environment.tempfile, "gettempdir", lambda: str(tmp_path / name))
    registry.require("spark", "memory", {})


@pytest.mark.parametrize(
    ("provider", "flags", "refused"),
    [("x.RocksDBStateStoreProvider", os.ST_NOEXEC, True), ("x.RocksDBStateStoreProvider", 0, False),
     ("x.HDFSBackedStateStoreProvider", os.ST_NOEXEC, False)],
)  # fmt: skip
def test_state_in_rocksdb_needs_a_folder_that_allows_programs(
    provider: str, flags: int, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java unpacks RocksDB's library there and loads it."""
    monkeypatch.setattr(environment.os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    refusal = pytest.raises(MachineError, match=r"noexec(.|\n)*try: TMPDIR")
    with refusal if refused else nullcontext():
        environment.require_loadable_state(provider, tmp_path)


def test_what_the_started_spark_lacks_of_the_machine_is_no_fault_of_spark(tmp_path: Path) -> None:
    """The error that its process raised comes back as it was."""

    def ask(request: str, timeout_s: float) -> Any:
        raise ChildFailed("noexec", "MachineError")

    with pytest.raises(MachineError, match="noexec"):
        started(SimpleNamespace(ask=ask, log=tmp_path / "log"))


_WRITING = {"location": "grpc://127.0.0.1:1", "token": "t", "query": "q0", "sinks": "[]", "batch": "0"}
_READING = {"stream": "s", "token": "t", "locations": "[]", "query": "q0", "reader": "0", "frontier": "common"}
_PROCESS = """
import gc
from streamgauge.engines.spark.session.python_workers import freeze_gc
ring = []
ring.append(ring)
freeze_gc()
frozen = gc.get_freeze_count()
later = [[]]
later.append(later)
freeze_gc()
print(frozen, gc.get_freeze_count())
import decimal, ftplib
freeze_gc()
print(gc.get_freeze_count())
"""


def test_what_is_imported_is_frozen_and_what_tasks_leave_is_not() -> None:
    """Garbage of tasks must be found by the collector, but PySpark imports pandas during the first task."""
    done = subprocess.run([sys.executable, "-c", _PROCESS], capture_output=True, text=True, check=True)
    first, second, after_import = map(int, done.stdout.split())
    assert first == second > 1000
    assert after_import > second + 100


def test_workers_that_are_left_to_spark_are_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """They know by a variable, which they inherit."""
    monkeypatch.setenv(VARIABLE, UNCHANGED)
    done = subprocess.run([sys.executable, "-c", _PROCESS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "0"]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Grows by one whenever a worker is settled."""
    calls: list[bool] = []
    monkeypatch.setattr(flight_source, "freeze_gc", lambda: calls.append(True))
    return calls


@pytest.mark.parametrize("kind", [StreamWriter, BatchWriter])
def test_a_worker_that_makes_a_writer_is_settled(kind: type[StreamWriter | BatchWriter], settled: list[bool]) -> None:
    """Spark has one to plan each batch's writing, and one to commit it."""
    kind(_WRITING)
    assert settled


def test_a_worker_that_reads_is_settled(settled: list[bool]) -> None:
    """The reader itself comes to it pickled, made elsewhere."""
    reader = Reader({**_READING, "columns": "[]"})
    assert not settled
    reader.read(Range("grpc://127.0.0.1:1", 0, 1))
    assert settled
