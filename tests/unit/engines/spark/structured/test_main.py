"""The SUT's own process: what it says of itself and of its queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from streamgauge.core.clock import US
from streamgauge.core.errors import EngineError
from streamgauge.core.operator_rows import OperatorRows
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.structured import main
from streamgauge.engines.spark.structured.main import SparkJob, Sut
from streamgauge.engines.spi import Edge, Edges
from streamgauge.system.child_processes import wait_until

BOUGHT = source("purchases", Schema.of(user_id="int", pack="int", price="int"))
ADS = source("ads", Schema.of(user_id="int", pack="int"))
REVENUE = BOUGHT.window(hop(2, 1), keys="pack").aggregate(revenue="sum(price)")
MEAN = BOUGHT.window(hop(2, 1), keys="pack").aggregate(mean="avg(price)", name="means")
MATCHES = BOUGHT.select(pack="pack", price="price").join(ADS.select(pack="pack"), window=hop(2, 1), on="pack")


def in_force(flow: Flow, **options: str) -> dict[str, str]:
    sut = Sut(SparkJob(flow, Edges((), Edge("", ""), {}), options, "local[1]", "", ""))
    sut._queries = dict.fromkeys(queries(flow))
    return {name: value for name, value in sut._in_force().items() if name.startswith(("lowering", "trigger"))}


def test_what_was_left_to_the_engine_stands_as_what_ran() -> None:
    """With a word that it was the engine's choice; only operators that the flow has are listed."""
    assert in_force(REVENUE.sink("out")) == {
        "trigger": "1400 milliseconds (auto)",
        "lowering.aggregate": "panes (auto)",
    }
    assert in_force(MEAN.sink("out")) == {"trigger": "1400 milliseconds (auto)", "lowering.means": "window (auto)"}
    assert in_force(MATCHES.sink("out")) == {"trigger": "2 seconds (auto)", "lowering.join": "stream_stream"}
    assert in_force(BOUGHT.sink("out")) == {"trigger": "0 seconds (auto)"}


def test_what_was_asked_for_stands_as_it_was_asked() -> None:
    """Without that word."""
    asked = {"trigger": "2 seconds", "lowering.aggregate": "window"}
    assert in_force(REVENUE.sink("out"), **asked) == asked
    packed = {"trigger": "auto", "lowering.join": "packed"}
    assert in_force(MATCHES.sink("out"), **packed) == {"trigger": "1400 milliseconds (auto)", "lowering.join": "packed"}


@pytest.mark.parametrize(
    ("master", "options", "stands"),
    [
        ("local[2]", {}, "late -XX:Tier4InvocationThreshold="),
        ("local[2]", {"jit": "jvm"}, "jvm"),
        ("spark://host:7077", {}, "jvm (remote executors"),
    ],
)
def test_how_the_jvm_compiles_stands_with_what_it_was_told(master: str, options: dict[str, str], stands: str) -> None:
    """A result that hides a JVM's options cannot be made again."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), options, master, "", ""))
    sut._queries = dict.fromkeys(queries(BOUGHT.sink("out")))
    assert sut._in_force()["jit"].startswith(stands)


@pytest.mark.parametrize(
    ("master", "options", "host"),
    [
        ("local[2]", {}, "127.0.0.1"),
        ("spark://host:7077", {}, "10.0.0.5"),
        ("spark://host:7077", {"spark.driver.host": "me.example", "spark.driver.bindAddress": "0.0.0.0"}, "me.example"),
    ],
)
def test_sparks_driver_is_where_executors_find_ours(master: str, options: dict[str, str], host: str) -> None:
    """On loopback in local mode; else at the address that was bound, unless the user says where."""
    edges = Edges((), Edge("", ""), {}, bind="10.0.0.5")
    conf = Sut(SparkJob(BOUGHT.sink("out"), edges, options, master, "", ""))._configuration()
    assert conf["spark.driver.host"] == host
    assert conf["spark.driver.bindAddress"] == options.get("spark.driver.bindAddress", host)


@pytest.mark.parametrize(("probed", "kept"), [({"probes": "on"}, "2000"), ({}, None)])
def test_where_counts_are_read_spark_keeps_more_executions(probed: dict[str, str], kept: str | None) -> None:
    """And no more where they are not, which is the default: they take heap."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), probed, "local[1]", "", ""))
    assert sut._configuration().get("spark.sql.ui.retainedExecutions") == kept


class Failing:
    """Probes that counted one batch and then fail."""

    def __init__(self) -> None:
        self.asked = 0

    def _fail(self, *what: Any) -> None:
        self.asked += 1
        raise RuntimeError("gone")

    keep_up = read = count_in = _fail

    def take(self) -> list[OperatorRows]:
        return [OperatorRows("q0", 3, "purchases", 10)]


WAITING = {"message": "Waiting for data to arrive", "isDataAvailable": False, "isTriggerActive": True}
"""What Spark says of a query that looks for data."""


def with_failing_probes(monkeypatch: pytest.MonkeyPatch) -> tuple[Sut, Failing]:
    """A SUT with one query that runs, and its probes."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), {}, "local[1]", "", ""))
    running = SimpleNamespace(exception=lambda: None, isActive=True, status=WAITING)
    sut._queries = dict.fromkeys(queries(sut._job.flow), running)
    failing = Failing()
    monkeypatch.setattr(main, "RowCounters", Failing)
    sut._probes = failing  # type: ignore[assignment]
    return sut, failing


def written_to(written: list[int]) -> Any:
    """A frame that writes nothing, and notes that it was asked to."""
    writer: Any = SimpleNamespace(save=lambda: written.append(1))
    writer.format = writer.options = writer.mode = lambda *_, **__: writer
    return SimpleNamespace(write=writer)


@pytest.mark.parametrize("call", ["status", "batch", "operator_row_counts"])
def test_probes_that_fail_end_no_query(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Only the counting: it is not tried again, what was counted is handed over, and why it ended is said."""
    written: list[int] = []
    sut, failing = with_failing_probes(monkeypatch)
    query = next(iter(sut._queries))
    write = partial(sut._write_batch, query, sut._sender(query))
    calls: dict[str, Callable[[], Any]] = {
        "status": sut.status,
        "batch": lambda: write(written_to(written), 4),
        "operator_row_counts": sut.operator_row_counts,
    }
    calls[call]()
    assert failing.asked == 1
    assert sut.status() == {"alive": True, "busy": []}
    write(written_to(written), 5)
    kept = {"query": "q0", "batch": 3, "operator": "purchases", "rows": 10}
    assert sut.operator_row_counts() == {"rows": [kept], "ended": "gone"}
    assert failing.asked == 1
    assert len(written) == (2 if call == "batch" else 1)


def test_without_probes_nothing_is_counted() -> None:
    """And nothing has ended."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), {"probes": "off"}, "local[1]", "", ""))
    assert sut.operator_row_counts() == {"rows": [], "ended": ""}


@pytest.mark.parametrize(
    ("active", "message", "busy"),
    [
        (True, "Processing new data", True),
        (True, "No new data but cleaning up state", True),
        (True, "Waiting for data to arrive", False),
        (True, "Getting offsets from streamgauge_q0", False),
        (False, "Processing new data", False),
        (False, "No new data but cleaning up state", False),
    ],
)
def test_a_query_is_busy_while_its_trigger_is_active_in_a_batch(active: bool, message: str, busy: bool) -> None:
    """Spark's last words stay when a trigger ends, and a trigger is active before it has a batch."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), {"probes": "off"}, "local[1]", "", ""))
    status = WAITING | {"message": message, "isTriggerActive": active}
    running = SimpleNamespace(exception=lambda: None, isActive=True, status=status)
    sut._queries = dict.fromkeys(queries(sut._job.flow), running)
    assert sut.status() == {"alive": True, "busy": ["q0"] if busy else []}


@pytest.mark.parametrize(("reason", "full"), [("No space left on device", True), ("out of memory", False)])
def test_a_query_that_failed_says_whether_a_disk_was_full(reason: str, full: bool) -> None:
    """A cause in the middle of Spark's text counts too, although the reason leaves it out."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), {"probes": "off"}, "local[1]", "", ""))
    text = f"Job aborted\nCaused by: java.io.IOException: {reason}\nCaused by: java.lang.Exception: last"
    failed = SimpleNamespace(exception=lambda: RuntimeError(text), isActive=False)
    sut._queries = dict.fromkeys(queries(sut._job.flow), failed)
    reply = sut.status()
    assert (reply["alive"], reply["disk_full"]) == (False, full)


@pytest.mark.spark
def test_a_query_is_busy_in_a_batch_alone(tmp_path: Path, spark: Any) -> None:
    """One with data, and the one after it that closes windows; not while Spark looks for more."""
    sut = Sut(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), {"probes": "off"}, "local[1]", "", ""))
    (query,) = queries(sut._job.flow)
    started, said = Event(), []

    def batch(frame: Any, number: int) -> None:
        assert started.wait(60)
        said.append((number, frame.count(), sut.status()["busy"]))

    folder = tmp_path / "times"
    folder.mkdir()
    pq.write_table(pa.table({"time": pa.array([0, 5 * US], pa.timestamp("us", "UTC"))}), folder / "1.parquet")
    times = spark.readStream.schema("time timestamp").parquet(str(folder)).withWatermark("time", "0 seconds")
    writer = times.groupBy(F.window("time", "1 second")).count().writeStream.foreachBatch(batch)
    running = writer.outputMode("append").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    sut._queries = {query: running}
    started.set()
    running.processAllAvailable()
    assert wait_until(lambda: sut.status()["busy"] == [], 60)
    running.stop()
    assert said == [(0, 0, [query.name]), (1, 1, [query.name])]


def test_a_call_that_fails_because_the_jvm_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection, or a batch that ended by it; another failure keeps its own words."""

    def refused() -> dict[str, Any]:
        raise ConnectionRefusedError(111, "Connection refused")

    dead = {"alive": False, "reason": "[Errno 111] Connection refused"}
    for status in (refused, lambda: dead):
        monkeypatch.setattr(main, "jvm_ended", lambda: "Spark's JVM ended (SIGKILL)")
        with pytest.raises(EngineError, match=r"JVM ended \(SIGKILL\)"):
            main.checked_jvm(status)
    monkeypatch.setattr(main, "jvm_ended", lambda: "")
    assert main.checked_jvm(lambda: dead) == dead
    with pytest.raises(ConnectionRefusedError):
        main.checked_jvm(refused)
