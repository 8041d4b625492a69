"""One DStream of `pyspark.streaming`: its batches are made at every batch interval, and worked off in their order.

Spark calls a transformation when it makes a batch, and the function of an output when it comes to work on it. So the
data of a batch is fixed in the first, and a batch that waits for others does not grow.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Protocol

from pyspark.streaming import StreamingContext
from pyspark.streaming.listener import StreamingListener

from streamgauge.engines.spark.dstream.state import Batch
from streamgauge.engines.spark.error_message import error_message
from streamgauge.engines.spark.observe.event_log import BATCH_ID

PROGRESS_MAX = 100_000
"""Batches of which it is kept what Spark said: a day's of one second."""


class Receiver(Protocol):
    """Where a stream's events come from."""

    def stream(self, context: StreamingContext) -> Any:
        """The DStream of what comes in."""

    def next(self, when_ms: int, number: int) -> Any:
        """What is in the batch of that time, which is being made; None where it has nothing to do."""

    def begin(self, number: int, made: Any, rdd: Any) -> Batch:
        """A batch that was made has its turn; `rdd` is what Spark made of it."""

    def progress_fields(self, made: Any) -> dict[str, Any]:
        """What more is told of a batch than Spark's listener does."""


class DStreamBatches:
    """A stream that works on its batches once it is started.

    `work` gets a batch with the RDD that Spark made of it.
    """

    def __init__(
        self, session: Any, query: str, interval_s: float, receiver: Receiver, work: Callable[[Batch, Any], None]
    ) -> None:
        self._context, self._query, self._interval_ms = session.sparkContext, query, round(1000 * interval_s)
        self._receiver, self._work = receiver, work
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that DStreams are deprecated is why they are asked for
            self._streaming = StreamingContext(self._context, interval_s)
        self._lock = Lock()
        self._made: dict[int, Any] = {}
        self._unreported: dict[int, Any] = {}
        self._progress: deque[dict[str, Any]] = deque(maxlen=PROGRESS_MAX)
        self._first_ms: int | None = None
        self._failed = ""

    def start(self) -> None:
        """Start the receiver; the first batch is made an interval later at most."""
        stream = self._receiver.stream(self._streaming)
        # Spark looks at how many arguments a function has, so these are none of the object's own.
        made = stream.transform(lambda when, rdd: self._on_made(_ms(when), rdd))
        made.foreachRDD(lambda when, rdd: self._on_batch(_ms(when), rdd))
        self._streaming.addStreamingListener(_Listener(self._on_done))
        self._streaming.start()

    @property
    def failed(self) -> str:
        """Why a batch, or Spark's own part of the stream, failed; nothing while all is well."""
        if not self._failed:
            try:
                if self._streaming.awaitTerminationOrTimeout(0):
                    self._failed = "the stream ended"
            except Exception as error:
                self._failed = error_message(str(error))
        return self._failed

    @property
    def working(self) -> bool:
        """Whether a batch that has something to do is made and not done."""
        return bool(self._made)

    def progress(self) -> list[dict[str, Any]]:
        """What Spark said of the batches that had something to do, in the form of a query's progress."""
        return list(self._progress)

    def _on_made(self, when_ms: int, rdd: Any) -> Any:
        """Never raises: Spark would go on to make batches without this one's."""
        try:
            made = None if self._failed else self._receiver.next(when_ms, self._number(when_ms))
            if made is not None:
                with self._lock:
                    self._made[when_ms] = made
                    self._unreported[when_ms] = made
        except Exception as error:
            self._fail(error)
        return rdd

    def _on_batch(self, when_ms: int, rdd: Any) -> None:
        made, number = self._made.get(when_ms), self._number(when_ms)
        if made is None or self._failed:
            return
        try:
            self._context.setLocalProperty(BATCH_ID, str(number))
            self._work(self._receiver.begin(number, made, rdd), rdd)
        except Exception as error:
            self._fail(error)
            raise
        finally:
            with self._lock:
                del self._made[when_ms]

    def _on_done(self, info: Any) -> None:
        """Takes in what Spark says of a batch that had something to do, and when it ran by the times of its output:
        those of the batch are taken by Spark's event loop when that comes round to it, behind what has happened since.
        """
        when_ms = info.batchTime().milliseconds()
        if when_ms not in self._unreported:
            return
        made = self._unreported.pop(when_ms)
        (output,) = info.outputOperationInfos().values()
        began_ms, ended_ms = output.startTime(), output.endTime()
        self._progress.append(
            {
                "name": self._query,
                "batchId": self._number(when_ms),
                "timestamp": datetime.fromtimestamp(began_ms / 1000, UTC).isoformat(),
                "durationMs": {"addBatch": ended_ms - began_ms, "triggerExecution": ended_ms - began_ms},
                "batchTimeMs": when_ms,
                "submissionTimeMs": info.submissionTime(),
                "processingStartTimeMs": began_ms,
                "processingEndTimeMs": ended_ms,
                "schedulingDelayMs": began_ms - info.submissionTime(),
                "numRecords": info.numRecords(),
                **self._receiver.progress_fields(made),
            }
        )

    def _number(self, when_ms: int) -> int:
        """Batches follow each other at every interval, those with nothing to do among them."""
        if self._first_ms is None:
            self._first_ms = when_ms
        return (when_ms - self._first_ms) // self._interval_ms

    def _fail(self, error: Exception) -> None:
        self._failed = self._failed or error_message(str(error))


class _Listener(StreamingListener):
    """Hands on what Spark says at each batch's end."""

    def __init__(self, done: Callable[[Any], None]) -> None:
        super().__init__()
        self._done = done

    def onBatchCompleted(self, batchCompleted: Any) -> None:
        self._done(batchCompleted.batchInfo())


def _ms(when: datetime) -> int:
    """Spark gives a batch's time in this machine's own zone, and means milliseconds since the epoch."""
    return round(when.timestamp() * 1000)
