"""A DStream's batches: when their data is fixed, in what order they are worked off, what one that fails does."""

from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext

from streamgauge.engines.spark.dstream.lowering import Batch
from streamgauge.engines.spark.dstream.stream import DStreamBatches
from streamgauge.engines.spark.session.reports import Block
from streamgauge.system.child_processes import wait_until

pytestmark = pytest.mark.spark

INTERVAL_S, WITHIN_S = 0.2, 60.0


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Whose stream, if one was started, ends with the test."""
    yield spark
    if (started := StreamingContext.getActive()) is not None:
        started.stop(stopSparkContext=False)


class Numbered:
    """A receiver whose batches hold their own numbers."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def stream(self, context: Any) -> Any:
        nothing = context.sparkContext.emptyRDD()
        return context.queueStream([nothing], default=nothing)

    def next(self, _: int, number: int) -> Batch | None:
        self.made.append(number)
        return Batch(number, number, number + 1, number + 1)

    def begin(self, _: int, made: Batch, __: Any) -> Batch:
        return made

    def received_blocks(self, made: Batch) -> Sequence[Block]:
        return [(0, 0, made.number, 1)]


def test_batches_are_made_while_others_wait(session: SparkSession) -> None:
    """The data of one that waits is fixed before its turn; all have their turns in their order."""
    receiver, done, go_on = Numbered(), list[int](), Event()

    def work(batch: Batch, _: Any) -> None:
        go_on.wait(WITHIN_S)
        done.append(batch.number)

    stream = DStreamBatches(session, "q", INTERVAL_S, receiver, work)
    stream.start()
    assert wait_until(lambda: len(receiver.made) >= 3, WITHIN_S)
    assert done == []
    assert stream.working
    go_on.set()
    assert wait_until(lambda: len(done) >= 3, WITHIN_S)
    assert done[:3] == receiver.made[:3]
    assert wait_until(lambda: len(stream.progress()) >= 2, WITHIN_S)
    assert all(one.blocks == [(0, 0, one.batch, 1)] for one in stream.progress())
    assert stream.failed == ""


@pytest.mark.parametrize("where", ["made", "worked on"])
def test_nothing_follows_a_batch_that_fails(session: SparkSession, where: str) -> None:
    """Spark itself would go on; here its reason is told, and later batches do nothing."""
    receiver, turns = Numbered(), list[int]()

    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError("planted")

    def work(batch: Batch, rdd: Any) -> None:
        turns.append(batch.number)
        fails()

    if where == "made":
        receiver.next = fails  # type: ignore[method-assign]
    stream = DStreamBatches(session, "q", INTERVAL_S, receiver, work)
    stream.start()
    assert wait_until(lambda: bool(stream.failed), WITHIN_S)
    assert "planted" in stream.failed
    assert len(turns) == (1 if where == "worked on" else 0)
