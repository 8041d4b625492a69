"""What the SUT's process says of its queries, of the rows of their operators, and what each reads."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import OperatorCounts, OperatorRows
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark import row_counts
from streamgauge.engines.spark.io.flight import FlightAdapter
from streamgauge.engines.spark.io.spi import QueryStart
from streamgauge.engines.spark.job_settings import JobSettings
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.queries import StreamingQueries
from streamgauge.engines.spark.row_counts import RowCounting
from streamgauge.engines.spi import Edge, Edges
from streamgauge.system.child_processes import wait_until
from tests.unit.engines.spark.test_job_settings import BOUGHT, MEAN, REVENUE


class Failing:
    """Counters that counted one batch and then fail."""

    def __init__(self) -> None:
        self.requested = 0

    def started(self, *what: Any) -> None:
        """Registered."""

    def _fail(self, *what: Any) -> None:
        self.requested += 1
        raise RuntimeError("gone")

    keep_up = read = count_in = _fail

    def take(self) -> list[OperatorRows]:
        return [OperatorRows("q0", 3, "purchases", 10)]


WAITING = {"message": "Waiting for data to arrive", "isDataAvailable": False, "isTriggerActive": True}
"""What Spark says of a query that looks for data."""


QUERIES = queries(BOUGHT.sink("out"))
RUNNING = SimpleNamespace(exception=lambda: None, isActive=True, status=WAITING)


def started(handle: Any, counting: RowCounting | None = None) -> StreamingQueries:
    """One query, which Spark runs by this handle."""
    job = SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), {}, "local[1]", "", "")
    streaming = StreamingQueries(cast(Any, None), JobSettings(job), counting or RowCounting())
    streaming._start = lambda query: handle  # type: ignore[method-assign]
    streaming.start(*QUERIES)
    return streaming


def written_to(written: list[int]) -> Any:
    """A frame that writes nothing, and notes that it was asked to."""
    writer: Any = SimpleNamespace(save=lambda: written.append(1))
    writer.format = writer.options = writer.mode = lambda *_, **__: writer
    return SimpleNamespace(write=writer)


@pytest.mark.parametrize("call", ["status", "batch", "operator_row_counts"])
def test_probes_that_fail_end_no_query(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Only the counting: it is not tried again, what was counted is handed over, and why it ended is said."""
    written: list[int] = []
    monkeypatch.setattr(row_counts, "RowCounters", Failing)
    failing: Any = Failing()
    counting = RowCounting(failing)
    streaming = started(RUNNING, counting)
    write = batches_of(counting)
    calls: dict[str, Callable[[], Any]] = {
        "status": streaming.status,
        "batch": lambda: write(written_to(written), 4),
        "operator_row_counts": counting.take,
    }
    calls[call]()
    assert failing.requested == 1
    assert streaming.status() == {"alive": True, "busy": []}
    write(written_to(written), 5)
    assert counting.take() == OperatorCounts([OperatorRows("q0", 3, "purchases", 10)], "gone")
    assert failing.requested == 1
    assert len(written) == (2 if call == "batch" else 1)


def batches_of(counting: RowCounting) -> Any:
    """The function that Spark would call with each batch of updates."""
    given: list[Any] = []
    writer: Any = SimpleNamespace(start=lambda: None)

    def take(write: Any) -> Any:
        given.append(write)
        return writer

    writer.foreachBatch = take
    writer.queryName = writer.option = writer.trigger = writer.outputMode = lambda *_, **__: writer
    (query,) = QUERIES
    frame: Any = SimpleNamespace(writeStream=writer)
    send = partial(FlightAdapter(Edges((), Edge("", ""), {}), {}).send, query)
    QueryStart(query, Path(), {}, partial(counting.batch_written, query.name)).by_batch(frame, send)
    return given[0]


def test_a_batch_before_its_query_is_registered_is_not_counted() -> None:
    """Spark may call before it has given the handle by which rows are counted."""
    failing: Any = Failing()
    RowCounting(failing).batch_written("q0", 0)
    assert failing.requested == 0


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
    status = WAITING | {"message": message, "isTriggerActive": active}
    running = SimpleNamespace(exception=lambda: None, isActive=True, status=status)
    assert started(running).status() == {"alive": True, "busy": ["q0"] if busy else []}


@pytest.mark.parametrize(("reason", "full"), [("No space left on device", True), ("out of memory", False)])
def test_a_query_that_failed_says_whether_a_disk_was_full(reason: str, full: bool) -> None:
    """A cause in the middle of Spark's text counts too, although the reason leaves it out."""
    text = f"Job aborted\nCaused by: java.io.IOException: {reason}\nCaused by: java.lang.Exception: last"
    reply = started(SimpleNamespace(exception=lambda: RuntimeError(text), isActive=False)).status()
    assert (reply["alive"], reply["disk_full"]) == (False, full)


@pytest.mark.spark
def test_a_query_is_busy_in_a_batch_alone(tmp_path: Path, spark: Any) -> None:
    """One with data, and the one after it that closes windows; not while Spark looks for more."""
    registered, wording = Event(), []
    streaming: list[StreamingQueries] = []

    def batch(frame: Any, number: int) -> None:
        assert registered.wait(60)
        wording.append((number, frame.count(), streaming[0].status()["busy"]))

    folder = tmp_path / "times"
    folder.mkdir()
    pq.write_table(pa.table({"time": pa.array([0, 5 * US], pa.timestamp("us", "UTC"))}), folder / "1.parquet")
    times = spark.readStream.schema("time timestamp").parquet(str(folder)).withWatermark("time", "0 seconds")
    writer = times.groupBy(F.window("time", "1 second")).count().writeStream.foreachBatch(batch)
    running = writer.outputMode("append").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    streaming.append(started(running))
    registered.set()
    running.processAllAvailable()
    assert wait_until(lambda: streaming[0].status()["busy"] == [], 60)
    running.stop()
    assert wording == [(0, 0, ["q0"]), (1, 1, ["q0"])]


class LoadReached(Exception):
    """Ends a test where a query would load its source."""


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_each_query_reads_a_source_of_its_own() -> None:
    """Queries that share one write to one map in Spark's JVM, each from its own thread; a session parses types."""
    registered: list[str] = []

    def formatted(name: str) -> Any:
        assert registered[-1] == name
        raise LoadReached

    session: Any = SimpleNamespace(
        dataSource=SimpleNamespace(register=lambda source: registered.append(source.name())),
        readStream=SimpleNamespace(format=formatted),
    )
    two = Flow((*REVENUE.sink("revenues").sinks, *MEAN.sink("means").sinks))
    edges = Edges((Edge("", ""),), Edge("", ""), {BOUGHT.node.name: ("pack", "price")})
    streaming = StreamingQueries(session, JobSettings(SparkJob(two, edges, {}, "local[1]", "", "")), RowCounting())
    for query in queries(two):
        with pytest.raises(LoadReached):
            streaming.start(query)
    assert len(set(registered)) == len(queries(two)) == 2
